"""Find the interpreter that has the distribution's bcc: usually not the one foreshock runs under."""

from __future__ import annotations

import os
import subprocess
from functools import cache

from tracer.errors import UnavailableError

__all__ = ["find_interpreter"]

_HINT = "Debian, Ubuntu: apt-get install python3-bpfcc; Fedora, RHEL: dnf install python3-bcc"


@cache
def find_interpreter() -> str:
    """Return the path of a Python that can import bcc.

    ``FORESHOCK_PYTHON`` names it outright. Raises UnavailableError when there is none.
    """
    chosen = os.environ.get("FORESHOCK_PYTHON")
    candidates = [chosen] if chosen else ["/usr/bin/python3", "/usr/libexec/platform-python", "/usr/local/bin/python3"]
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and _has_bcc(candidate):
            return candidate
    if chosen:
        raise UnavailableError(f"FORESHOCK_PYTHON={chosen} is no Python that has bcc.", hint=_HINT)
    raise UnavailableError("bcc is not installed for the system's Python.", hint=_HINT)


def _has_bcc(interpreter: str) -> bool:
    # Where distributions put it. Asking the interpreter itself takes 15 to 60 ms of the second that a start may take.
    version = os.path.basename(os.path.realpath(interpreter))
    folders = (
        "/usr/lib/python3/dist-packages",
        f"/usr/lib/{version}/site-packages",
        f"/usr/lib64/{version}/site-packages",
    )
    ours = interpreter.startswith("/usr/bin/python")
    if ours and any(os.path.isfile(f"{folder}/bcc/table.py") for folder in folders):
        return True
    look = "import importlib.util as u; print(u.find_spec('bcc') and u.find_spec('bcc.table') and 'found')"
    try:
        # Its word counts, not its status: /bin/true is no Python.
        answer = subprocess.run([interpreter, "-I", "-c", look], capture_output=True, timeout=20).stdout
        return answer.strip() == b"found"
    except (OSError, subprocess.TimeoutExpired):
        return False
