"""The kernel's sentences that name tasks, cgroups and programs: where in them a name begins and ends.

A name may have anything in it, also what follows it in its sentence: it goes from the first place where it may begin
to the last where it may end, and to the end of a line where no end is left.

Sources: dump_oom_summary, dump_tasks and __oom_kill_process (mm/oom_kill.c), check_hung_task (kernel/hung_task.c),
dump_stack_print_info (lib/dump_stack.c), watchdog_timer_fn (kernel/watchdog.c), sched_show_task (kernel/sched/core.c),
show_signal_msg (arch/x86/mm/fault.c), kill_proc (mm/memory-failure.c), audit_log_untrustedstring (kernel/audit.c).
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["without_names"]

#: Of a line from pstore: level, time and caller.
_LINE = r"((?:<\d+>)?(?:\[ *[TC]?\d+(?:\.\d+)?\] ?){,2}"
_TAINT = r" (?:Not tainted|Tainted: )"
_AFTER = r"(?: invoked oom-killer: |: page allocation failure: |\[\d+\](?:: segfault at | trap | general protection))"
_CPUSET = r"(\bcpuset=)(.+(?=[, ]mems_allowed=)|.+)"
_COMM = rf"(\b[Cc]omm: )(.+?(?=(?: Kdump: loaded)?{_TAINT}(?!.*{_TAINT}))|.+)"
#: What audit records call what people have named. In hexadecimal where a space, a quotation mark or a control
#: character is in it, and addresses are always.
_FIELDS = (
    r"\b(?:comm|ocomm|exe|cwd|name|profile|proctitle|acct|path|dir|watch|key|vm|cmd|grp|data|unit|hostname|new_name"
    r"|root_dir|dev|saddr|tty)="
)
_ARGUMENTS = r"\ba\d+="
_AUDITED = (
    rf'((?:{_FIELDS}|{_ARGUMENTS})")([^"]+)',
    # User space tells these as they are; what is unknown is "?".
    r"(\b(?:unit|hostname|host|user|vm|acct|UID|AUID)=)([A-Za-z_][^\s\"',;()=]*)",
)
_CODED = re.compile(rf"({_FIELDS})((?:[0-9A-F]{{2}})+)\b")
#: Of a program's start; of a system call they are numbers.
_CODED_ARGUMENTS = re.compile(rf"({_ARGUMENTS})((?:[0-9A-F]{{2}})+)\b")
#: How a line begins; of each name in it, the last first: what is before it, the name, and ahead what is after it.
_SENTENCES = tuple(
    (re.compile(_LINE + f"){begins}", re.DOTALL), tuple(re.compile(name, re.DOTALL) for name in names))
    for begins, *names in (
        (
            "oom-kill:",
            # Which of them is in a name can't be told.
            r"(\bcpuset=)((?=.*(,mems_allowed=|,oom_memcg=|,task_memcg=|,task=|,pid=).*\3).+)",
            r"(,task=)(.+(?=,pid=\d)|.+)",
            r"(,task_memcg=)(.+(?=,task=)|.+)",
            r"(,oom_memcg=)(.+(?=,task_memcg=)|.+)",
            _CPUSET,
        ),
        (
            r"(?:(?:Memory cgroup o|O)ut of memory.{,40}: Kill(?:ed)?|(?:oom_reaper|process_mrelease): reaped)"
            r" process \d+ \(",
            r"( process \d+ \()(.+(?=\))|.+)",
        ),
        (r"\[ *\d+\](?: +-?\d+){3}", r"^" + _LINE + r"\[ *\d+\](?: +-?\d+){7,10} +)(.+)"),
        ("Memory cgroup stats for ", r"( for )(.+(?=:)|.+)"),
        ("cgroup: fork rejected by ", r"( controller in )(.+)"),
        (
            "INFO: task ",
            r"( (?:owned|last held) by task )(.+(?=:\d)|.+)",
            r"(\bINFO: task )(.+(?=:\d+ (?:<\w+> )?(?:is )?blocked\b)|.+)",
        ),
        (r"CPU: \d+ (?:UID: \d+ )?PID: \d+ Comm: ", _COMM),
        (r"watchdog: BUG: soft lockup - CPU#\d+ stuck for ", r"(! \[)(.+(?=:\d+\])|.+)"),
        ("task:", r"(\btask:)(.*\S(?=\s+state:\S)|.+)"),
        (
            "Memory failure: 0x",
            r"( (?:Sending SIGBUS to|forcibly killing) )(.+(?=:\d+ (?:due to|because of) )|.+)",
        ),
        (r"audit: type=\d+ ", *_AUDITED),
        # All else; of what is after a name, too, which one is in it can't be told.
        (
            "",
            r"^" + _LINE + rf"(?:traps: )?)((?=.*{_AFTER}.*{_AFTER}).+)",
            r"^" + _LINE + rf"(?:traps: )?)(.+)(?={_AFTER})",
            r"( in )(.+)(?=\[[0-9a-f]+(?:,[0-9a-f]+)?\+[0-9a-f]+\])",
            _CPUSET,
            _COMM,
            *_AUDITED,
        ),
    )
)


def without_names(line: str, hidden: Callable[[str], str]) -> str:
    """Return a line of the kernel's log with each name that its sentence has changed by ``hidden``."""
    for name in next(names for begins, names in _SENTENCES if begins.match(line)):
        line = name.sub(lambda found: found[1] + hidden(found[2]), line)
    for coded in (_CODED, _CODED_ARGUMENTS) if " argc=" in line else (_CODED,):
        line = coded.sub(lambda found: found[1] + hidden(_decoded(found[2])), line)
    return line


def _decoded(digits: str) -> str:
    """Return a name that was told in hexadecimal; arguments are parted by zeros."""
    return bytes.fromhex(digits).rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "surrogateescape")
