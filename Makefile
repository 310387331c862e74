# The only list of commands. `make` shows it.

# The first that really runs and is new enough: a name on PATH may be an empty version-manager shim.
PYTHON := $(shell for python in python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
BIN := .venv/bin
STAMP := .venv/.installed
# Most tests wait: for processes that start, leases that run out, disks. Those on Spark do not.
JOBS ?= 3
CHAOS_ENGINES ?= postgresql sqlite mariadb
MUTANTS_AT_ONCE ?= 1

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint types contracts generated pytest sync model plans-baseline crowd bench bench-worker bench-recovery bench-flat bench-fair bench-events crash-mysql chaos pairs-mysql fmt clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

venv: $(STAMP) ## Create .venv with every development dependency

# Only a changed pyproject.toml costs a pip run; a fresh stamp means no network at all.
$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv \
		|| { echo "On Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing into .venv ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check \
		--no-warn-script-location --root-user-action=ignore -e '.[dev]'
	@touch $@

demo: $(STAMP) ## Show the queue at work on a throwaway PostgreSQL
	@$(BIN)/python -m penstock.demo

test: lint types contracts generated pytest ## Everything CI checks

lint: $(STAMP) ## Style and likely bugs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## mypy, strict
	@$(BIN)/mypy

contracts: $(STAMP) ## Which layer may import which
	@$(BIN)/lint-imports --no-logo

generated: $(STAMP) ## The generated sync code is up to date
	@$(BIN)/python scripts/make_sync.py --check
	@$(BIN)/python scripts/make_databases.py --check

pytest: $(STAMP) ## Only the tests
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup --ignore=tests/spark --ignore=tests/lake
	@$(BIN)/python -m pytest -q tests/spark tests/lake

.PHONY: test-spark-long bench-spark
test-spark-long: $(STAMP) ## Spark on a cluster of processes, by spark-submit, over Connect, and killed: minutes
	@PENSTOCK_SPARK_LONG=1 $(BIN)/python -m pytest -q tests/spark tests/lake tests/test_commands.py

sync: $(STAMP) ## Generate the sync code from the async source
	@$(BIN)/python scripts/make_sync.py
	@$(BIN)/python scripts/make_databases.py

.PHONY: test-postgresql
test-postgresql: $(STAMP) ## The tests of PostgreSQL on another server's programs; PROGRAMS=/usr/lib/postgresql/15/bin
	@test -x "$(PROGRAMS)/postgres" || { echo "PROGRAMS=folder with initdb, pg_ctl and postgres"; exit 1; }
	@PENSTOCK_POSTGRESQL="$(PROGRAMS)" $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup tests/test_conformance.py \
		tests/model tests/interleavings tests/plans tests/security tests/client tests/time tests/worker

orderings: $(STAMP) ## Pairs and threes of verbs on PostgreSQL 16 and 18 in SAMPLE=20 orderings each; SAMPLE=all: every ordering of each pair
	@PENSTOCK_ORDERINGS=$(or $(SAMPLE),20) $(BIN)/python -m pytest -q tests/interleavings

model: $(STAMP) ## Model, interleavings and plans at length: a day, and a million rows; SEEDS=500 STEPS=400
	@PENSTOCK_EXHAUSTIVE=1 PENSTOCK_MODEL_SEEDS=$(or $(SEEDS),500) PENSTOCK_MODEL_STEPS=$(or $(STEPS),400) \
		$(BIN)/python -m pytest -q -s tests/model tests/interleavings tests/plans

plans-baseline: $(STAMP) ## Write what each verb costs now to tests/plans/baseline.json
	@PENSTOCK_WRITE_BASELINE=1 $(BIN)/python -m pytest -q tests/plans

crowd: $(STAMP) ## Eight processes on one SQLite file for a minute, killed with -9 at random
	@PENSTOCK_CROWD_SECONDS=60 $(BIN)/python -m pytest -q tests/sqlite/test_crowd.py

bench: $(STAMP) ## Throughput, against a bare table on the same server
	@$(BIN)/python -m benchmarks.throughput
	@$(BIN)/python -m benchmarks.sqlite
	@$(BIN)/python -m benchmarks.mariadb

bench-worker: $(STAMP) ## The worker: throughput against a bare loop, pick-up latency, memory
	@$(BIN)/python -m benchmarks.worker

bench-recovery: $(STAMP) ## How soon work goes on after a kill, a server's return, a frozen worker's waking
	@$(BIN)/python -m benchmarks.recovery

bench-flat: $(STAMP) ## Does the cost per message stay flat as the backlog grows?
	@$(BIN)/python -m benchmarks.flat
	@$(BIN)/python -m benchmarks.sqlite_flat

bench-spark: $(STAMP) ## Spark into and out of the queue, against Spark's own JDBC; ROWS=1000000 for the full size
	@$(BIN)/python -m benchmarks.spark_jdbc --rows $(or $(ROWS),200000)

.PHONY: bench-lake lake-proof
bench-lake: $(STAMP) ## The history into the lake at three sizes, and a report over a million attempts
	@$(BIN)/python -m benchmarks.lake

lake-proof: $(STAMP) ## Every table of a report over a million messages against plain SQL: the largest difference
	@PENSTOCK_LAKE_MESSAGES=1000000 $(BIN)/python -m pytest -q -s -k made_up tests/lake/test_report.py

bench-fair: $(STAMP) ## Does a loud tenant take more than its share?
	@$(BIN)/python -m benchmarks.fairness

bench-events: $(STAMP) ## What do events cost, with nobody listening and with a reader?
	@$(BIN)/python -m benchmarks.events

pairs-mysql: $(STAMP) ## Pairs of verbs on MariaDB, stopped after every statement
	@PENSTOCK_EXHAUSTIVE=1 $(BIN)/python -m pytest -q tests/mysql/test_pairs.py

crash-mysql: $(STAMP) ## A minute of processes and a MariaDB that are killed: nothing lost, nothing twice
	@PENSTOCK_CRASH_SECONDS=60 $(BIN)/python -m pytest -q tests/mysql/test_crashes.py

chaos: $(STAMP) ## A minute of faults for each of three seeds, on every database
	@$(BIN)/python -c 'import penstock.embedded_mariadb as m; m.install_mariadb()'
	@for engine in $(CHAOS_ENGINES); do for seed in 1 2 3; do \
		$(BIN)/python -m penstock.cli chaos --engine $$engine --seed $$seed --seconds 60 || exit 1; done; done

.PHONY: chaos-faults
chaos-faults: $(STAMP) ## Minutes: a full disk (as root), a promoted replica, PgBouncer, MariaDB, two mutants
	@PENSTOCK_CHAOS_LONG=1 $(BIN)/python -m pytest -q -n 0 tests/chaos tests/mutants

.PHONY: chaos-long
chaos-long: $(STAMP) ## Hours: 60 seeds of a minute on PostgreSQL, 20 elsewhere, into LOG; prints a table
	@$(BIN)/python -c 'import penstock.embedded_mariadb as m; m.install_mariadb()'
	@$(BIN)/python scripts/chaos_long.py run $(or $(LOG),chaos.jsonl) --engine postgresql --count 60
	@$(BIN)/python scripts/chaos_long.py run $(or $(LOG),chaos.jsonl) --engine mariadb --count 20
	@$(BIN)/python scripts/chaos_long.py run $(or $(LOG),chaos.jsonl) --engine sqlite --count 20
	@$(BIN)/python scripts/chaos_long.py table $(or $(LOG),chaos.jsonl)

.PHONY: mutants
mutants: $(STAMP) ## Is every deliberate defect found by chaos? An hour; MUTANTS_AT_ONCE=2
	@$(BIN)/python -c 'import penstock.embedded_mariadb as m; m.install_mariadb()'
	@$(BIN)/python -m tests.mutants --jobs $(MUTANTS_AT_ONCE)

.PHONY: audit fuzz soak orderings
soak: $(STAMP) ## Steady load with bursts, an old snapshot, retention: flat lines? MINUTES=10 RATE=200 CHANNELS=10000
	@$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),10) --rate $(or $(RATE),200) --channels $(or $(CHANNELS),10000)

audit: $(STAMP) ## Licences and known vulnerabilities of what is shipped with; 3 if the list cannot be reached
	@$(BIN)/python scripts/audit.py

fuzz: $(STAMP) ## Hostile values in every parameter of every method, on every database: minutes; EXAMPLES=3000
	@PENSTOCK_FUZZ_EXAMPLES=$(or $(EXAMPLES),3000) $(BIN)/python -m pytest -q --timeout 3600 tests/security/test_hostile_input.py

fmt: $(STAMP) ## Format, and fix what ruff can fix
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

clean: ## Remove everything that can be made again
	@rm -rf .venv .cache build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
