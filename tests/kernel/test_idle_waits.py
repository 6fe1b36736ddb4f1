"""Which real waits are idle: threads that are named for what they wait for, of a server and of a rank of a job."""

from __future__ import annotations

import json
import subprocess

import pytest
from kernel.command import environment, foreshock
from kernel.stacks import compiled

#: argv[1] begins the threads' names. Each waits a tenth of a second, over and over; two for one that has a lock.
WAITS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static const char *prefix, *file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static void named(const char *name) { char all[16]; snprintf(all, 16, "%s-%s", prefix, name); prctl(PR_SET_NAME, all); }
static void nap(void) { struct timespec t = {0, 100000000}; nanosleep(&t, 0); }
static void *sleeps(void *x) { named("sleeps"); for (;;) nap(); }
static void *polls(void *x) { int p[2]; pipe(p); struct pollfd f = {p[0], POLLIN, 0};
	named("polls"); for (;;) poll(&f, 1, 100); }
static void *queues(void *x) { struct timespec t; named("queues"); pthread_mutex_lock(&other);
	for (;;) { clock_gettime(CLOCK_REALTIME, &t); t.tv_nsec += 100000000;
		if (t.tv_nsec >= 1000000000) { t.tv_sec++; t.tv_nsec -= 1000000000; }
		pthread_cond_timedwait(&never, &other, &t); } }
static void *holds(void *x) { int f = open(file, O_RDWR); named("holds");
	for (;;) { pthread_mutex_lock(&mutex); flock(f, LOCK_EX); nap(); flock(f, LOCK_UN); pthread_mutex_unlock(&mutex);
		usleep(5000); } }
static void *mutexes(void *x) { named("mutexes");
	for (;;) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); usleep(2000); } }
static void *flocks(void *x) { int f = open(file, O_RDWR); named("flocks");
	for (;;) { flock(f, LOCK_EX); flock(f, LOCK_UN); usleep(2000); } }
int main(int argc, char **argv) {
	void *(*bodies[])(void *) = {sleeps, polls, queues, holds, mutexes, flocks};
	pthread_t thread;
	prefix = argv[1]; file = argv[2];
	named("main");
	while (clock() < CLOCKS_PER_SEC * 3 / 10); /* who uses less is looked at by nobody, and no rank */
	puts("ready"); fflush(stdout);
	for (int i = 0; i < 6; i++) pthread_create(&thread, 0, bodies[i], 0);
	for (;;) { if (!fork()) { named("child"); nap(); _exit(0); } wait(0); }
}
"""
#: Two threads of argv[1] at one address space: one fills memory while another one maps some. argv[2] is written
#: to as well, by two at once.
CONTENDS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
static const char *file;
enum { BYTES = 48 << 20 };
static void *fills(void *x) { prctl(PR_SET_NAME, "k-fills");
	for (;;) { void *p = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		munmap(p, BYTES); usleep(20000); } }
static void *maps(void *x) { prctl(PR_SET_NAME, "k-maps");
	for (;;) { munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096); usleep(1000); } }
static void *writes(void *x) { int f = open(file, O_RDWR); char *some = calloc(1, BYTES / 4); prctl(PR_SET_NAME, x);
	for (;;) { pwrite(f, some, BYTES / 4, 0); usleep(1000); } }
int main(int argc, char **argv) {
	pthread_t thread;
	file = argv[1];
	pthread_create(&thread, 0, fills, 0);
	pthread_create(&thread, 0, maps, 0);
	if (!fork()) { prctl(PR_SET_PDEATHSIG, 9); writes("k-writes"); }
	puts("ready"); fflush(stdout);
	writes("k-writes");
}
"""
IDLE = {"main", "sleeps", "polls", "queues", "holds", "child"}
BUSY = {"mutexes", "flocks"}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("waits")
    path, program, lock = str(folder / "waits.fsk"), compiled(folder, WAITS), folder / "lock"
    (folder / "contends").mkdir()
    contends, written = compiled(folder / "contends", CONTENDS), folder / "written"
    lock.touch()
    written.touch()
    alone = {name: value for name, value in environment().items() if not name.startswith(("RANK", "SLURM"))}
    ranked = {**alone, "RANK": "3", "WORLD_SIZE": "8"}
    commands = (([program, "s", lock], alone), ([program, "r", folder / "lock2"], ranked), ([contends, written], alone))
    (folder / "lock2").touch()
    started = [subprocess.Popen(command, env=variables, stdout=subprocess.PIPE) for command, variables in commands]
    try:
        for process in started:
            assert process.stdout and process.stdout.readline() == b"ready\n"
        done = foreshock("record", "--quiet", "--probes", "cpustate,offcpu", "--for", "5s", "-o", path)
    finally:
        for process in started:
            process.kill()
            process.communicate()
    assert done.returncode == 0, done.stderr
    return path


def exported(recording: str, *arguments: str) -> tuple[dict[str, int], int, str]:
    """Return the ns of each thread's name, of everything, and what was said."""
    done = foreshock("export", recording, "--format", "folded", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = {}
    total = 0
    for line in done.stdout.splitlines():
        stack, _, ns = line.rpartition(" ")
        comm = stack.partition(";")[0]
        total += int(ns)
        # A block may have had no stack taken: nothing is known of it.
        if "[no stack]" not in stack:
            found[comm] = found.get(comm, 0) + int(ns)
    return found, total, done.stderr


def waits(found: dict[str, int], prefix: str) -> set[str]:
    """Return which threads waited for long: two may meet at a lock of the C library's own for a moment."""
    return {comm.removeprefix(prefix) for comm, ns in found.items() if comm.startswith(prefix) and ns > 200_000_000}


def test_a_servers_waits_are_idle_but_those_for_locks_and_a_ranks_are_not(recording):
    shown, _, said = exported(recording)
    assert waits(shown, "s-") == BUSY, shown
    # A child that uses hardly any CPU time is no rank.
    assert waits(shown, "r-") == (IDLE - {"child"}) | BUSY, shown
    assert "idle waits" in said and "--idle shows them" in said


def test_waits_for_locks_of_the_kernel_are_not_idle(recording):
    """For that of an address space, of a task that maps memory, and for a file's, of two that write to it."""
    shown = foreshock("export", recording, "--format", "folded").stdout.splitlines()
    for comm, call in (("k-maps", "vm_m"), ("k-writes", "write_iter")):
        waited = [line for line in shown if line.startswith(f"{comm};") and "rwsem_down_write_slowpath" in line]
        assert any(call in line for line in waited), [line for line in shown if line.startswith("k-")]


def test_what_is_hidden_and_what_is_shown_is_all_of_it(recording: str):
    (_, shown, _), (everything, total, said) = exported(recording), exported(recording, "--idle")
    assert waits(everything, "s-") == IDLE | BUSY and said == ""
    told = json.loads(foreshock("summary", "--json", recording).stdout)["stacks"]["offcpu"]
    assert shown + told["idle"]["weight"] == total == told["weight"]
    assert sum(told["idle"]["kinds"].values()) == told["idle"]["weight"]
    assert told["idle"]["threads"] >= len(IDLE)
    assert {"kernel threads without work", "sleep for a set time", "child processes"} <= told["idle"]["kinds"].keys()
