# Every target sets itself up: `.venv` is made from constraints.txt (versions and hashes) when it is missing or old.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NODE_READY := node_modules/.ready

# Tests start hundreds of processes; each would compile the whole program if none may keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

$(READY): constraints.txt worker/pyproject.toml emulator/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable worker --editable emulator
	@touch $(READY)

# For what runs in Node: the browser's client, and the SDKs that are tried on the emulator. Without npm or its registry they are left out, and the suite says so.
$(NODE_READY): package.json package-lock.json
	@if ! command -v npm > /dev/null; then echo "no npm: the tests in Node will be left out"; \
	elif npm ci --loglevel=error; then touch $(NODE_READY); \
	else echo "npm ci failed: the tests in Node will be left out"; fi

install: $(READY) ## make .venv with everything in it

demo: $(READY) ## send 1,000 messages through a faulty provider on this machine, and show what became of them
	$(BIN)/outbox demo

example-nextup: $(READY) ## examples/nextup: webhooks of a simulated Notion rank each person's tasks again; ends by itself
	cd examples && ../$(BIN)/python -m nextup

dev: $(READY) ## the whole product on this machine until Ctrl-C
	$(BIN)/outbox dev

check: $(READY) duplicates ## lint, types, import direction, duplicated blocks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/architecture

# Blocks of more than 12 lines that stand twice in what is shipped. .jscpd.json has the limits, docs/decisions the exceptions.
duplicates: $(NODE_READY) ## fail if a block of more than 12 lines stands twice in the product (seconds)
	@if [ -x node_modules/.bin/jscpd ]; then node_modules/.bin/jscpd --no-colors; \
	else echo "no npm: duplicated blocks are not looked for"; fi

# A few processes; a stack's tests stay together, and the longest begin first (tests/conftest.py). tests/tiers.py says
# which suite is in which tier. Both end with a line that says what this machine could not run, and why.
PYTEST := $(BIN)/pytest -n auto --dist loadscope --no-loadscope-reorder

test: $(READY) $(NODE_READY) ## the fast tier: units, slices, a sample of the simulation, a browser, one end to end
	$(PYTEST) --tier=fast

test-slow: $(READY) $(NODE_READY) ## the rest: Google's emulator, kills, long simulations
	$(PYTEST) --tier=slow

sim: $(READY) ## 10,000 simulated worlds with crashes and lost messages, each checked by the auditor
	$(BIN)/outbox sim --seeds 10000

sim-old-reader: $(READY) ## the same seeds with a reader whose pages do not overlap: how many worlds break the order of a thread
	$(BIN)/python -m tests.simulation.old_reader --seeds 10000
.PHONY: sim-old-reader

# Java optimizes itself in a run of minutes, and its heap stays small (tests/conftest.py has other options for seconds).
differential: export OUTBOX_DIFFERENTIAL_CASES ?= 1000
differential: export JAVA_TOOL_OPTIONS ?= -XX:+UseSerialGC -Xmx1500m
differential: $(READY) ## random cases on our Firestore emulator and on Google's, every answer compared: 1,000, or OUTBOX_DIFFERENTIAL_CASES=20000
	$(BIN)/pytest -q -n0 tests/conformance/test_differential.py

serializable: $(READY) ## eight clients race 200 times in each mode; an order must explain all that they saw (minutes)
	OUTBOX_SERIALIZABLE_RUNS=200 $(BIN)/pytest -q tests/emulator/firestore/test_serializable.py

crash: $(READY) ## kill -9 each emulator 50 times while clients write; nothing acknowledged may be missing
	OUTBOX_CRASH_ROUNDS=50 $(BIN)/pytest -q -k "kill or crash or durab" tests/emulator

flood: $(READY) ## 5,000 receipts, three in ten doubled, at the real function: nothing lost, answers under 250 ms
	$(BIN)/python -m bench.webhooks

mutations: $(READY) ## 10,000 webhook bodies that no provider would send: never a 5xx, never a write without a signature
	OUTBOX_WEBHOOK_MUTATIONS=10000 $(BIN)/pytest -q tests/inbound/webhooks/test_mutations.py

rules-mutants: $(READY) ## each condition of firestore.rules replaced by `true` in turn; some case must notice (minutes)
	$(BIN)/python -m tests.rules.mutants

bench: $(READY) ## every measurement side by side (about ten minutes), then its charts and tables; results in bench/results
	$(BIN)/python -m bench

bench-growth: $(READY) ## a message's cost out of 1,000 to 1,000,000 queued (minutes); results in bench/results
	$(BIN)/python -m bench.growth
	$(BIN)/python -m bench.charts
	$(BIN)/python -m bench.readme

bench-emulator: $(READY) ## our Firestore emulator beside Google's; results in bench/results
	$(BIN)/python -m bench.emulator

bench-versions: $(READY) ## our Firestore emulator beside an earlier commit of it, in processor time; results in bench/results
	$(BIN)/python -m bench.versions

bench-before: $(READY) ## the measurements of `make bench` at an earlier commit beside this tree's (half an hour); results in bench/results
	$(BIN)/python -m bench.before

.PHONY: bench-before

figures: $(READY) ## charts and tables of README.md and docs/figures.md, from bench/results as they are
	$(BIN)/python -m bench.charts
	$(BIN)/python -m bench.readme

