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

demo: $(READY) ## send 1,000 messages through a faulty provider on this machine, and show what became of them
	$(BIN)/outbox demo

dev: $(READY) ## the whole product on this machine until Ctrl-C
	$(BIN)/outbox dev

check: $(READY) ## lint, types, import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/architecture

test: $(READY) ## run every suite this machine can run, and say what was left out
	$(BIN)/pytest

sim: $(READY) ## 10,000 simulated worlds with crashes and lost messages, each checked by the auditor
	$(BIN)/outbox sim --seeds 10000

differential: $(READY) ## 1,000 random cases on our Firestore emulator and on Google's, every answer compared
	OUTBOX_DIFFERENTIAL_CASES=1000 $(BIN)/pytest -q tests/conformance/test_differential.py

crash: $(READY) ## kill -9 each emulator 50 times while clients write; nothing acknowledged may be missing
	OUTBOX_CRASH_ROUNDS=50 $(BIN)/pytest -q -k "kill or crash or durab" tests/emulator

bench: $(READY) ## queries and throughput, side by side with Google's emulator; results in bench/results
	$(BIN)/python -m bench.queries
	$(BIN)/python -m bench.throughput

lock: $(READY) ## pin the newest versions allowed by pyproject.toml
	$(BIN)/pip-compile --quiet --upgrade --extra dev --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file constraints.txt pyproject.toml

.PHONY: help install demo dev check test sim differential crash bench lock
