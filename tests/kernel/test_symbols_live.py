"""Names of functions in real stacks: C++ with and without its symbols, and code that a process makes, contained too."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from kernel.stacks import Stacks

from tracer.kernel.symbols import files, kallsyms
from tracer.kernel.symbols.kallsyms import Kallsyms
from tracer.kernel.symbols.kernel import KernelStacks

KNOWN, UNKNOWN = "5f" * 20, "e1" * 20
CPLUSPLUS = """
namespace work {
template <typename T> struct Queue {
	volatile T count = 0;
	__attribute__((noinline)) void spin(T until) { while (count < until) count = count + 1; }
};
struct Base { virtual void run() = 0; };
struct Job : Base {
	Queue<unsigned long> queue;
	__attribute__((noinline)) void run() override { queue.spin(~0UL); }
};
}
int main()
{
	auto job = [](work::Base *base) { base->run(); };
	work::Job one;
	job(&one);
}
"""
#: Makes a function that calls itself in a circle, and says so in argv[1] under the name argv[2].
MAKER = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfe};
#elif defined(__aarch64__)
static const unsigned int code[] = {0xa9bf7bfd, 0x910003fd, 0x14000000};
#endif
extern "C" void runs_what_it_made(void (*made)(void)) { made(); }
int main(int argc, char **argv)
{
	char path[64];
	void *made = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(made, code, sizeof(code));
	mprotect(made, 4096, PROT_READ | PROT_EXEC);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(path, "w");
	fprintf(map, "%lx %x %s\\n", (long)made, 4096, argv[1]);
	fclose(map);
	printf("made\\n");
	fflush(stdout);
	runs_what_it_made((void (*)(void))made);
}
"""


def built(folder: Path, compiler: str, name: str, text: str, build_id: str = "") -> Path:
    source, program = folder / "source.cpp", folder / name
    source.write_text(text)
    flags = ["-O0", "-fno-omit-frame-pointer", f"-Wl,--build-id={f'0x{build_id}' if build_id else 'none'}"]
    subprocess.run([compiler, *flags, "-o", program, source], check=True)
    return program


@contextmanager
def running(*commands: Sequence[str | Path]) -> Iterator[list[subprocess.Popen[str]]]:
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) for command in commands
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def user_stacks(stacks: Stacks, comm: str) -> list[list[str]]:
    """Return the user part of a program's stacks, the heaviest first."""
    rows = stacks.rows[stacks.rows["comm"] == comm.encode()]
    return [stacks.names(row["stack"], b"u") for row in rows[np.argsort(rows["weight"])[::-1]]]


def watched(stacks: Stacks, functions: Mapping[str, str]) -> dict[str, list[str]]:
    """Return a stack of each program (by its name) that has the function wanted in it."""
    found: dict[str, list[str]] = {}
    for _ in range(40):
        time.sleep(0.25)
        stacks.collect()
        for comm, function in functions.items():
            for one in user_stacks(stacks, comm):
                if any(name.startswith(function) for name in one):
                    found.setdefault(comm, one)
        if found.keys() == functions.keys():
            return found
    raise AssertionError({comm: user_stacks(stacks, comm) for comm in functions})


def test_cplusplus_is_named_as_it_is_written_and_a_stripped_program_by_its_debug_file(attach, tmp_path, monkeypatch):
    whole = built(tmp_path, "g++", "whole", CPLUSPLUS)
    known = built(tmp_path, "g++", "known", CPLUSPLUS, KNOWN)
    unknown = built(tmp_path, "g++", "unknown", CPLUSPLUS, UNKNOWN)
    debug = tmp_path / KNOWN[:2] / f"{KNOWN[2:]}.debug"
    debug.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", known, debug], check=True)
    subprocess.run(["strip", known, unknown], check=True)
    monkeypatch.setattr(files, "DEBUG_FILES", tmp_path)
    with running([whole], [known], [unknown]):
        stacks = Stacks(attach("oncpu"), "oncpu")
        run = "work::Job::run"
        found = watched(stacks, {"whole": run, "known": run, "unknown": "[unknown unknown+0x"})
    for name in ("whole", "known"):
        assert found[name][:2] == ["work::Queue<unsigned long>::spin", run]
        assert found[name][2].startswith("main::{lambda(work::Base*)#1}::operator()") and found[name][3] == "main"
    frames = [(frame["module"].decode(), frame["build_id"].decode()) for frame in stacks._frames.values()]
    assert {one for one in frames if one[0] in ("whole", "known", "unknown")} == {
        ("whole", ""),
        ("known", KNOWN),
        ("unknown", UNKNOWN),
    }


def test_code_that_a_process_made_is_named_by_its_perf_map_in_a_container_too(attach, tmp_path):
    """In namespaces of its own a process is another pid, and has another /tmp."""
    here, inside = (built(tmp_path, "g++", name, MAKER) for name in ("here", "inside"))
    contain = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c"]
    contain += [f"mount -t tmpfs tmp /mnt && cp {inside} /mnt && mount -t tmpfs tmp /tmp && exec /mnt/inside $1", "sh"]
    with running([here, "py::a_step:/app/job.py"], [*contain, "_ZN3Jit4stepEv"]) as processes:
        try:
            assert [one.stdout.readline() for one in processes] == ["made\n", "made\n"]
            found = watched(Stacks(attach("oncpu"), "oncpu"), {"here": "py::a_step", "inside": "Jit::step"})
        finally:
            Path(f"/tmp/perf-{processes[0].pid}.map").unlink(missing_ok=True)
    assert found["here"][:3] == ["py::a_step:/app/job.py", "runs_what_it_made", "main"]
    assert found["inside"][:3] == ["Jit::step", "runs_what_it_made", "main"]


def test_a_kernel_address_without_a_function_is_told_from_the_kernels_beginning_on():
    symbols = Kallsyms.of_running_kernel()
    (start,) = (
        int(line.split()[0], 16)
        for line in Path("/proc/kallsyms").read_text().splitlines()
        if line.endswith(" T _text")
    )
    # Far behind a function comes another one, and nothing in between.
    addresses = np.sort(symbols._addresses[symbols._addresses >= start])
    place = int(addresses[np.flatnonzero(np.diff(addresses) > 1 << 19)[0]]) + (1 << 18)
    stacks = KernelStacks()
    assert stacks.part(np.array([place, start + 1, 0x10], "u8").tobytes()).frames == (
        (b"[kernel]", b"[unknown kernel+%#x]" % (place - start)),
        *symbols.resolve(np.array([start], "u8")),
        kallsyms.UNKNOWN,
    )
