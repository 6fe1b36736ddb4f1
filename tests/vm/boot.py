"""A guest: a kernel of the lab over this machine's root file system, with a time limit, run by virtme-ng under QEMU.

What the guest writes to this machine's files stays in the guest. Two ways lead out: its disk, and TCP to 10.0.2.2,
which is this machine's loopback.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .kernels import Kernel, Missing

__all__ = ["HOST", "Guest"]

#: This machine, as seen from the guest.
HOST = "10.0.2.2"

_PATH = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
_NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "modprobe": "kmod",
    "udevadm": "udev",
    "timeout": "coreutils",
}

#: Panic means the end. The emulated TSC is steady, and the kernel's other choice, the HPET, costs so much per reading
#: that a guest with any tracer in it gets nothing else done.
_CMDLINE = (
    "panic=-1",
    "tsc=reliable",
    "clocksource=tsc",
    # Devices that nobody uses here take a third of the boot.
    "module_blacklist=kvm,kvm_amd,kvm_intel,powernow_k8,ahci,libata,sr_mod,iTCO_wdt,i2c_i801,psmouse,aesni_intel,"
    "ghash_clmulni_intel,crct10dif_pclmul,sha512_ssse3,evdev,button",
)

#: The script's first lines: a network without DHCP, which takes longer than all the rest.
NETWORK = (
    "ip link set lo up; nic=$(basename /sys/class/net/e*); ip link set $nic up; ip address add 10.0.2.15/24 dev $nic"
)


class Guest:
    """A guest that runs a script and ends, or panics and ends. One at a time: it takes two CPUs.

    ``script``: its output comes from ``output``, the kernel's console from ``console``. Raises Missing where it can't
    be booted.
    """

    def __init__(
        self,
        kernel: Kernel,
        script: str,
        folder: Path,
        *,
        limit_s: float,
        cpus: int = 2,
        memory: str = "2G",
        disk: Path | None = None,
        append: Sequence[str] = (),
    ) -> None:
        file = folder / "guest.sh"
        file.write_text(f"{NETWORK}\n{script}\n")
        devices = ["-netdev user,id=lab", "-device virtio-net-pci,netdev=lab"]
        if disk:
            devices += [f"-drive if=none,id=disk,format=raw,file={disk}", "-device virtio-blk-pci,drive=disk"]
        vng = _vng()
        # KVM is not used even where it is there, so that every machine's lab is the same.
        command = [vng, "--disable-kvm", "--force-9p", "--run", str(kernel.image), "--cpus", str(cpus)]
        command += ["--memory", memory, "-v", "--cwd", str(folder), "--exec", f"bash {file}"]
        command += [f"--append={argument}" for argument in (*_CMDLINE, *append)]
        command += [f"--qemu-opts={device}" for device in devices]
        self._process = subprocess.Popen(
            # The limit is another process's, so that it holds even if this one is killed.
            ["timeout", "--signal=KILL", str(limit_s), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": f"{Path(vng).parent}:{_PATH}"},
            start_new_session=True,
        )
        assert self._process.stdout and self._process.stderr
        self.output, self.console = self._process.stdout, self._process.stderr

    def wait(self) -> None:
        """Wait for its end, which comes at the time limit at the latest."""
        self._process.wait()

    def close(self) -> None:
        """End it now, with everything that belongs to it: vng, the shells between, and QEMU are one session."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _vng() -> str:
    """Return the path of vng. Raises Missing where it, or what it needs, is not installed."""
    for command, package in _NEEDED.items():
        if not shutil.which(command, path=_PATH):
            raise Missing(f"{command} is needed to boot the lab's guests: install {package}.")
    vng = Path(sys.executable).parent / "vng"
    if not vng.exists():
        raise Missing(f"{vng} is needed to boot the lab's guests: install virtme-ng with pip.")
    return str(vng)
