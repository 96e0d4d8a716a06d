# Two commands: `make lab` opens the labs, `make test` checks everything. Both make .venv first; it needs Python 3.11+.
# CONSTRAINTS= takes the newest releases, FORCE=1 rebuilds every lab, ARGS="..." goes to JupyterLab or to pytest's files.

CONSTRAINTS ?= constraints.txt
ARGS ?=
FORCE ?=

BIN := .venv/bin
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile $(if $(CONSTRAINTS),-c $(CONSTRAINTS))
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3; do \
	$$name -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$name && break; done)

# Images of containers like to set it; then every process would compile JupyterLab, plotly and lt_core once more.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help test check lab labs book teacher bench-env bench notebook-diffs freeze clean

help:
	@echo "make lab        open your copies of the labs in JupyterLab (ARGS=\"--no-browser --port 8899\" are passed on,"
	@echo "                ARGS=\"--reset 20\" gives lab 20 fresh and keeps what you had beside it)"
	@echo "make test       everything: style, types, tests, labs, browser"
	@echo "make check      the quick round: style, types, tests that start no processes"
	@echo "make labs       build the notebooks whose source in labs/src changed (FORCE=1: all)"
	@echo "make book       the solved labs as static pages, in book/;   make teacher   all that a teacher needs, in teacher.zip"
	@echo "make bench      the benchmarks (ARGS=NAME: one); make bench-env adds the peers they compare with"
	@echo "make notebook-diffs   let git show notebooks as text; make clean   remove .venv and what runs left"

.venv/made: pyproject.toml $(CONSTRAINTS)
	@$(BIN)/python -c '' 2>/dev/null || test -n "$(PYTHON)" || { echo "LT-Lab needs Python 3.11 or newer; python3 here is" \
		"$$(python3 --version 2>/dev/null || echo absent). Install one, or name it: make PYTHON=/path/to/python3.12"; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || { echo "[1/3] .venv with $(PYTHON) ($$($(PYTHON) --version))"; $(PYTHON) -m venv .venv; } || \
		{ echo "$(PYTHON) cannot make environments; on Debian: apt install python3-venv"; rm -rf .venv; exit 1; }
	@echo "[2/3] torch, the largest part: minutes, in which pip says nothing"
	@$(PIP) torch
	@echo "[3/3] JupyterLab, plotly, and the tools that test: a minute or two, as quiet"
	@$(PIP) -e '.[dev]'
	@touch $@

.venv/made-bench: .venv/made
	@echo "the peers that the benchmarks compare with"
	@$(PIP) -e '.[bench]'
	@touch $@

test: .venv/made
	@$(BIN)/python -m tests.run_all

check: .venv/made
	@$(BIN)/python -m tests.run_all --quick

lab: .venv/made
	@$(BIN)/ltlab lab $(ARGS)

labs: .venv/made
	@$(BIN)/python -m labs.build $(if $(FORCE),--force)

book: .venv/made
	@$(BIN)/python -m labs.book

teacher: .venv/made
	@$(BIN)/python -m labs.teacher

bench-env: .venv/made-bench

bench: .venv/made-bench
	@$(BIN)/ltlab bench $(ARGS)

notebook-diffs:
	git config diff.notebook.textconv "python3 labs/notebook_text.py"

freeze: .venv/made-bench
	@sed -n '/^#/p' constraints.txt > constraints.new
	@$(BIN)/python -m pip freeze --exclude-editable | sed 's/+[a-z0-9.]*$$//' | grep -v '^nvidia-\|^triton=' >> constraints.new
	@mv constraints.new constraints.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find lt_core labs tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
