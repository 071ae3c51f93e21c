"""A bundle reads back as written; one flipped byte anywhere, or a bad manifest, is refused."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism.runtime import bundle as bundle_module
from prism.runtime.bundle import (
    Bundle,
    BundleError,
    check_destination,
    is_bundle,
    load_bundle,
    write_bundle,
)
from prism.runtime.manifest import BufferEntry

from .conftest import COPY_FILES, copy_manifest


def test_round_trip(copy_bundle: Bundle):
    loaded = load_bundle(copy_bundle.path)
    assert loaded == copy_bundle
    assert loaded.files == COPY_FILES
    assert loaded.ptx(loaded.manifest.kernels[0]).startswith(".version 7.0")
    assert sorted(p.name for p in copy_bundle.path.iterdir()) == [
        "copy.cubin",
        "copy.ptx",
        "manifest.json",
        "workload.mlir",
    ]
    assert [p.name for p in copy_bundle.path.parent.iterdir()] == ["bundle"]


def test_every_flipped_byte_is_refused(copy_bundle: Bundle):
    for file in copy_bundle.path.iterdir():
        data = file.read_bytes()
        for position in range(len(data)):
            file.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
            with pytest.raises(BundleError, match=file.name):
                load_bundle(copy_bundle.path)
        file.write_bytes(data)
    load_bundle(copy_bundle.path)


@pytest.mark.parametrize("name", ["manifest.json", "copy.ptx", "copy.cubin", "workload.mlir"])
@pytest.mark.parametrize("damage", ["missing", "longer", "empty", "link", "pipe", "directory"])
def test_damaged_files_are_refused(copy_bundle: Bundle, name: str, damage: str):
    file = copy_bundle.path / name
    data = file.read_bytes()
    file.unlink()
    match damage:
        case "longer":
            file.write_bytes(data + b"\n")
        case "empty":
            file.touch()
        case "link":
            target = copy_bundle.path.parent / "elsewhere"
            target.write_bytes(data)
            file.symlink_to(target)
        case "pipe":
            os.mkfifo(file)
        case "directory":
            file.mkdir()
        case _:
            pass
    with pytest.raises(BundleError, match=name):
        load_bundle(copy_bundle.path)


def forge(bundle: Bundle, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest and give it a right digest: what only the schema can refuse."""
    path = bundle.path / "manifest.json"
    content = json.loads(path.read_text())
    del content["manifest_sha256"]
    change(content)
    canonical = bundle_module.canonical
    content["manifest_sha256"] = hashlib.sha256(canonical(content)).hexdigest()
    path.write_bytes(canonical(content))


def instruction(content: dict[str, Any], **entries: object) -> None:
    content["program"]["instructions"][0].update(entries)


