import sys
sys.path.insert(0,'/work/main/tests')
from unit.test_reports import *
s=Summary(SECOND); s.add_interval(cgroup_and_polls(Node()))
for w in (80,100):
    for t in ("INTERRUPT LINES", "NETWORK POLLING","RUN QUEUE BY"): print("\n".join(section(rendered(s,w),t)))