bench-fanout: $(READY) ## making a run's outbox documents at 1,000, 10,000 and 100,000 targets; results in bench/results
	$(BIN)/python -m bench.fanout

bench-latency: $(READY) ## from a message's write to the provider's call at 1, 20 and 100 a second; results in bench/results
	$(BIN)/python -m bench.latency

chaos: $(READY) ## 20,000 messages while processes are killed, paused, cut off and put out of time for ten minutes
	$(BIN)/python -m tests.system.chaos

overload: $(READY) ## three times what the stack drains, for two minutes, and the way back; results in bench/results
	$(BIN)/python -m bench.overload

soak: $(READY) ## half an hour at 50 messages/s: memory, handles and lag stay flat; results in bench/results
	$(BIN)/python -m bench.soak

types: $(NODE_READY) ## client/*.d.ts from the types in client/*.js
	rm -f client/*.d.ts
	node node_modules/typescript/bin/tsc -p client/tsconfig.json

trace: $(READY) ## send one message through the real stack, and list every file of the product in which a function ran
	$(BIN)/python -m tests.system.trace

coverage: $(READY) $(NODE_READY) ## run the fast tier under coverage, and print what share of the lines of both packages ran
	$(PYTEST) --tier=fast --cov=firestore_outbox --cov=firestore_emulator --cov-report=term:skip-covered

states: $(READY) ## docs/states.md, from the tables of transitions in the code
	$(BIN)/python -m tests.architecture.states

api: $(READY) ## docs/api.md, from the signatures and docstrings of the public API
	$(BIN)/python -m tests.docs.api
.PHONY: api

screenshot: $(READY) $(NODE_READY) ## the pictures in docs/: the chat page at three widths and the console in Chromium, outbox dev, outbox runs show --follow
	$(BIN)/python -m tests.system.browser.screenshot

PIN := --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

audit: $(READY) ## hold the locked packages against known vulnerabilities; tests/supply_chain/accepted.toml has what is accepted for now
	$(BIN)/python -m tests.supply_chain.audit

sbom: $(READY) ## bills of materials (CycloneDX) of what is deployed and of the web client, in build/sbom
	$(BIN)/python -m tests.supply_chain.sbom

lock: $(READY) ## pin the newest versions allowed by both pyproject.toml: for development, and what is deployed
	$(BIN)/pip-compile $(PIN) --upgrade --output-file constraints.txt worker/pyproject.toml emulator/pyproject.toml requirements-dev.in
	$(BIN)/pip-compile $(PIN) --constraint constraints.txt --extra billing --output-file requirements.txt worker/pyproject.toml

.PHONY: help install demo example-nextup dev check duplicates test test-slow sim differential serializable crash flood mutations rules-mutants bench bench-growth bench-emulator bench-versions figures bench-latency bench-fanout chaos overload soak types trace coverage states screenshot lock

scale: $(READY) ## 10,000 busy accounts for 30 virtual seconds: no hot document, no hot index range (hours); results in bench/results
	$(BIN)/python -m bench.scale

sweep: $(READY) ## 10,000 dropped lanes and 10,000 lost events, found within two sweeps at 25 ms a call (virtual time, minutes)
	OUTBOX_SWEPT_LANES=10000 $(BIN)/pytest -q -n0 tests/operations/test_sweep.py

differential-rules: $(READY) ## 20,000 random decisions of security rules on our emulator and on Google's, all compared (minutes)
	OUTBOX_RULES_DECISIONS=20000 $(BIN)/pytest -q -n0 tests/rules/test_differential_rules.py

fuzz-rules: $(READY) ## 50,000 broken rules files and 5,000 requests: no traceback, no hang; 5,000 files compared with Google's (minutes)
	OUTBOX_RULES_MUTATIONS=50000 OUTBOX_RULES_MUTATIONS_COMPARED=5000 $(BIN)/pytest -q -n0 tests/rules/test_fuzz_rules.py

bench-rules: $(READY) ## the client's batch under firestore.rules, our emulator beside Google's; results in bench/results
	$(BIN)/python -m bench.rules
	$(BIN)/python -m bench.readme

bench-limits: $(READY) ## a shared limit: instances together, alone, and real processes; results in bench/results (minutes)
	$(BIN)/python -m bench.limits

bench-short: $(READY) ## the short path beside the usual one: dollars and time (a quarter of an hour); results in bench/results
	$(BIN)/python -m bench.short --embedded
	$(BIN)/python -m bench.readme

bench-sealing: $(READY) ## what sealing costs: processor time, bytes, calls to Cloud KMS (two minutes); results in bench/results
	$(BIN)/python -m bench.sealing
	$(BIN)/python -m bench.readme

bench-sessions: $(READY) ## three thousand accounts on five slots of a gateway, for a day on virtual time (15 minutes); results in bench/results
	$(BIN)/python -m bench.sessions
	$(BIN)/python -m bench.readme

bench-console: $(READY) ## processor time and reads of each page of the console, and 10,000 messages by paging; results in bench/results
	$(BIN)/python -m bench.console

bench-footprint: $(READY) ## what an installation of the emulator brings, and the processor time of a start; results in bench/results
	$(BIN)/python -m bench.footprint
	$(BIN)/python -m bench.readme

.PHONY: scale sweep differential-rules fuzz-rules bench-rules bench-limits bench-short bench-sealing bench-console bench-sessions bench-footprint audit sbom
