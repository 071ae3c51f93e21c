"""
Bundles: a directory with a compiled workload, whose every byte is covered by a SHA-256.

`manifest.json` holds the digests of all other files and, over its own canonical text, its own. The
digests find damage; they are no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, cast

from prism.errors import PrismError
from prism.runtime.manifest import WORKLOAD_FILE, KernelEntry, Manifest, validate
from prism.runtime.schema import SchemaError, decode

MANIFEST_FILE = "manifest.json"
DISPATCH_FILE = "dispatch.json"
"""In place of a manifest in bundles of a range of shapes (`ranged.py`)."""

DIGEST_KEY = "manifest_sha256"
MAX_MANIFEST_BYTES = 4 * 1024 * 1024
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_FILES = 1024


class BundleError(PrismError):
    """A directory is not a bundle, is damaged, or cannot be written; the message names the file."""


@dataclass(frozen=True)
class Bundle:
    """A bundle with all its files read and checked; nothing is read from disk later."""

    path: Path
    manifest: Manifest
    files: Mapping[str, bytes]

    @property
    def workload_text(self) -> str:
        """The MLIR text of the workload."""
        return self.files[WORKLOAD_FILE].decode("utf-8")

    def ptx(self, kernel: KernelEntry) -> str:
        """The PTX text of a kernel."""
        return self.files[kernel.ptx].decode("utf-8")

    def cubin(self, kernel: KernelEntry) -> bytes:
        """The cubin of a kernel."""
        return self.files[kernel.cubin]


def load_bundle(path: Path) -> Bundle:
    """
    Read a bundle and check every byte of it.

    Raises `BundleError` if a file is missing, larger than allowed, not a regular file, or differs
    from its digest, or if the manifest breaks its schema.
    """
    if not path.is_dir():
        raise BundleError(f"{path}: {'not a bundle directory' if path.exists() else 'not found'}")
    if is_ranged(path):
        raise BundleError(f"{path}: a bundle of a range of shapes; expected one of a single shape")
    text = read_file(path / MANIFEST_FILE, MAX_MANIFEST_BYTES)
    manifest = _parse_manifest(path / MANIFEST_FILE, text)
    if len(manifest.files) > MAX_FILES:
        raise BundleError(f"{path / MANIFEST_FILE}: more than {MAX_FILES} files")
    files: dict[str, bytes] = {}
    for name, digest in manifest.files.items():
        files[name] = read_file(path / name, MAX_FILE_BYTES)
        if hashlib.sha256(files[name]).hexdigest() != digest:
            raise BundleError(f"{path / name}: damaged: its SHA-256 differs from the manifest's")
    for name in (WORKLOAD_FILE, *(kernel.ptx for kernel in manifest.kernels)):
        try:
            files[name].decode("utf-8")
        except UnicodeDecodeError as error:
            raise BundleError(f"{path / name}: not UTF-8 text") from error
    return Bundle(path, manifest, files)


def is_ranged(path: Path) -> bool:
    """Whether a directory is a bundle of a range of shapes, by its files."""
    return (path / DISPATCH_FILE).exists() and not (path / MANIFEST_FILE).exists()


def is_bundle(path: Path) -> bool:
    """Whether a directory looks like a bundle, of one shape or a range: damaged or not."""
    return any(_has_digest(path / name) for name in (MANIFEST_FILE, DISPATCH_FILE))


def _has_digest(path: Path) -> bool:
    try:
        value = cast(object, json.loads(read_file(path, MAX_MANIFEST_BYTES)))
    except (BundleError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and DIGEST_KEY in value


def check_destination(path: Path) -> None:
    """Raise `BundleError` if `write_bundle` could not put a bundle at `path`."""
    parent = path.resolve().parent
    if path.is_symlink():
        raise BundleError(f"{path}: is a symbolic link; name a directory")
    if path.exists() and not path.is_dir():
        raise BundleError(f"{path}: exists and is not a directory")
    if path.is_dir() and any(path.iterdir()) and not is_bundle(path):
        raise BundleError(f"{path}: exists and is not a bundle; refusing to replace it")
    existing = parent
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise BundleError(f"{path}: cannot write to {existing}")


def write_bundle(path: Path, manifest: Manifest, files: Mapping[str, bytes]) -> Bundle:
    """
    Write a bundle atomically: complete in a new directory beside `path`, then renamed.

    `manifest.files` is filled in from `files`. An existing bundle at `path` is replaced; anything
    else there is left alone. Raises `BundleError`.
    """
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    manifest = replace(manifest, files=digests)
    try:
        validate(manifest)
    except SchemaError as error:
        raise BundleError(f"{path}: cannot write the bundle: {error}") from error
    with new_directory(path) as directory:
        for name, data in files.items():
            write_file(directory / name, data)
        write_file(directory / MANIFEST_FILE, manifest_text(manifest))
    return Bundle(path, manifest, dict(files))


@contextmanager
def new_directory(path: Path) -> Generator[Path]:
    """
    A directory to fill, which takes the place of `path` at the end, or leaves no trace on an error.

    Raises `BundleError` if `path` is something else than a bundle.
    """
    check_destination(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f".{path.name}.new-", dir=path.parent))
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror}") from error
    try:
        yield directory
        directory.chmod(0o755)
        _replace_directory(directory, path)
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror}") from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _replace_directory(new: Path, path: Path) -> None:
    """Rename `new` to `path`; a bundle that was there is put aside first and back on failure."""
    if not path.exists():
        new.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old-", dir=path.parent))
    try:
        path.rename(old)
        try:
            new.rename(path)
        except BaseException:  # an interrupt too must not lose the old bundle
            old.rename(path)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def canonical(value: object) -> bytes:
    """The one text of a JSON value that a manifest is written as."""
    text = json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=True)
    return (text + "\n").encode("ascii")


def manifest_text(manifest: Manifest) -> bytes:
    """The bytes of `manifest.json`, with its own digest."""
    return sealed_text(asdict(manifest))


def parse_sealed(path: Path, text: bytes) -> dict[str, Any]:
    """The JSON object of a text that has its own digest; raises `BundleError` if it is damaged."""

    def refuse_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    try:
        value = cast(object, json.loads(text.decode("ascii"), parse_constant=refuse_constant))
        written = canonical(value)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: damaged: not JSON") from error
    if not isinstance(value, dict):
        raise BundleError(f"{path}: damaged: not a JSON object")
    # The digest is of the content; that the text is canonical covers every byte of the text.
    if written != text:
        raise BundleError(f"{path}: damaged: its text is not what was written")
    content = cast(dict[str, Any], value)
    digest = content.pop(DIGEST_KEY, None)
    if hashlib.sha256(canonical(content)).hexdigest() != digest:
        raise BundleError(f"{path}: damaged: its content differs from its digest")
    return content


def sealed_text(content: Mapping[str, Any]) -> bytes:
    """The text of a JSON object with its own digest, which `parse_sealed` reads back."""
    return canonical({**content, DIGEST_KEY: hashlib.sha256(canonical(content)).hexdigest()})


def _parse_manifest(path: Path, text: bytes) -> Manifest:
    content = parse_sealed(path, text)
    try:
        manifest = decode(Manifest, content)
        validate(manifest)
    except SchemaError as error:
        raise BundleError(f"{path}: {error}") from error
    return manifest


def read_file(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; links and pipes are refused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise BundleError(f"{path}: not a regular file")
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror}") from error
    if len(data) > limit:
        raise BundleError(f"{path}: larger than {limit} bytes")
    return data


def write_file(path: Path, data: bytes) -> None:
    """Write a new file through to the disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
