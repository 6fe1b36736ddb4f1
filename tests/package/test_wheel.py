"""The wheel: holds exactly what it should, and works where there is no bcc, no BPF and no checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tracer
from tracer.commands import verbs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.timeout(600)

OLDEST = (3, 10)


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: a build/ folder in the checkout would bring back deleted files."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(checkout / name, source)
    for name in ("tracer", "bpf"):
        shutil.copytree(checkout / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    built = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", built, source)
    return next(built.glob("foreshock-*-py3-none-any.whl"))


def run(*command: str | Path, cwd: Path | None = None) -> str:
    # Isolated from the tests' environment: the checkout must not be importable.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_holds_exactly_the_packages_and_the_c_sources(wheel: Path, checkout: Path):
    expected = {"tracer/py.typed"}
    for path in checkout.glob("tracer/**/*.py"):
        expected.add(path.relative_to(checkout).as_posix())
    for pattern in ("sample/*.fsk", "reports/html/assets/*"):
        expected |= {path.relative_to(checkout).as_posix() for path in checkout.glob(f"tracer/{pattern}")}
    for pattern in ("*.c", "*.h", "headers/**/*.h"):
        expected |= {f"tracer/_bpf/{path.relative_to(checkout / 'bpf')}" for path in checkout.glob(f"bpf/{pattern}")}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = {Path(name).name for name in archive.namelist() if ".dist-info/licenses/" in name}
    assert names == expected, "pyproject.toml lists the packages"
    assert licences == {"LICENSE", "COPYING"}


def interpreters() -> list[Path]:
    """This interpreter and the oldest supported one that is installed here, which may be the same."""
    found = {sys.version_info[:2]: Path(sys.executable)}
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += Path.home().glob(".pyenv/versions/*/bin")
    for path in (folder / f"python3.{minor}" for folder in folders for minor in range(OLDEST[1], sys.version_info[1])):
        # A shim of a version manager may be there for a version that isn't: ask it.
        answer = subprocess.run([path, "-c", "import ensurepip"], capture_output=True) if path.is_file() else None
        if answer is not None and answer.returncode == 0:
            found.setdefault((3, int(path.name.rpartition(".")[2])), path)
    return list(dict.fromkeys([Path(sys.executable), found[min(found)]]))


@pytest.fixture(scope="module", params=interpreters(), ids=lambda path: path.name)
def installed(request: pytest.FixtureRequest, wheel: Path, checkout: Path, tmp_path_factory) -> Path:
    """The bin/ folder of a fresh environment with nothing but the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("venv")
    run(request.param, "-m", "venv", folder)
    python = folder / "bin" / "python"
    command: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    version = run(python, "-c", "import sys; print(*sys.version_info[:2])").split()
    if tuple(map(int, version)) == OLDEST:
        # The oldest Python with the oldest releases that pyproject.toml admits: its lower bounds are true.
        project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
        command += [need.replace(">=", "==") for need in project["dependencies"]]
    run(*command)
    return folder / "bin"


def test_runs_as_a_bare_wheel(installed: Path, checkout: Path, tmp_path: Path):
    foreshock = installed / "foreshock"
    assert run(foreshock, "--version", cwd=tmp_path).strip().endswith(tracer.__version__)
    for name in verbs():
        assert name in run(foreshock, "--help", cwd=tmp_path)
        assert "Usage: foreshock" in run(foreshock, name, "--help", cwd=tmp_path)
    # The C travels with it: layouts are read from the installed copy.
    slots = run(installed / "python", "-c", "from tracer.histogram import SLOTS; print(SLOTS)", cwd=tmp_path)
    assert int(slots) == 298
    for sample in sorted(checkout.glob("tracer/sample/*.fsk")):
        assert run(foreshock, "summary", sample, cwd=tmp_path)
        assert run(foreshock, "top", "--once", sample, cwd=tmp_path)
        # Whole, it is no black box of a node that died; it is read as one all the same.
        assert run(foreshock, "postmortem", sample, cwd=tmp_path)
