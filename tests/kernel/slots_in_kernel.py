"""Run ``hist_slot`` of bpf/foreshock.bpf.h in the kernel, on every value given; run by test_hist_c.py.

Standard library and bcc only: this is for the interpreter that has the distribution's bcc.
usage: slots_in_kernel.py LOADER-FOLDER BPF-FOLDER <values >slots    (u64 in, u32 out; struct hist_edges comes first)
"""

import array
import ctypes
import os
import sys

TEST_RUN = 10

PROGRAM = """
int slot_of(u64 *ctx)
{
	struct hist_edges *edges = get_hist_edges();

	return edges ? hist_slot(edges, ctx[0]) : ~0;
}
"""


class TestRun(ctypes.Structure):
    """``union bpf_attr`` of BPF_PROG_TEST_RUN."""

    _fields_ = [
        ("program", ctypes.c_uint32),
        ("result", ctypes.c_uint32),
        ("data", ctypes.c_uint64 * 3),
        ("repeat", ctypes.c_uint32),
        ("duration", ctypes.c_uint32),
        ("context_size", ctypes.c_uint32),
        ("context_size_out", ctypes.c_uint32),
        ("context", ctypes.c_uint64),
        ("context_out", ctypes.c_uint64),
        ("flags", ctypes.c_uint64 * 2),
    ]


def main(loader_folder, bpf_folder):
    sys.path.append(loader_folder)
    os.environ["BCC_KERNEL_SOURCE"] = os.path.join(bpf_folder, "headers")
    from bcc import BPF
    from loader import source, syscalls

    text = source._file(bpf_folder, "foreshock.bpf.h", set()) + PROGRAM
    module = BPF(text=text.encode(), cflags=["-DNR_CPUS=1", "-DRING_PAGES=1", "-DPAGE_SIZE=4096"])
    table = module[b"hist_edges_table"]
    table[0] = table.Leaf.from_buffer_copy(sys.stdin.buffer.read(ctypes.sizeof(table.Leaf)))
    values = array.array("Q", sys.stdin.buffer.read())

    context = ctypes.c_uint64()
    run = TestRun(context_size=8, context=ctypes.addressof(context))
    run.program = syscalls.load_program(syscalls.PROG_TYPE_RAW_TRACEPOINT, module.dump_func(b"slot_of"), "slot_of")
    call, reference = syscalls._libc.syscall, ctypes.byref(run)
    slots = array.array("I")
    for value in values:
        context.value = value
        if call(syscalls._BPF, TEST_RUN, reference, ctypes.sizeof(run)) < 0:
            sys.exit("BPF_PROG_TEST_RUN: " + os.strerror(ctypes.get_errno()))
        slots.append(run.result)
    sys.stdout.buffer.write(slots.tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
