"""Targets are data: every file loads, and a damaged one is refused with the entry's name."""

from pathlib import Path

import pytest

from prism.tune import target as target_module
from prism.tune.target import TargetFileError, UnknownTargetError, load_target, read_target

FILES = Path(target_module.__file__).with_name("targets")


def test_names():
    assert target_module.target_names() == ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100")


@pytest.mark.parametrize("name", target_module.target_names())
def test_every_file_is_consistent(name: str):
    target = load_target(name)
    major, minor = target.compute_capability
    assert f"sm_{major}{minor}" == name
    # An SM can hold at least one largest block with the part that the driver reserves.
    assert (
        target.max_shared_bytes_per_block + target.reserved_shared_bytes_per_block
        <= target.shared_bytes_per_sm
    )
    assert target.max_threads_per_block <= target.max_threads_per_sm


def test_sm_80_exact_values():
    target = load_target("sm_80")
    assert (target.sm_count, target.max_shared_bytes_per_block) == (108, 163 * 1024)
    assert target.max_grid == (2**31 - 1, 65535, 65535)
    assert target.ptx_version == "7.0"


def test_unknown_target_lists_names():
    with pytest.raises(UnknownTargetError, match=r"'sm_999' \(known: sm_80, .*sm_100\)"):
        load_target("sm_999")


def test_path_is_not_a_target():
    with pytest.raises(UnknownTargetError):
        load_target("../target")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sm_count = 108", "", "sm_count"),
        ("sm_count = 108", "sm_count = 0", "sm_count"),
        ("sm_count = 108", 'sm_count = "108"', "sm_count"),
        ("sm_count = 108", "sm_count = true", "sm_count"),
        ("[8, 0]", "[8]", "compute_capability"),
        ("sm_count = 108", "sm_count = 108\nwarps = 3", "warps"),
        ("sm_count = 108", "sm_count = = 108", "line 8"),
    ],
)
def test_damaged_file_is_refused(tmp_path: Path, old: str, new: str, message: str):
    text = (FILES / "sm_80.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "sm_80.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(TargetFileError, match=message):
        read_target(path)