def test_forging_without_a_change_is_accepted(copy_bundle: Bundle):
    forge(copy_bundle, lambda content: None)
    load_bundle(copy_bundle.path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format=1), "format: expected 2, found 1"),
        (lambda c: c["program"].update(outputs=[2]), r"program.outputs: no value 2"),
        (lambda c: c["program"].update(outputs=[]), "shapes differ from those of the outputs"),
        (lambda c: instruction(c, operands=[1]), r"instructions\[0\]: uses value 1 of 1"),
        (lambda c: instruction(c, operands=[]), "expected operands"),
        (lambda c: instruction(c, dim=2), "bad dim"),
        (lambda c: instruction(c, dtype="f8"), "unknown dtype 'f8'"),
        (lambda c: instruction(c, shape=[4, 0]), "bad shape"),
        (lambda c: instruction(c, shape=[8, 4]), "shapes differ from those of the outputs"),
        (lambda c: instruction(c, permutation=[0, 0]), "bad permutation"),
        (lambda c: c.update(format=True), "format: expected int, found bool"),
        (lambda c: c.update(extra=1), "unknown entries: extra"),
        (lambda c: c.pop("steps"), "missing or unknown entries: steps"),
        (lambda c: c["graph"].update(verdict="unknown"), "not proven equal"),
        (lambda c: c["kernels"][0].update(ptx="../copy.ptx"), r"file '\.\./copy\.ptx'"),
        (lambda c: c["files"].update({"../x": "0" * 64}), "not a plain file name"),
        (lambda c: c["files"].update({"..": "0" * 64}), "'..' is not a plain file name"),
        (lambda c: c["kernels"][0].update(block=[1025, 1, 1]), "launch dimensions"),
        (lambda c: c["kernels"][0].update(block=[32, 32, 2]), "1024 threads"),
        (lambda c: c["kernels"][0].update(grid=[1, 0, 1]), "launch dimensions"),
        (lambda c: c["kernels"][0].update(grid=[1, 1]), "expected 3 items, found 2"),
        (lambda c: c["kernels"][0].update(dynamic_smem=16), "bad shared memory"),
        (lambda c: c["inputs"][0].update(shape=[0]), "bad shape"),
        (lambda c: c["inputs"][0].update(shape=[2**40, 2]), "elements"),
        (lambda c: c["inputs"][0].update(dtype="f8"), "unknown dtype 'f8'"),
        (lambda c: c["inputs"][0].update(std=-1.0), "standard deviation"),
        (lambda c: c["inputs"][0].update(std="1"), "std: expected float, found str"),
        (lambda c: c["inputs"][0].update(name="out0"), "'out0' occurs twice"),
        (lambda c: c["inputs"][0].update(name="a b"), "'a b' is not a name"),
        (lambda c: c["steps"][0].update(kernel="k2"), "unknown kernel 'k2'"),
        (lambda c: c["steps"][0].update(arguments=["z", "out0"]), "unknown buffer 'z'"),
        (lambda c: c["steps"][0].update(outputs=["out0", "x"]), "writes the input 'x'"),
        (lambda c: c.update(steps=[]), "no step writes it"),
        (lambda c: c.update(shape={"n": 0}), "shape.n: expected a positive size, found 0"),
    ],
)
def test_bad_manifest_is_refused(
    copy_bundle: Bundle, change: Callable[[dict[str, Any]], object], message: str
):
    forge(copy_bundle, change)
    with pytest.raises(BundleError, match=message):
        load_bundle(copy_bundle.path)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b"[" * 100_000, b'{"a": NaN}', b'{"a": 1e999}', b"1" * 5000, b"\xff"]
)
def test_hostile_manifest_text_is_refused(copy_bundle: Bundle, text: bytes):
    (copy_bundle.path / "manifest.json").write_bytes(text)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        load_bundle(copy_bundle.path)


def test_size_limit(copy_bundle: Bundle, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bundle_module, "MAX_FILE_BYTES", 8)
    with pytest.raises(BundleError, match="larger than 8 bytes"):
        load_bundle(copy_bundle.path)


def test_missing_bundle(tmp_path: Path):
    with pytest.raises(BundleError, match="not found"):
        load_bundle(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match="not a bundle directory"):
        load_bundle(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BundleError, match=r"manifest\.json: No such file"):
        load_bundle(tmp_path / "empty")


def test_replaces_a_bundle_and_an_empty_directory(copy_bundle: Bundle, tmp_path: Path):
    files = {**COPY_FILES, "copy.cubin": b"other"}
    write_bundle(copy_bundle.path, copy_manifest(), files)
    assert load_bundle(copy_bundle.path).files["copy.cubin"] == b"other"
    (tmp_path / "empty").mkdir()
    write_bundle(tmp_path / "empty", copy_manifest(), files)
    assert load_bundle(tmp_path / "empty").files == files
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle", "empty"]


def test_anything_else_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "manifest.json").write_text("{}")
    (tmp_path / "file").write_text("data")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for name, message in (("mine", "not a bundle"), ("file", "directory"), ("link", "link")):
        assert not is_bundle(tmp_path / name)
        with pytest.raises(BundleError, match=message):
            check_destination(tmp_path / name)
        with pytest.raises(BundleError, match=message):
            write_bundle(tmp_path / name, copy_manifest(), COPY_FILES)
    assert (tmp_path / "mine" / "manifest.json").read_text() == "{}"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "link", "mine"]


def test_failure_leaves_the_old_bundle_and_no_debris(
    copy_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
):
    def fail(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle_module, "write_file", fail)
    with pytest.raises(BundleError, match="No space left on device"):
        write_bundle(copy_bundle.path, copy_manifest(), COPY_FILES)
    assert load_bundle(copy_bundle.path) == copy_bundle
    assert [p.name for p in copy_bundle.path.parent.iterdir()] == ["bundle"]


def test_writer_validates(tmp_path: Path):
    manifest = copy_manifest()
    bad = replace(manifest, inputs=(BufferEntry("x", (0,), "f16", 1.0, None),))
    with pytest.raises(BundleError, match="bad shape"):
        write_bundle(tmp_path / "b", bad, COPY_FILES)
    assert list(tmp_path.iterdir()) == []


def test_sizes_of_buffers():
    entry = BufferEntry("x", (4, 8), "f32", None, None)
    assert (entry.elements, entry.nbytes) == (32, 128)
