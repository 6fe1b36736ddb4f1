"""Debian kernels for the lab, with their modules and headers: fetched once from the archive, kept in a cache folder.

Nothing is installed: the packages are unpacked in the cache, so a kernel of any suite can be had beside any other.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Kernel", "Missing", "cache", "fetch"]

ARCHIVE = "http://deb.debian.org"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FAULTS = Path(__file__).parent / "faults"

#: apt-get may wait for long for a network that isn't there.
_FETCH_S = 300
_BUILD_S = 300


class Missing(Exception):
    """Something the lab needs is not here; the text says what and how to get it."""


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel: ``release`` is what ``uname -r`` says in the guest."""

    release: str
    folder: Path

    @property
    def image(self) -> Path:
        return self.folder / "boot" / f"vmlinuz-{self.release}"

    @property
    def headers(self) -> Path:
        return self.folder / "usr" / "src" / f"linux-headers-{self.release}"

    def faults(self) -> Path:
        """Return the folder with the fault modules built for this kernel. Raises Missing if they can't be built."""
        sources = sorted(
            path for path in FAULTS.iterdir() if path.suffix == ".c" or path.name in ("Kbuild", "Makefile")
        )
        key = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
        built = self.folder / f"faults-{key}"
        if not built.exists():
            with _made(built) as folder:
                for source in sources:
                    shutil.copy(source, folder)
                _run(["make", "-C", folder, f"KDIR={self.headers}", "modules"], "to build the fault modules", _BUILD_S)
        return built


def cache() -> Path:
    """Return the lab's cache folder. Not below /var or /tmp: a guest has memory of its own there."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "foreshock-lab"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fetch(suite: str = "bookworm") -> Kernel:
    """Return the suite's kernel: the one in the cache, else the archive's newest.

    Raises Missing where there is neither.
    """
    if platform.machine() != "x86_64":
        raise Missing(f"the lab's guests are x86-64, which {platform.machine()} would take too long to emulate.")
    folder = cache() / suite
    if not folder.exists():
        if not shutil.which("apt-get"):
            raise Missing("the lab's kernels come with apt-get: run it on Debian or Ubuntu.")
        if not KEYRING.exists():
            raise Missing(f"{KEYRING} is needed to check the kernels: install debian-archive-keyring.")
        with _made(folder) as unpacked, tempfile.TemporaryDirectory(dir=cache()) as download:
            for package in _download(suite, Path(download)):
                _run(["dpkg-deb", "-x", package, unpacked], "to unpack the kernels", 60)
            # Later kernels have their image beside their modules.
            for image in unpacked.glob("usr/lib/modules/*/vmlinuz"):
                (unpacked / "boot").mkdir(exist_ok=True)
                image.rename(unpacked / "boot" / f"vmlinuz-{image.parent.name}")
            # The headers name each other by where they are installed, which they are not.
            for makefile in (unpacked / "usr" / "src").glob("*/Makefile"):
                makefile.write_text(makefile.read_text().replace(" /usr/src/", f" {folder}/usr/src/"))
    release = next((folder / "boot").glob("vmlinuz-*")).name.removeprefix("vmlinuz-")
    return Kernel(release, folder)


def _download(suite: str, folder: Path) -> list[Path]:
    """Download a suite's newest kernel with its headers, by package lists of our own; return the packages."""
    sources, lists = folder / "sources.list", folder / "lists"
    (lists / "partial").mkdir(parents=True)
    signed = f"deb [signed-by={KEYRING} arch=amd64]"
    sources.write_text(
        f"{signed} {ARCHIVE}/debian {suite} main\n{signed} {ARCHIVE}/debian-security {suite}-security main\n"
    )
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": lists,
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "Acquire::Retries": 2,
        "Acquire::http::Timeout": 20,
        # Else it wants to give up root, and the folder is root's.
        "APT::Sandbox::User": "root",
    }
    settings = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    why = f"to fetch the kernel of {suite}; is {ARCHIVE} reachable?"
    _run(["apt-get", *settings, "-qq", "--error-on=any", "update"], why, _FETCH_S)

    def depends(package: str) -> list[str]:
        shown = _run(["apt-cache", *settings, "depends", package], why, 60)
        return re.findall(r"^ *Depends: (linux-\S+)$", shown, re.MULTILINE)

    image = next(name for name in depends("linux-image-amd64") if name.startswith("linux-image-"))
    release = image.removeprefix("linux-image-")
    headers = f"linux-headers-{release}"
    # Later ones are in parts. The compilers' packages have no files.
    names = [image, *(name for name in depends(image) if name.endswith(release))]
    names += [headers, *(name for name in depends(headers) if not name.startswith("linux-compiler-"))]
    _run(["apt-get", *settings, "-qq", "download", *names], why, _FETCH_S, cwd=folder)
    return sorted(folder.glob("*.deb"))


@contextmanager
def _made(folder: Path) -> Iterator[Path]:
    """Give a folder to fill, which is ``folder`` only when all of it is there."""
    making = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    making.chmod(0o755)
    try:
        yield making
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _run(command: list[object], why: str, limit_s: int, cwd: Path | None = None) -> str:
    words = list(map(str, command))
    try:
        done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{words[0]} is needed {why} ({error})") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        # A compiler says first what is wrong, apt-get says it last.
        telling = next((line for line in said if "error: " in line.lower()), said[-1])
        raise Missing(f"{words[0]} failed, {why} ({telling})")
    return done.stdout
