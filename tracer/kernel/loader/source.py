"""One C text out of many files: the probes' own, and a program per attach point that calls their handlers.

Standard library only and Python 3.6.
"""

import os
import re
from typing import Any, Dict, List, Set

_INCLUDE = re.compile(r'^#include "([\w.]+)"$')

_PROGRAM = """
int {program}(u64 *ctx)
{{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_row *row = cpus.lookup(&cpu);
	u64 now = 0;

	if (!row)
		return 0;
{clock}{calls}	return 0;
}}
"""


class Program:
    """One attach point and the handlers that run there, in order."""

    def __init__(self, hook):
        # type: (Dict[str, Any]) -> None
        self.event = hook["event"]  # type: str
        self.type = hook["type"]  # type: str
        self.tracepoints = hook["tracepoints"]  # type: List[str]
        self.hz = hook["hz"]  # type: int
        self.name = "on_" + self.event + ("_{}hz".format(self.hz) if self.hz else "")
        self.handlers = []  # type: List[str]
        self.everywhere = set()  # type: Set[str]
        self.timed = False

    def add(self, probe, hook):
        # type: (str, Dict[str, Any]) -> None
        self.handlers.append(probe)
        self.timed = self.timed or hook["timed"]
        if hook["everywhere"]:
            self.everywhere.add(probe)

    def text(self):
        # type: () -> str
        calls = []
        for probe in self.handlers:
            call = "{}_on_{}(ctx, now, cpu, row);\n".format(probe, self.event)
            # A CPU left out by the user is skipped, except where a handler follows tasks from CPU to CPU.
            calls.append("\t" + call if probe in self.everywhere else "\tif (!row->untraced)\n\t\t" + call)
        clock = "\tnow = bpf_ktime_get_ns();\n" if self.timed else ""
        return _PROGRAM.format(program=self.name, clock=clock, calls="".join(calls))


def programs_of(probes):
    # type: (List[Dict[str, Any]]) -> List[Program]
    """Return the programs that the probes' hooks need: handlers of one event share one program."""
    programs = {}  # type: Dict[str, Program]
    for probe in probes:
        for hook in probe["hooks"]:
            program = Program(hook)
            programs.setdefault(program.name, program).add(probe["name"], hook)
    return list(programs.values())


def assemble(folder, probes, programs):
    # type: (str, List[Dict[str, Any]], List[Program]) -> str
    """Return the whole C text.

    bcc rewrites map accesses only in the main file, so ``#include "…"`` of our own files is resolved here,
    each file once; ``#line`` keeps the compiler's messages pointing at the real ones.
    """
    seen = set()  # type: Set[str]
    parts = [_file(folder, probe["name"] + ".bpf.c", seen) for probe in probes if probe["hooks"]]
    parts.append('#line 1 "attach points"\n')
    parts.extend(program.text() for program in programs)
    return "".join(parts)


def _file(folder, name, seen):
    # type: (str, str, Set[str]) -> str
    seen.add(name)
    lines = ['#line 1 "{}"\n'.format(name)]
    with open(os.path.join(folder, name)) as file:
        for number, line in enumerate(file, start=1):
            included = _INCLUDE.match(line.rstrip())
            if not included:
                lines.append(line.rstrip("\n") + "\n")
            elif included.group(1) not in seen:
                lines.append(_file(folder, included.group(1), seen))
                lines.append('#line {} "{}"\n'.format(number + 1, name))
            else:
                lines.append("\n")
    return "".join(lines)
