# The only list of commands. `make` shows the ten that people use daily, `make help-all` every one.
# A target with "##" is one of the ten, one with "#:" is shown by help-all.

# The first that really runs and is new enough: a name on PATH may be an empty version-manager shim.
PYTHON := $(shell for python in python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
BIN := .venv/bin
STAMP := .venv/.installed
DEMO_STAMP := .venv/.demo
# Most tests wait: for processes that start, leases that run out, disks. Those on Spark do not; one process runs them.
JOBS ?= 4
PYTEST = $(BIN)/python -m pytest -q
CHAOS_ENGINES ?= postgresql sqlite mariadb
MUTANTS_AT_ONCE ?= 1

# Tests start hundreds of interpreters: compiled modules are kept for the next one.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help help-all venv

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo "  make help-all   Every target"

help-all:
	@awk -F ':.*#[#:] ' '/^[a-z-]+:.*#[#:] / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

venv: $(STAMP) #: Create .venv with every development dependency

# Only a changed pyproject.toml costs an installation; a fresh stamp means no network at all.
$(STAMP): pyproject.toml
	@$(call install,dev)
	@touch $@ $(DEMO_STAMP)

# What the demo needs is a fifth of what the tests need.
$(DEMO_STAMP): pyproject.toml
	@$(call install,demo)
	@touch $@

# uv takes a quarter of pip's time; where it cannot be had, pip does the same.
define install
test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }; \
	test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv || { echo "On Debian: apt-get install python3-venv"; exit 1; }; \
	echo "installing into .venv ..."; \
	if $(PIP) uv; then $(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[$(1)]'; \
	else $(PIP) -e '.[$(1)]'; fi
endef
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check --no-warn-script-location --root-user-action=ignore

# Daily

.PHONY: demo demo-spark test test-all lint fmt types sync bench chaos clean

demo: $(DEMO_STAMP) ## Show the queue at work on a temporary PostgreSQL
	@$(BIN)/python -m laneway.dev.demo

demo-spark: $(STAMP) #: The demo, whose history is then read with Spark: a larger installation
	@$(BIN)/python -m laneway.dev.demo --spark

test: lint types contracts generated test-quick ## Lint, types and the tests; at most eight minutes on two cores

test-all: test test-rest ## The same, and every other combination of database, driver and version

lint: $(STAMP) ## Style and likely bugs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## mypy, strict
	@$(BIN)/mypy

fmt: $(STAMP) ## Format, and fix what ruff can fix
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

sync: $(STAMP) ## Generate the sync client from the async source, and the table of databases
	@$(BIN)/python scripts/make_sync.py
	@$(BIN)/python scripts/make_databases.py

bench: $(STAMP) ## Throughput, against a bare table on the same server
	@$(BIN)/python -m benchmarks.lone
	@$(BIN)/python -m benchmarks.throughput
	@$(BIN)/python -m benchmarks.slow_commits
	@$(BIN)/python -m benchmarks.sqlite
	@$(BIN)/python -m benchmarks.mariadb

chaos: $(STAMP) ## A minute of faults for each of three seeds, on every database
	@$(BIN)/python -c 'import laneway.dev.embedded as e; e.install_mariadb()'
	@for engine in $(CHAOS_ENGINES); do for seed in 1 2 3; do \
		$(BIN)/python -m laneway.cli chaos --engine $$engine --seed $$seed --seconds 60 || exit 1; done; done

clean: ## Remove everything that can be made again
	@rm -rf .venv .cache build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Parts of make test and make test-all

.PHONY: contracts generated test-quick test-rest test-spark-long test-postgresql test-mysql taskiq-suite airflow-suite test-open-lake

contracts: $(STAMP) #: Which layer may import which
	@$(BIN)/lint-imports --no-logo

generated: $(STAMP) #: The generated sync code is up to date
	@$(BIN)/python scripts/make_sync.py --check
	@$(BIN)/python scripts/make_databases.py --check

test-quick: $(STAMP) #: Only the tests of make test
	@$(PYTEST) -n $(JOBS) --dist loadgroup --part quick

test-rest: $(STAMP) #: The tests that make test leaves out
	@$(PYTEST) -n $(JOBS) --dist loadgroup --part rest

test-spark-long: $(STAMP) #: Spark on a cluster of processes, by spark-submit, over Connect, and killed: minutes
	@LANEWAY_SPARK_LONG=1 $(PYTEST) tests/spark tests/lake tests/test_commands.py

test-django-suites: #: The published tests of Django's tasks and of django-tasks-db on our backend; needs Python 3.12
	@$(PYTHON) -m tests.django_suites

taskiq-suite: #: The published tests of taskiq on our broker and result backend
	@$(PYTHON) -m tests.taskiq_suite

test-open-lake: #: The lake on a server of S3 and as a table of Apache Iceberg, with kills, in an environment of its own under .cache
	@$(PYTHON) -m tests.open_lake

airflow-suite: #: The message queue provider in a real Airflow, in an environment of its own under .cache
	@$(PYTHON) -m tests.airflow_suite

test-postgresql: $(STAMP) #: The tests of PostgreSQL on another server's programs; PROGRAMS=/usr/lib/postgresql/15/bin
	@test -x "$(PROGRAMS)/postgres" || { echo "PROGRAMS=folder with initdb, pg_ctl and postgres"; exit 1; }
	@LANEWAY_POSTGRESQL="$(PROGRAMS)" $(PYTEST) -n $(JOBS) --dist loadgroup tests/test_conformance.py \
		tests/model tests/interleavings tests/plans tests/security tests/client tests/time tests/worker

test-mysql: $(STAMP) #: The tests of MariaDB on another server's program, MySQL's or MariaDB's; PROGRAM=/usr/sbin/mysqld
	@test -x "$(PROGRAM)" || { echo "PROGRAM=the server's program, mysqld or mariadbd"; exit 1; }
	@LANEWAY_MYSQL="$(PROGRAM)" $(PYTEST) -n $(JOBS) --dist loadgroup -k "MariaDB or mysql" \
		tests/test_conformance.py tests/mysql tests/model

# Docs and release

.PHONY: docs pictures dist api-check

docs: $(STAMP) #: The site of the docs into build/site; a dead link or a misspelling is an error
	@$(BIN)/python scripts/make_site.py

pictures: $(STAMP) #: Photographs console, terminal and report for the docs; needs chromium
	@$(BIN)/python scripts/screenshots.py

dist: #: sdist, wheel and list of parts into dist/, installed and tried on every Python that is at hand
	@rm -rf dist .cache/release && $(PYTHON) -m venv .cache/release
	@.cache/release/bin/pip install -q --disable-pip-version-check build twine check-wheel-contents cyclonedx-bom
	@.cache/release/bin/python -m build
	@.cache/release/bin/twine check --strict dist/*
	@.cache/release/bin/check-wheel-contents --ignore W002,W004,W009 dist/*.whl
	@.cache/release/bin/python scripts/check_dist.py dist
	@$(PYTHON) -m venv .cache/release/parts && .cache/release/parts/bin/pip install -q --disable-pip-version-check "$$(echo dist/*.whl)[all]"
	@.cache/release/bin/cyclonedx-py environment --output-reproducible -o dist/laneway.cdx.json .cache/release/parts

api-check: $(STAMP) #: What would break the code of those who upgrade from the last release
	@$(BIN)/python scripts/check_api.py

# Longer proof

.PHONY: orderings model plans-baseline crowd pairs-mysql shop-kills crash-mysql chaos-faults chaos-long mutants soak audit fuzz lake-proof

orderings: $(STAMP) #: Pairs and threes of verbs on PostgreSQL 16 and 18 in SAMPLE=20 orderings each; SAMPLE=all: every ordering of each pair
	@LANEWAY_ORDERINGS=$(or $(SAMPLE),20) $(PYTEST) tests/interleavings

model: $(STAMP) #: Model, interleavings and plans at length: a day, and a million rows; SEEDS=500 STEPS=400
	@LANEWAY_EXHAUSTIVE=1 LANEWAY_MODEL_SEEDS=$(or $(SEEDS),500) LANEWAY_MODEL_STEPS=$(or $(STEPS),400) \
		$(PYTEST) -s tests/model tests/interleavings tests/plans

plans-baseline: $(STAMP) #: Write what each verb costs now to tests/plans/baseline.json
	@LANEWAY_WRITE_BASELINE=1 $(PYTEST) tests/plans

crowd: $(STAMP) #: Eight processes on one SQLite file for a minute, killed with -9 at random
	@LANEWAY_CROWD_SECONDS=60 $(PYTEST) tests/sqlite/test_many_processes.py

pairs-mysql: $(STAMP) #: Pairs of verbs on MariaDB, stopped after every statement
	@LANEWAY_EXHAUSTIVE=1 $(PYTEST) tests/mysql/test_pairs.py tests/mysql/test_flow_pairs.py

shop-kills: $(STAMP) #: Shops on FastAPI, Django, Flask and taskiq, web and workers killed for a minute each: one receipt for each order
	@LANEWAY_SHOP_SECONDS=60 $(PYTEST) tests/shop

crash-mysql: $(STAMP) #: A minute of processes and a MariaDB that are killed: nothing lost, nothing twice
	@LANEWAY_CRASH_SECONDS=60 $(PYTEST) tests/mysql/test_crashes.py

chaos-faults: $(STAMP) #: A full disk (as root), a promoted replica, PgBouncer, MariaDB, two mutants: minutes
	@LANEWAY_CHAOS_LONG=1 $(PYTEST) -n 0 tests/chaos tests/mutants

chaos-long: $(STAMP) #: 60 seeds of a minute on PostgreSQL, 20 elsewhere, into LOG; prints a table: hours
	@$(BIN)/python -c 'import laneway.dev.embedded as e; e.install_mariadb()'
	@$(BIN)/python scripts/chaos_long.py run $(or $(LOG),chaos.jsonl) --engine postgresql --count 60
	@$(BIN)/python scripts/chaos_long.py run $(or $(LOG),chaos.jsonl) --engine mariadb --count 20
	@$(BIN)/python scripts/chaos_long.py run $(or $(LOG),chaos.jsonl) --engine sqlite --count 20
	@$(BIN)/python scripts/chaos_long.py table $(or $(LOG),chaos.jsonl)

mutants: $(STAMP) #: Is every deliberate defect found by chaos? An hour; MUTANTS_AT_ONCE=2
	@$(BIN)/python -c 'import laneway.dev.embedded as e; e.install_mariadb()'
	@$(BIN)/python -m tests.mutants --jobs $(MUTANTS_AT_ONCE)

soak: $(STAMP) #: Steady load with bursts, an old snapshot, retention: flat lines? MINUTES=10 RATE=200 CHANNELS=10000
	@$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),10) --rate $(or $(RATE),200) --channels $(or $(CHANNELS),10000)

lake-proof: $(STAMP) #: Every table of a report over a million messages against plain SQL: the largest difference
	@LANEWAY_LAKE_MESSAGES=1000000 $(PYTEST) -s -k made_up tests/lake/test_report.py

audit: $(STAMP) #: Licences and known vulnerabilities of the dependencies; 3 if the list cannot be reached
	@$(BIN)/python scripts/audit.py

fuzz: $(STAMP) #: Hostile values in every parameter of every method, on every database: minutes; EXAMPLES=3000
	@LANEWAY_FUZZ_EXAMPLES=$(or $(EXAMPLES),3000) $(PYTEST) --timeout 3600 tests/security/test_hostile_input.py

# More benchmarks

bench-looks: $(STAMP) #: Every page, API call and command that looks, on every database: below 50 ms? MESSAGES=10000000 CHANNELS=1000000 DEAD=1000000
	@$(BIN)/python -m benchmarks.every_look --messages $(or $(MESSAGES),10000000) --channels $(or $(CHANNELS),1000000) --dead $(or $(DEAD),1000000)

.PHONY: bench-looks bench-worker bench-recovery bench-flat bench-spark bench-lake bench-fair bench-events bench-kinds bench-flows flow-graphs bench-limits bench-blocked bench-peers

bench-worker: $(STAMP) #: The worker: throughput against a bare loop, pick-up latency, memory
	@$(BIN)/python -m benchmarks.worker

bench-recovery: $(STAMP) #: How soon work goes on after a kill, a server's return, a frozen worker's waking
	@$(BIN)/python -m benchmarks.recovery

bench-flat: $(STAMP) #: Does the cost per message stay flat as the backlog grows?
	@$(BIN)/python -m benchmarks.flat
	@$(BIN)/python -m benchmarks.sqlite_flat

bench-spark: $(STAMP) #: Spark into and out of the queue, against Spark's own JDBC; ROWS=1000000 for the full size
	@$(BIN)/python -m benchmarks.spark_jdbc --rows $(or $(ROWS),200000)

bench-lake: $(STAMP) #: The history into the lake at three sizes, and a report over a million attempts
	@$(BIN)/python -m benchmarks.lake

bench-fair: $(STAMP) #: Does a loud tenant take more than its share?
	@$(BIN)/python -m benchmarks.fairness

bench-limits: $(STAMP) #: Are shared limits exact and fair under load, and what do they cost?
	@$(BIN)/python -m benchmarks.shared_limits

bench-blocked: $(STAMP) #: What do claims cost while 100,000 messages wait for a shared limit? Counts, no times
	@LANEWAY_BLOCKED=$(or $(BLOCKED),100000) $(PYTEST) -s tests/plans/test_blocked.py

bench-kinds: $(STAMP) #: What does a claim of one kind cost beside a claim of all? QUICK=1 for a hundredth
	@$(BIN)/python -m benchmarks.kinds $(if $(QUICK),--quick)

flow-graphs: $(STAMP) #: Random flows under kill -9 of workers and servers, on all databases. GRAPHS=1000 NODES=2000: a day
	@LANEWAY_GRAPHS=$(or $(GRAPHS),50) LANEWAY_GRAPH_NODES=$(or $(NODES),200) $(PYTEST) -n 0 -s tests/flows

bench-flows: $(STAMP) #: What does a flow cost beside plain messages? MESSAGES=100000
	@$(BIN)/python -m benchmarks.flows --messages $(or $(MESSAGES),100000)

bench-peers: $(STAMP) #: Laneway beside pgqueuer, pgmq, procrastinate, chancy and dbos; pip into .cache/peers; ROUNDS=3 MESSAGES=5000
	@$(BIN)/python -m benchmarks.lone --peers
	@$(BIN)/python -m benchmarks.peers --rounds $(or $(ROUNDS),3) --messages $(or $(MESSAGES),5000)

bench-events: $(STAMP) #: What do events cost, with nobody listening and with a reader?
	@$(BIN)/python -m benchmarks.events
