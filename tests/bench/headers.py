"""A kernel header tree for the distribution's bcc programs, made of the running kernel's BTF.

bcc compiles their C text against kernel headers, which few machines have. The tree holds the whole of BTF as
``linux/types.h``, so that their structs are this kernel's own, and every other header leads there. Their programs
stay unchanged.
"""

from __future__ import annotations

import mmap
import shutil
import subprocess
from functools import cache
from pathlib import Path

from .machine import CHECKOUT, command, folder

__all__ = ["header_tree"]

#: What bcc includes before everything else. BTF has no macros: those that the programs use are here.
_FIRST = """
#define CONFIG_BPF_SYSCALL 1
#define CONFIG_64BIT 1
/* bcc's copy of this header would define what BTF defines. */
#define _UAPI__LINUX_BPF_H__ 1
#define BPF_NO_PRESERVE_ACCESS_INDEX 1
#define TASK_RUNNING 0
#define NULL ((void *)0)
#define __always_inline inline __attribute__((always_inline))
#define PAGE_SIZE {page_size}UL
"""

_EMPTY = (
    "linux/bpf_common.h",
    "linux/init_task.h",
    "linux/interrupt.h",
    "linux/irq.h",
    "linux/irqdesc.h",
    "linux/nsproxy.h",
    "linux/pid_namespace.h",
    "linux/sched.h",
    "uapi/linux/bpf.h",
    "uapi/linux/if_packet.h",
    "uapi/linux/ptrace.h",
)


@cache
def header_tree() -> Path:
    """Write the tree and return its folder, for BCC_KERNEL_SOURCE."""
    bpftool = command("bpftool", "bpftool", "to turn BTF into headers for bcc's programs")
    include = folder() / "headers" / "include"
    for name in _EMPTY:
        (include / name).parent.mkdir(parents=True, exist_ok=True)
        (include / name).write_text("#include <linux/types.h>\n")
    shutil.copytree(CHECKOUT / "bpf/headers/include/asm", include / "asm")
    for name in ("version.h", "log2.h"):
        shutil.copy(CHECKOUT / "bpf/headers/include/linux" / name, include / "linux")
    (include / "linux/kconfig.h").write_text(_FIRST.format(page_size=mmap.PAGESIZE))
    with (include / "linux/types.h").open("w") as file:
        dump = [bpftool, "btf", "dump", "file", "/sys/kernel/btf/vmlinux", "format", "c"]
        subprocess.run(dump, stdout=file, check=True)
    return include.parent
