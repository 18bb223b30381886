# Every target sets up what it needs: a virtual environment in .venv with the kit and its tools.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types verify bench docs clean

help: ## Show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV) || { echo "error: python cannot make a virtual environment (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(READY) ## A student's hour on chapter 12: practice, first red, green, fault, record
	@$(BIN)/course demo 12

test: $(READY) ## The tests of the kit and the course
	@$(BIN)/python -m pytest -q

check: lint types test verify ## Exactly what CI runs: lint, types, tests, the proof of the course

lint: $(READY) ## ruff over tool, tests, solutions and starters
	@$(BIN)/ruff check .

types: $(READY) ## mypy strict over tool, tests, solutions and starters
	@$(BIN)/python -m tests.types

verify: $(READY) ## Prove the course: every start, solution, scaffold and fault
	@$(BIN)/course verify

bench: $(READY) ## Speed as ratios against plain pytest, in one run
	@$(BIN)/python -m tests.bench

docs: $(READY) ## Write docs/cli.md from the commands' help
	@$(BIN)/python -m tests.cli_page

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
