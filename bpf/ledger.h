/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "cpustate.h"
#include "stacks.h"

/* One row per thread, LEDGER_WAYS places for every pid: pids given out one after the other never meet. */
#define LEDGER_SETS 4096
#define LEDGER_WAYS 4
#define LEDGER_TASKS 16384

/* What a thread does. A dead one's row is the reader's, who frees it when it has read it. */
#define LEDGER_RUNNING 1
#define LEDGER_WAITING 2
#define LEDGER_BLOCKED 3
#define LEDGER_DEAD 4

/* Inside of what the kernel does for want of memory. */
#define LEDGER_RECLAIM 1
#define LEDGER_COMPACTION 2

/* What a thread sleeps for, as far as it shows. */
#define LEDGER_SLEEP 0
#define LEDGER_DISK 1  /* I/O, as the kernel's own iowait counts it */
#define LEDGER_MUTEX 2 /* locks of the kernel */
#define LEDGER_RWSEM 3
#define LEDGER_RTLOCK 4
#define LEDGER_UNINTERRUPTIBLE 5
#define LEDGER_STOPPED 6
#define LEDGER_FUTEX 7 /* these by the system call that it is in */
#define LEDGER_SOCKET 8
#define LEDGER_PIPE 9
#define LEDGER_POLL 10
#define LEDGER_TIMER 11
#define LEDGER_CHILD 12
#define LEDGER_FILE 13
#define LEDGER_DEVICE 14
#define LEDGER_BLOCKS 16

/*
 * The same by the number of the system call, then, for those of which the file in their first argument decides, by its
 * type (the upper four bits of its mode). The reader fills it: tracer/kernel/calls.py.
 */
#define LEDGER_BY_FILE 15
#define LEDGER_CALLS 512
#define LEDGER_FILE_TYPES 16
#define LEDGER_CALL_ROWS (LEDGER_CALLS + LEDGER_FILE_TYPES)

/* So long a file's kind is taken to be what it was: one that goes to sleep again and again need not look each time. */
#define LEDGER_FILE_NS 1000000

struct ledger_call {
	u32 kind;
	u32 pad;
};

/* SOFTIRQ_VECTORS of softirq.h: no header of one probe may need another's. */
#define LEDGER_VECTORS 10

/*
 * A thread's time, cumulated since first_ns, in parts that do not overlap: together with what has gone on since
 * since_ns they are its life. Written under the lock of its run queue, while writes is odd; interrupts' time by the
 * CPU it runs on.
 */
struct ledger_task {
	u32 pid; /* thread; 0: free */
	u32 tgid;
	u32 writes;
	u32 state;
	u32 cpu; /* where it runs, or is queued */
	u32 stall;
	u32 lock;  /* LEDGER_MUTEX and so on, while it is after one; 0: none */
	u32 block; /* what it sleeps for */
	u64 lock_at;
	u64 since_ns;
	u64 irq_base_ns;      /* softirqs_ns + hardirq_ns at since_ns */
	u64 throttle_base_ns; /* of the wait that goes on, see ledger_throttled */
	u64 first_ns;
	u64 cgroup_id;
	char comm[16]; /* of its process */
	u64 running_ns;
	u64 waiting_ns;   /* for a CPU, of waits that are over; without throttled_ns */
	u64 throttled_ns; /* of those waits, at the group's quota */
	u64 reclaim_ns;   /* running or asleep */
	u64 compaction_ns;
	u64 stall_asleep_ns; /* of both, asleep */
	u64 unknown_ns;      /* its beginning or its end was not shown */
	u64 wait_softirq_ns; /* of waiting_ns, while softirqs had the CPU */
	u64 wait_hardirq_ns;
	u64 softirqs_ns; /* over it while it ran, all vectors */
	u64 hardirq_ns;
	u64 waits;
	u64 blocked_ns[LEDGER_BLOCKS];
	u64 softirq_ns[LEDGER_VECTORS];
	u64 file_seen_ns; /* when the kind of the file by that number was looked at */
	u32 file_number;
	u32 file_kind;
	u64 pad[4];
};

/* Who ran on a CPU: as cpu_stay, with the name of its process and its cgroup. It ends where the next one starts. */
struct ledger_stay {
	u64 started_ns;
	u64 softirq_ns;
	u64 hardirq_ns;
	u64 cgroup_id;
	u32 tgid;   /* 0: idle */
	u32 vector; /* of the softirqs that had the most of it, if any had */
	char comm[16];
	u64 pad;
};

/* Stays added up by process, for the reader. It ends where the next one starts. */
#define LEDGER_PARTS 8

struct ledger_part {
	u64 ns; /* without interrupts */
	u64 cgroup_id;
	u32 tgid;
	u32 used;
	char comm[16];
};

struct ledger_block {
	u64 started_ns;
	u64 softirq_ns;
	u64 hardirq_ns;
	u64 other_ns; /* of processes that found no part */
	struct ledger_part parts[LEDGER_PARTS];
	u64 most_ns; /* the most that softirqs had of one stay, */
	u64 vector;  /* and that stay's vector */
	u64 pad[2];
};

/* The beginning of a wait, before what the stays reach back to: shared out by the reader, among those in the blocks. */
struct ledger_old {
	u64 start_ns;
	u64 end_ns;
	u32 tgid;
	u32 cpu; /* where it waited */
};

/* All powers of two. A block has so many stays and lasts so long at least: together they reach back over a second. */
#define LEDGER_STAYS 64
#define LEDGER_BLOCK_STAYS 32
#define LEDGER_BLOCK_NS 4194304
#define LEDGER_LOG_BLOCKS 256
#define LEDGER_OLDS 512

/*
 * One row per CPU, written by that CPU alone, as its rows of the others are: stay stays_count % LEDGER_STAYS is the
 * running one, block blocks_count % LEDGER_LOG_BLOCKS is being filled.
 */
struct ledger_cpu {
	struct stack_use use; /* of the half of the counts that is being filled */
	u64 collided;         /* threads without a row: all places were taken */
	u64 unmatched;        /* switched in without a wake-up */
	u64 full_ns;          /* what use.full counts */
	u64 olds_ns;          /* length of all olds so far */
	u32 running;          /* its running thread's row + 1; 0: none */
	u32 stays_count;
	u32 blocks_count;
	u32 block_stays; /* in the block that is being filled */
	u32 olds_count;
	u32 pad;
	u64 softirq_most_ns;            /* the largest of softirq_ns */
	u64 softirq_ns[LEDGER_VECTORS]; /* of the stay that goes on */
	u64 pad2[2];
};

/* What time is counted by: a process, and who or what took it. */
#define LEDGER_HOLDER 1  /* a process, by its tgid; 0 is the idle task: nobody had the CPU yet */
#define LEDGER_LINE 2    /* an interrupt line, by its number */
#define LEDGER_VECTOR 3  /* a vector of x86 */
#define LEDGER_SOFTIRQ 4 /* a softirq's vector, while the process waited */

struct ledger_key {
	u32 tgid;
	u32 what;
	u16 kind; /* 0: no such cell */
	u16 half; /* of the counts: one is filled while the reader empties the other */
};

struct ledger_count {
	u64 ns;
	u64 cgroup_id; /* the holder's, when it came first */
	char comm[16]; /* likewise; of a line, its handler's name */
};

/* Of each half so many cells per CPU. Both are powers of two. */
#define LEDGER_HALVES 2
#define LEDGER_CELLS 64

struct ledger_cell {
	struct ledger_key key;
	u32 pad;
	struct ledger_count count;
	u64 pad2[2];
};
