"""A bundle: a tar.gz of named members and their checksums, the same bytes for the same members, wherever it is made."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from typing import IO

from tracer.errors import OutputError, RecordingError
from tracer.recording.paths import shown

__all__ = ["MANIFEST", "verify", "write"]

#: In the form of sha256sum, so that `sha256sum -c SHA256SUMS` checks it without foreshock.
MANIFEST = "SHA256SUMS"
_MTIME = 315532800  # 1980-01-01, before which some archives can't tell the time
_AT_ONCE = 1 << 20
_MOST_BYTES = 4 << 30
_MOST_MEMBERS = 64
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]{0,99})")


def write(path: str, members: Mapping[str, str], *, overwrite: bool = False) -> str:
    """Write the files ``members`` (name in the archive: path) to ``path``; return the manifest's SHA-256.

    It appears whole or not at all, with mode 0600. Raises OutputError.
    """
    try:
        sums = {name: _file_sum(members[name]) for name in sorted(members)}
        manifest = "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()
        folder = os.path.dirname(path) or "."
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".foreshock-bundle-") as file:
            _pack(file, manifest, {name: members[name] for name in sorted(members)})
            file.flush()
            os.fsync(file.fileno())
            _put(file.name, path, overwrite)
    except (OSError, ValueError) as error:
        raise _error(path, error) from None
    return hashlib.sha256(manifest).hexdigest()


def verify(path: str) -> tuple[dict[str, int], str]:
    """Return the members' sizes by name and the manifest's SHA-256. Raises RecordingError when anything differs.

    Nothing is unpacked, and no more than 4 GiB are read.
    """
    name = shown(path)
    try:
        with open(path, "rb") as raw, gzip.open(raw) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            found, sizes, manifest = _sums(archive)
            # Damage is told at the stream's end; no more than a record's zeros follow the last member.
            if len(stream.read(2 * tarfile.RECORDSIZE)) > tarfile.RECORDSIZE:
                raise ValueError("more than a bundle")
    except RecordingError as error:
        raise RecordingError(f"{name}: {error.message}", hint=error.hint) from None
    except (OSError, EOFError, tarfile.TarError, zlib.error, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no bundle, or cut off or damaged"
        raise RecordingError(f"{name}: {reason.lower()}.", hint="bundles are made by: foreshock bundle") from None
    if manifest is None:
        raise RecordingError(f"{name}: it has no {MANIFEST}.", hint="bundles are made by: foreshock bundle")
    told = _told(manifest, name)
    for member in sorted(found.keys() | told.keys()):
        if found.get(member) != told.get(member):
            what = "differs from its checksum" if member in found and member in told else "is missing"
            what = "is not in the manifest" if member not in told else what
            raise RecordingError(f"{name}: {member} {what}.", hint="copy the bundle again")
    return sizes, hashlib.sha256(manifest).hexdigest()


def _pack(file: IO[bytes], manifest: bytes, members: Mapping[str, str]) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        archive.addfile(_info(MANIFEST, len(manifest)), io.BytesIO(manifest))
        for name, source in members.items():
            with open(source, "rb") as content:
                archive.addfile(_info(name, os.fstat(content.fileno()).st_size), content)


def _info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, _MTIME, 0o600
    return info


def _put(temporary: str, path: str, overwrite: bool) -> None:
    if not overwrite:
        os.link(temporary, path)
        return
    if os.path.isdir(path):
        raise IsADirectoryError(21, "it is a folder")
    # The temporary's own name is still removed: a second link takes the place of the old file at once.
    beside = f"{temporary}.whole"
    os.link(temporary, beside)
    try:
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _file_sum(path: str) -> str:
    with open(path, "rb") as file:
        return _sum(file)


def _sum(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_AT_ONCE):
        digest.update(piece)
    return digest.hexdigest()


def _sums(archive: tarfile.TarFile) -> tuple[dict[str, str], dict[str, int], bytes | None]:
    found: dict[str, str] = {}
    sizes: dict[str, int] = {}
    manifest, read = None, 0
    for member in archive:
        read += member.size
        content = archive.extractfile(member) if member.isreg() else None
        if content is None or read > _MOST_BYTES or len(sizes) > _MOST_MEMBERS or member.name in found:
            raise RecordingError("it holds what no bundle has.", hint="bundles are made by: foreshock bundle")
        if member.name == MANIFEST:
            manifest = content.read(_AT_ONCE)
        else:
            found[member.name], sizes[member.name] = _sum(content), member.size
    return found, sizes, manifest


def _told(manifest: bytes, name: str) -> dict[str, str]:
    matches = [_LINE.fullmatch(line) for line in manifest.decode("ascii", "replace").splitlines()]
    if not all(matches):
        raise RecordingError(f"{name}: its {MANIFEST} is damaged.", hint="copy the bundle again")
    return {match[2]: match[1] for match in matches if match}


def _error(path: str, error: OSError | ValueError) -> OutputError:
    if isinstance(error, FileExistsError):
        return OutputError(f"{shown(path)} exists.", hint="choose another name, or allow it: --overwrite")
    reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
    return OutputError(f"can't write {shown(path)}: {reason}.", hint="choose another path")
