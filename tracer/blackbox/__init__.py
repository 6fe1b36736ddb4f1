"""The flight recorder on disk: what the node's last minutes were, readable after whatever ended them.

The recorder's side and the reader's are found here; ``docs/blackbox.md`` is the format. Both are imported when they are
asked for: the writer's process is small because it imports neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.blackbox.recorder import Recorder as Recorder

__all__ = ["DEFAULT_PATH", "Recorder"]

DEFAULT_PATH = "/var/lib/foreshock/blackbox.fbx"


def __getattr__(name: str) -> Any:
    if name == "Recorder":
        from tracer.blackbox.recorder import Recorder

        return Recorder
    raise AttributeError(name)
