# Every target sets itself up: `.venv` is made from constraints.txt (versions and hashes) when it is missing or old.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

$(READY): constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

install: $(READY) ## make .venv with everything in it

check: $(READY) ## lint, types, import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/architecture

test: $(READY) ## run every suite this machine can run, and say what was left out
	$(BIN)/pytest

lock: $(READY) ## pin the newest versions allowed by pyproject.toml
	$(BIN)/pip-compile --quiet --upgrade --extra dev --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file constraints.txt pyproject.toml

.PHONY: help install check test lock
