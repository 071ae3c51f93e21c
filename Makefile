# Each target sets up .venv by itself when it is missing or older than pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_BUNDLE := build/rms_norm

.PHONY: help setup demo test lint audit bench gpu-bundles clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

setup: $(STAMP) ## create .venv and install Prism with its development tools

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(STAMP) ## optimize rms_norm + matmul at n=8, d=4096 and run the kernel against float64
	$(BIN)/prism optimize examples/rms_norm.mlir --shape n=8,d=4096 -o $(DEMO_BUNDLE)
	$(BIN)/prism run $(DEMO_BUNDLE)

test: $(STAMP) ## run the unit, property and lit tests
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0 -m 'not slow'

lint: $(STAMP) ## ruff and strict basedpyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

audit: $(STAMP) ## evaluate every axiom exactly, without each of its conditions and reversed
	$(BIN)/python tools/audit_axioms.py

bench: $(STAMP) ## run the slow sweeps and the benchmarks
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0 -m slow
	$(BIN)/prism bench codegen -o bench/results/codegen.json
	$(BIN)/prism bench sim -o bench/results/simulator.json
	$(BIN)/prism bench search --json > bench/results/search.json
	$(BIN)/prism bench tune -o bench/results/tuning.json
	$(BIN)/python tools/quote_results.py

gpu-bundles: $(STAMP) ## compile what tools/gpu_check runs on a machine with a GPU, to build/gpu
	$(BIN)/python tools/gpu_bundles.py $(addprefix --target ,$(TARGET))

clean: ## remove what the build made
	rm -rf $(VENV) build
