"""Compile, check, load, attach, hand every descriptor over, exit.

Run by tracer/kernel/loading.py as a child, under whichever interpreter has bcc: standard library only, Python 3.6.
The job is one JSON value on standard input. The answers are JSON packets on a Unix socket, each with at most
one descriptor. What is attached lives as long as the parent holds the descriptors, and this process never
outlives its parent.
"""

import array
import contextlib
import ctypes
import json
import os
import socket
import struct
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from . import source, syscalls
from .btf import Btf

_NO_TRACEPOINT = "this kernel has no tracepoint "


class Refused(Exception):
    """The whole job can't be done; the reason is sent to the parent."""


class _KernelTypes:
    """The kernel's types, read before it is known what for; a failure is kept until they are needed."""

    def __init__(self):
        # type: () -> None
        self._btf = None  # type: Optional[Btf]
        try:
            self._btf = Btf.running_kernel()
        except (OSError, ValueError, struct.error) as error:
            self._reason = error

    def get(self):
        # type: () -> Btf
        if self._btf is None:
            raise Refused(
                "the kernel's type information (/sys/kernel/btf/vmlinux) can't be read: {}".format(self._reason)
            )
        return self._btf


class Loader:
    def __init__(self, job, channel):
        # type: (Dict[str, Any], socket.socket) -> None
        self.job = job
        self.channel = channel
        self.seconds = {}  # type: Dict[str, float]
        self._began = time.monotonic()

    def run(self, types):
        # type: (_KernelTypes) -> None
        btf = types.get()
        probes, macros = self._usable(btf)
        self._lap("btf")
        programs = source.programs_of(probes)
        if programs:
            module = self._compile(source.assemble(self.job["bpf"], probes, programs), macros)
            self._hand_over_maps(module)
            self._lap("compile")
            self._fill()
            for program in programs:
                self._load(module, program, btf)
            self._lap("attach")
        self.send({"done": True, "seconds": self.seconds})

    def send(self, message, descriptor=None):
        # type: (Dict[str, Any], Optional[int]) -> None
        ancillary = []  # type: List[Tuple[int, int, array.array[int]]]
        if descriptor is not None:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        self.channel.sendmsg([json.dumps(message).encode()], ancillary)

    def _lap(self, name):
        # type: (str) -> None
        now = time.monotonic()
        self.seconds[name] = round(now - self._began, 3)
        self._began = now

    def _usable(self, btf):
        # type: (Btf) -> Tuple[List[Dict[str, Any]], Dict[str, int]]
        """Return the probes that this kernel can carry, and every constant of their C text; report the others."""
        macros = dict(self.job["constants"])
        usable = []  # type: List[Dict[str, Any]]
        names = set()
        for probe in self.job["probes"]:
            reason, found = self._examine(probe, btf)
            lacking = [name for name in probe["requires"] if name not in names]
            if not reason and lacking:
                reason = "needs {}, which can't run here".format(", ".join(lacking))
            if reason:
                self.send({"refused": probe["name"], "reason": reason})
                continue
            macros.update(found)
            names.add(probe["name"])
            usable.append(probe)
        return usable, macros

    def _examine(self, probe, btf):
        # type: (Dict[str, Any], Btf) -> Tuple[str, Dict[str, int]]
        """Return why a probe can't run ("" if it can), and its constants. Hooks the kernel lacks are taken out."""
        macros = {}  # type: Dict[str, int]
        for member in probe["members"]:
            find = btf.bit_offset if member["bit"] else btf.member_offset
            found = [path for path in member["paths"] if find(path) is not None]
            if found and member["bit"]:
                macros[member["macro"]], macros[member["macro"] + "__BIT"] = divmod(find(found[0]) or 0, 8)
            elif found:
                macros[member["macro"]] = find(found[0]) or 0
                macros[member["macro"] + "__SIZE"] = btf.member_size(found[0]) or 0
            elif not member["optional"]:
                return "this kernel has no {}".format(" or ".join(member["paths"])), {}
        for enum, name, optional in probe["enums"]:
            value = btf.enum_value(enum, name)
            if value is not None:
                macros[name.upper()] = value
            elif not optional:
                return "this kernel's enum {} has no {}".format(enum, name), {}
        kept, missing = [], []
        for hook in probe["hooks"]:
            reason = self._examine_hook(hook, btf, macros)
            if not reason:
                kept.append(hook)
            elif hook["optional"]:
                missing.append(reason)
            else:
                return reason, {}
        if not kept:
            return "; ".join(_joined(missing)), {}
        for reason in _joined(missing):
            self.send({"missing": probe["name"], "reason": reason})
        probe["hooks"] = kept
        return "", macros

    def _examine_hook(self, hook, btf, macros):
        # type: (Dict[str, Any], Btf, Dict[str, int]) -> str
        if hook["type"] == "clock":
            return "" if self.job["clock_cpus"] else "no CPU may carry a clock event (all are isolated or left out)"
        found = []
        for name in hook["tracepoints"]:
            prototype = btf.tracepoint(name)
            if prototype is None:
                continue
            arguments = prototype[1]
            if arguments[: len(hook["args"])] != hook["args"]:
                return "tracepoint {} has other arguments ({}) than those this version knows ({})".format(
                    name, ", ".join(arguments), ", ".join(hook["args"])
                )
            macros[name.upper() + "__ARGS"] = len(arguments)
            found.append(name)
        if not found:
            return _NO_TRACEPOINT + " or ".join(hook["tracepoints"])
        hook["tracepoints"] = found
        return ""

    def _compile(self, text, macros):
        # type: (str, Dict[str, int]) -> Any
        try:
            from bcc import BPF
        except ImportError as error:
            raise Refused("bcc can't be imported by {}: {}".format(sys.executable, error)) from None
        # Read by libbcc through getenv(3) when it compiles.
        os.environ["BCC_KERNEL_SOURCE"] = self.job["headers"]
        # Once is enough: clang's own optimiser would run before bcc's, which does it all again.
        once = ["-Xclang", "-disable-llvm-passes", "-g0"]
        flags = ["-D{}={}".format(name, value) for name, value in sorted(macros.items())]
        try:
            return BPF(text=text.encode(), cflags=flags + once + ["-Wno-macro-redefined", "-Wno-unknown-pragmas"])
        except Exception as error:  # bcc raises plain Exception; the compiler's own words are on stderr
            raise Refused("bcc could not compile the programs: {}".format(error)) from None

    def _hand_over_maps(self, module):
        # type: (Any) -> None
        self.maps = {}  # type: Dict[str, int]
        for name, expected in self.job["maps"].items():
            try:
                table = module[name.encode()]
            except KeyError:
                continue  # of a probe that was left out
            for problem in _differences(table.Leaf, expected):
                raise Refused("layout of map {}: {}".format(name, problem))
            self.maps[name] = table.map_fd
            self.send({"map": name}, table.map_fd)
        for name in self.job["plain_maps"]:
            try:
                descriptor = module[name.encode()].map_fd
            except KeyError:
                continue
            self.maps[name] = descriptor
            self.send({"map": name}, descriptor)

    def _fill(self):
        # type: () -> None
        """Wait until the parent has filled the maps that programs read: they must not run before."""
        self.send({"fill": True})
        if self.channel.recv(16) != b"go":
            raise Refused("the parent went away")

    def _load(self, module, program, btf):
        # type: (Any, source.Program, Btf) -> None
        code = module.dump_func(program.name.encode())
        prog_type, btf_id = syscalls.PROG_TYPE_RAW_TRACEPOINT, 0
        if program.type == "clock":
            prog_type = syscalls.PROG_TYPE_PERF_EVENT
        elif program.type == "btf":
            found = btf.tracepoint(program.tracepoints[0])
            prog_type, btf_id = syscalls.PROG_TYPE_TRACING, found[0] if found else 0
        try:
            descriptor = syscalls.load_program(prog_type, code, program.name, btf_id)
        except OSError as error:
            raise Refused("the kernel refused program {}: {}".format(program.name, error.strerror)) from None
        self.send({"program": program.name, "probes": program.handlers}, descriptor)
        try:
            self._attach(program, descriptor)
        except OSError as error:
            raise Refused("program {} can't be attached: {}".format(program.name, error.strerror)) from None

    def _attach(self, program, descriptor):
        # type: (source.Program, int) -> None
        if program.type == "clock":
            links = [syscalls.attach_clock(descriptor, cpu, program.hz) for cpu in self.job["clock_cpus"]]
        elif program.type == "btf":
            links = [syscalls.attach_raw_tracepoint(descriptor, None)]
        else:
            links = [syscalls.attach_raw_tracepoint(descriptor, name) for name in program.tracepoints]
        for link in links:
            self.send({"link": program.name}, link)
            os.close(link)


