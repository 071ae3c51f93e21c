"""Bundles of a range: dispatch by shape, and every byte checked."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import prism.runtime
from prism.runtime.bundle import BundleError, load_bundle, sealed_text, write_bundle
from prism.runtime.launch import RunError
from prism.runtime.loaded_range import LoadedRange
from prism.runtime.manifest import Manifest
from prism.runtime.ranged import RangedBundle, SectionEntry, load_ranged, write_ranged

from .conftest import COPY_FILES, copy_manifest
from .fake_cuda import FakeCudaCore
from .test_loaded import GpuArray, aligned

SECTIONS = (
    SectionEntry(1, 2, "copy__g0", {"warps": 1}),
    SectionEntry(3, 4, "copy__g0", {}),
)


def copy_of(rows: int) -> Manifest:
    """A copy of `rows` rows of 8, one thread an element; `d` is a size that does not vary."""
    base = copy_manifest()
    (instruction,) = base.program.instructions
    return replace(
        base,
        shape={"n": rows, "d": 8},
        graph=replace(base.graph, parameters={"warps": 1}),
        program=replace(base.program, instructions=(replace(instruction, shape=(rows, 8)),)),
        inputs=(replace(base.inputs[0], shape=(rows, 8)),),
        outputs=(replace(base.outputs[0], shape=(rows, 8)),),
        kernels=(replace(base.kernels[0], block=(8 * rows, 1, 1)),),
    )


def write(path: Path) -> RangedBundle:
    return write_ranged(path, "n", SECTIONS, {n: (copy_of(n), COPY_FILES) for n in range(1, 5)})


@pytest.fixture
def ranged(tmp_path: Path) -> RangedBundle:
    return write(tmp_path / "range")


def test_what_is_written_is_read(ranged: RangedBundle):
    assert load_ranged(ranged.path) == ranged
    assert ranged.ends == [1, 2, 3, 4]
    assert load_bundle(ranged.path / "3") == ranged.bundles[3]
    assert not [each for each in ranged.path.parent.iterdir() if each.name.startswith(".")]


def test_calls_go_to_the_kernels_of_their_shape(ranged: RangedBundle):
    loaded = prism.runtime.load(ranged.path)
    assert isinstance(loaded, LoadedRange)
    for n in range(1, 5):
        x = np.arange(8 * n, dtype=np.float16).reshape(n, 8)
        np.testing.assert_array_equal(loaded(x), x)
    for shape in ((5, 8), (4, 9), (8,)):
        with pytest.raises(RunError, match=r"for n=1\.\.4, shapes \[\[1, 8\]\] to \[\[4, 8\]\]"):
            loaded(np.zeros(shape, np.float16))
    with pytest.raises(RunError, match="expected an array, found int"):
        loaded(3)


def test_calls_on_a_gpu(ranged: RangedBundle, cuda: FakeCudaCore):
    loaded = prism.runtime.load(ranged.path)
    for n in (4, 1):
        x, y = aligned((n, 8)), aligned((n, 8))
        x[:] = n
        loaded(GpuArray(x), out=GpuArray(y))
        np.testing.assert_array_equal(y, x)
    assert len(cuda.made("cubin")) == 2


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n": 5}, r"n=5: the bundle is for n=1\.\.4,d=8"),
        ({"n": 0}, "n=0: the bundle is for"),
        ({"d": 8}, "no size for 'n'"),
        ({"n": 2, "d": 9}, "d=9: the bundle is for"),
        ({"n": 2, "e": 9}, "e=9: the bundle is for"),
    ],
)
def test_sizes_out_of_range(ranged: RangedBundle, sizes: dict[str, int], message: str):
    with pytest.raises(BundleError, match=message):
        ranged.at(sizes)
    assert ranged.at({"n": 2, "d": 8}) is ranged.bundles[2]


@pytest.mark.parametrize("name", ["dispatch.json", "2/manifest.json", "3/copy.ptx", "4/copy.cubin"])
def test_any_changed_byte_is_refused(ranged: RangedBundle, name: str):
    file = ranged.path / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(BundleError, match="damaged"):
        prism.runtime.load(ranged.path)


def test_another_bundle_in_place_of_a_size_is_refused(ranged: RangedBundle):
    other = replace(copy_of(2), versions={"prism": "other"})
    write_bundle(ranged.path / "2", other, COPY_FILES)
    with pytest.raises(BundleError, match="its manifest is not that of"):
        load_ranged(ranged.path)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ([(1, 2), (4, 4)], r"section 4\.\.4 is not due"),
        ([(1, 2), (2, 4)], r"section 2\.\.4 is not due"),
        ([(1, 2), (3, 2)], r"section 3\.\.2 is not due"),
        ([(0, 4)], "no sections of sizes from 1"),
        ([], "no sections"),
        ([(1, 3)], "its manifests are not those of its sections"),
        ([(1, 10**9)], "more than 1024 sizes"),
    ],
)
def test_hostile_tables_are_refused(
    ranged: RangedBundle, sections: list[tuple[int, int]], message: str
):
    file = ranged.path / "dispatch.json"
    content = json.loads(file.read_text())
    del content["manifest_sha256"]
    content["sections"] = [
        {"first": first, "last": last, "graph": "copy__g0", "parameters": {}}
        for first, last in sections
    ]
    file.write_bytes(sealed_text(content))
    with pytest.raises(BundleError, match=message):
        load_ranged(ranged.path)


def test_a_table_that_its_bundles_do_not_meet_is_not_written(tmp_path: Path):
    packed = {n: (copy_of(n), COPY_FILES) for n in (1, 2)}
    for section, message in (
        (SectionEntry(1, 2, "copy__g1", {}), "not that of its section"),
        (SectionEntry(1, 2, "copy__g0", {"warps": 2}), "not that of its section"),
    ):
        with pytest.raises(BundleError, match=message):
            write_ranged(tmp_path / "b", "n", [section], packed)
    section = SectionEntry(1, 2, "copy__g0", {})
    same = {n: (replace(copy_of(1), shape={"n": n, "d": 8}), COPY_FILES) for n in (1, 2)}
    with pytest.raises(BundleError, match="sizes of 'n' with the same input shapes"):
        write_ranged(tmp_path / "b", "n", [section], same)
    assert list(tmp_path.iterdir()) == []


def test_bundles_of_one_shape_and_of_a_range_replace_each_other(ranged: RangedBundle):
    write_bundle(ranged.path, copy_manifest(), COPY_FILES)
    assert load_bundle(ranged.path).manifest.workload == "copy"
    write(ranged.path)
    with pytest.raises(BundleError, match="a bundle of a range of shapes"):
        load_bundle(ranged.path)
