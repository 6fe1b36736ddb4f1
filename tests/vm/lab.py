"""Run one scenario: boot a guest, let an agent settle, make the fault, and note everything until the guest is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .boot import HOST, Guest
from .kernels import Kernel, Missing, cache
from .receiver import CHECKOUT, Notes, fleet
from .scenarios import Scenario
from .score import Run

__all__ = ["run"]

#: From nothing to the fault. An emulated machine on a busy host is slow.
_BOOT_S = 300
#: What the agent may need before the fault, once it says that it watches: names of kernel code, histories.
_SETTLE_S = 6
#: The dead-man rule speaks after three intervals.
_SILENCE_S = 6
_DISK_BYTES = 160 << 20
_BOX = "foreshock.fbx"


def run(scenario: Scenario, kernel: Kernel, measured: str = "") -> Run:
    """Run a scenario in a guest of its own; its lines are kept in the cache folder. Raises Missing.

    ``measured``: when, and with which revision, for whoever reads it later.
    """
    logs = cache() / "runs"
    logs.mkdir(exist_ok=True)
    # Below the cache: in the guest, /tmp and /var are others.
    with tempfile.TemporaryDirectory(prefix="run-", dir=cache()) as name, ExitStack() as stack:
        folder, notes = Path(name), Notes(logs / f"{scenario.name}.log")
        disk = _disk(folder)
        port = stack.enter_context(fleet(notes))
        script = _script(scenario, kernel, port)
        guest = Guest(kernel, script, folder, limit_s=_BOOT_S + scenario.bound_s, disk=disk)
        stack.callback(guest.close)
        notes.follow("guest", guest.output)
        notes.follow("console", guest.console)
        guest.wait()
        # A guest that panicked is silent now.
        time.sleep(_SILENCE_S if scenario.panic else 0)
        stack.close()
        notes.finish()
        return Run(scenario, kernel.release, tuple(notes.lines), _postmortem(disk, folder), measured)


def _disk(folder: Path) -> Path:
    """Make a disk for the black box, ext4 as on a node; only what is written takes room."""
    disk = folder / "disk"
    with disk.open("wb") as file:
        file.truncate(_DISK_BYTES)
    _call(["mkfs.ext4", "-q", disk], "e2fsprogs")
    return disk


def _script(scenario: Scenario, kernel: Kernel, port: int) -> str:
    settings = [
        f"echo {value} >{name}" if name.startswith("/") else f"sysctl -qw {name}={value}"
        for name, value in scenario.settings.items()
    ]
    agent = (
        f"$PYTHON -m tracer agent --foreground --stream {HOST}:{port} "
        f"--blackbox /run/lab/{_BOX} --state /run/lab/alerts.state"
    )
    return f"""
FAULTS={kernel.faults()} LAB={Path(__file__).parent} PYTHON={sys.executable}
card=$(basename $(readlink -f /sys/class/net/$nic/device))
for irq in $(sed -n "s/^ *\\([0-9]*\\):.* $card-.*/\\1/p" /proc/interrupts); do
	echo {scenario.network_cpu} >/proc/irq/$irq/smp_affinity_list
done
mkdir /run/lab && mount /dev/vda /run/lab
{chr(10).join(settings)}
{scenario.before}
cd {CHECKOUT}
for attempt in 1 2 3; do
	{agent} >/run/agent.log 2>&1 &
	agent=$!
	until grep -q ^state /run/agent.log || ! kill -0 $agent; do sleep 0.2; done
	sed 's/^/agent: /' /run/agent.log
	kill -0 $agent && break
done || exit
sleep {_SETTLE_S}
echo lab: fault $(date +%s.%N)
( {scenario.commands} ) &
sleep {scenario.bound_s}
echo lab: over
kill $agent
wait $agent
sed 's/^/agent: /' /run/agent.log
"""


def _postmortem(disk: Path, folder: Path) -> dict[str, Any]:
    """Return what ``foreshock postmortem`` says of the disk that a guest left; empty if it can't read it."""
    mounted = folder / "mounted"
    mounted.mkdir()
    # As the node would after its reboot: the file system replays its journal first.
    _call(["mount", "-o", "loop", disk, mounted], "mount")
    try:
        command = [sys.executable, "-m", "tracer", "postmortem", "--json", mounted / _BOX]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    finally:
        _call(["umount", mounted], "mount")
    try:
        story = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"sentences": [done.stderr.strip()]}
    return story if isinstance(story, dict) else {}


def _call(command: list[object], package: str) -> None:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    try:
        subprocess.run(list(map(str, command)), check=True, capture_output=True, env={**os.environ, "PATH": path})
    except FileNotFoundError:
        raise Missing(f"{command[0]} is needed: install {package}.") from None
    except subprocess.CalledProcessError as error:
        raise Missing(f"{command[0]} failed: {error.stderr.decode(errors='replace').strip()}") from None