def _joined(reasons):
    # type: (List[str]) -> List[str]
    """Say of all tracepoints in one sentence that this kernel lacks them."""
    lacking = [reason[len(_NO_TRACEPOINT) :] for reason in reasons if reason.startswith(_NO_TRACEPOINT)]
    others = [reason for reason in reasons if not reason.startswith(_NO_TRACEPOINT)]
    return ([_NO_TRACEPOINT + ", ".join(lacking)] if lacking else []) + others


def _differences(leaf, expected):
    # type: (Any, Dict[str, Any]) -> List[str]
    """Compare what bcc compiled with the layout user space read from the same header."""
    if ctypes.sizeof(leaf) != expected["size"]:
        return ["{} bytes compiled, {} read from the header".format(ctypes.sizeof(leaf), expected["size"])]
    return [
        "{} at byte {} compiled, {} read from the header".format(field, getattr(leaf, field).offset, offset)
        for field, offset in expected["fields"].items()
        if hasattr(leaf, field) and getattr(leaf, field).offset != offset
    ]


def main():
    # type: () -> None
    syscalls.die_with_parent()
    channel = socket.socket(fileno=int(sys.argv[2]))
    # Everything that does not depend on the job comes before it: the parent may still be busy importing.
    types = _KernelTypes()
    with contextlib.suppress(ImportError):  # said when a probe needs it
        import bcc  # noqa: F401
    text = sys.stdin.read()
    if not text:
        os._exit(0)  # the parent had no use for it
    loader = Loader(json.loads(text), channel)
    try:
        loader.run(types)
    except Refused as error:
        loader.send({"error": str(error)})
    # Not exit(): bcc's own clean-up has nothing to do here, and LLVM's could only fail.
    sys.stderr.flush()
    os._exit(0)
