# On a fresh Debian or Ubuntu machine with python3, make and root: `make demo`, `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check --no-input
PYTEST := $(BIN)/python -m pytest

# Stamps say what is installed; they stand in the environment they speak of and go with it.
RUNTIME := $(VENV)/runtime.stamp
DEV := $(VENV)/dev.stamp
# What runs leave behind to be read.
BUILD := .build
# A lane whose machine lacks a program has said so and exits with 69: a failure for CI alone.
OR_LACKING := || { [[ $$? == 69 && $${CI:-} != true ]]; }
# One more than there are cores: half of the time a test waits for a daemon, a lease or a timer.
WORKERS := $(shell echo $$(($$(nproc) + 1)))
# A test that takes so long hangs, however busy the machine is: it is ended, and all tracebacks say
# where it was. Under xdist the other tests go on. The guests' own limit is longer than that.
LIMIT := -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true
# The tests of a lane, by the files that have any: to collect the others takes long in a guest.
MARKED = $(LIMIT) -v --no-header -p no:cacheprovider -m $(1) $$(grep -rl 'mark\.$(1)' tests --include='test_*.py' | sort)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: demo
demo: bytecode packages-demo ## set up, then show Holdfast at work in a private namespace
	@$(BIN)/holdfast demo

.PHONY: check
check: $(DEV) ## lint, types, and every test that needs no kernel, no daemon and little time: within a minute
	@tools/check

.PHONY: test
test: $(DEV) bytecode packages-test ## set up, then run every lane
	@tools/test-lanes

.PHONY: test-host
test-host: $(DEV) bytecode packages-test ## the host lane: everything, on the machine's own kernel
	@PYTHONDONTWRITEBYTECODE= $(PYTEST) $(LIMIT) -n $(WORKERS) --dist worksteal

.PHONY: test-uml
test-uml: $(DEV) bytecode packages-test ## the uml lane: tests marked uml, under user-mode Linux
	@UML_TIMEOUT=1800 tools/uml-run $(PYTEST) $(call MARKED,uml) $(OR_LACKING)

.PHONY: test-systemd
test-systemd: $(DEV) bytecode packages-test ## the systemd lane: tests marked systemd, where PID 1 is systemd
	@NSPAWN_TIMEOUT=1800 tools/nspawn-run $(PYTEST) $(call MARKED,systemd) $(OR_LACKING)

.PHONY: test-qemu
test-qemu: $(DEV) bytecode packages-test ## the qemu lane: tests marked qemu, on a whole kernel under QEMU
	@QEMU_TIMEOUT=1800 tools/qemu-run $(PYTEST) $(call MARKED,qemu) $(OR_LACKING)

.PHONY: soak
soak: $(DEV) packages-test ## the long runs of the random tests
	@$(PYTEST) -m soak --hypothesis-profile=soak

.PHONY: lint
lint: $(DEV) ## style, types, and which package may import which
	@status=0; \
	for check in 'ruff check' 'ruff format --check' mypy 'lint-imports --no-logo'; do \
	    $(BIN)/$$check || status=1; \
	done; \
	exit $$status

.PHONY: bench
bench: $(DEV) bytecode packages-bench ## every benchmark beside its peers; results in .build/bench.jsonl
	@mkdir -p $(BUILD)
	@$(BIN)/python -m benchmarks all --results $(BUILD)/bench.jsonl

.PHONY: package
package: $(DEV) ## a Debian package of Holdfast, in .build
	@tools/make-package $(BUILD)

.PHONY: lock
lock: ## write the locked requirements anew from pyproject.toml
	@tools/lock

.PHONY: clean
clean: ## remove what make and the tools made
	@rm -rf $(BUILD) $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache \
	    .hypothesis .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: packages-demo packages-test packages-bench
packages-demo packages-test packages-bench: packages-%:
	@tools/debian-packages $*

$(RUNTIME): requirements.txt pyproject.toml tools/make-venv
	@tools/make-venv $(PYTHON) $(VENV)
	@echo "installing what Holdfast needs into $(VENV)"
	@$(PIP) install --require-hashes -r requirements.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# As an installed package would have it, whatever PYTHONDONTWRITEBYTECODE says: without it, every
# start of the command takes twice as long.
.PHONY: bytecode
bytecode: $(RUNTIME)
	@$(BIN)/python -m compileall -q -j 0 src

$(DEV): $(RUNTIME) requirements-dev.txt
	@echo "installing the development tools into $(VENV)"
	@$(PIP) install --require-hashes -r requirements-dev.txt
	@touch $@
