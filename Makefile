# Every job of the project, from a fresh clone: `make help` lists them.
# Nothing here needs root or touches anything outside this folder, except what pip and Numba cache for the user.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := python -m pip --disable-pip-version-check --no-input install --quiet

# Benchmark peers pin packages that velado's own extras need newer: they live apart.
PEERS  := $(VENV)-peers
# Spark brings needs of its own too, and so does its peer.
SPARK  := $(VENV)-spark
SPARK_PEER := $(VENV)-spark-peer

# Reference tables are too large for the repository; tests that need them skip when VELADO_DATA is unset.
ifneq ($(wildcard ../shared/data),)
VELADO_DATA ?= $(abspath ../shared/data)
endif
ifdef VELADO_DATA
export VELADO_DATA
endif

# Two workers, and one file stays on one worker so that a file's Numba kernels are compiled once. Files are begun in the
# order in which tests/conftest.py puts them.
PYTEST  := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
CHECKED := src tests $(wildcard benchmarks)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-all test-spark test-engines axe pictures lint pages papers docs package house bench bench-peers bench-spark clean

help: ## List the jobs
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.core ## Anonymize the sample hospital table and show what it cost
	$(BIN)/velado demo

test: $(VENV)/.dev ## Run the tests, without the slow ones
	$(PYTEST) -m "not slow"

# What `make test` leaves out: processes, servers, browsers, long searches, and most examples of each property.
test-slow: $(VENV)/.dev ## Run the slow tests, and every property with all its examples
	VELADO_EXAMPLES=all $(PYTEST) -m "slow or hypothesis"

test-all: $(VENV)/.dev ## Run every test, the slow ones too
	VELADO_EXAMPLES=all $(PYTEST)

test-spark: $(SPARK)/.spark ## Run the tests of Spark, in an environment of their own (Java 17 or later must be there)
	$(SPARK)/bin/python -m pytest $(wildcard tests/engines/test_spark*.py)

# The full comparison: two hundred random tables for each engine and plan, where CI takes a few dozen.
test-engines: $(VENV)/.dev $(SPARK)/.spark ## Compare memory, DuckDB, PostgreSQL and Spark on 200 random tables (an hour or more)
	VELADO_TABLES=200 VELADO_EXAMPLES=all $(PYTEST) tests/engines/test_same_table.py tests/engines/test_cut_first.py tests/engines/test_postgres_source.py
	VELADO_TABLES=200 $(SPARK)/bin/python -m pytest tests/engines/test_spark.py -k publishes_what_memory

# axe-core checks pages for people who see or move little; only tests use it, and they skip it where it is not there.
axe: ## Install axe-core for the tests of the desk's pages (npm must be there)
	npm install --prefix .axe --no-save --no-audit --no-fund --silent axe-core@4

lint: $(VENV)/.dev ## Check style, format, types and the import layers
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

pages: $(VENV)/.dev ## Write every page that is made from the code, and check the catalogue
	$(BIN)/python docs/make_reference.py
	$(BIN)/python -m velado.apps.cli.reference docs/reference/cli.md
	$(BIN)/python docs/make_catalogue.py --check

pictures: $(VENV)/.dev ## Picture every screen of the desk in both languages, for the documentation (Chromium must be there)
	$(BIN)/python docs/make_pictures.py

papers: $(VENV)/.dev ## Get the sources' tables again from VELADO_DATA, as far as they are not kept yet, and write their page
	$(BIN)/python docs/make_papers.py

docs: $(VENV)/.docs ## Build the documentation as a site, strictly; its search needs no network
	$(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html is the first page; the search wants a server: python -m http.server -d site"

# Which Pythons the wheel is tried on, of those that are found: 3.12, this, ...; empty means 3.11 to 3.13.
PYTHONS ?=

package: $(VENV)/.dev ## Build wheel and source archive, and try the wheel alone on every Python found
	$(BIN)/python .ci/package dist $(PYTHONS)

house: $(VENV)/.dev ## Count what the package is made of, beside its bars
	$(BIN)/python -m benchmarks house

bench: $(VENV)/.dev ## Time velado
	$(BIN)/python -m benchmarks

bench-peers: $(PEERS)/.bench ## Time velado beside anjana and pycanon
	$(PEERS)/bin/python -m benchmarks methods_on_adult

bench-spark: $(SPARK)/.spark $(SPARK_PEER)/.bench ## Time velado beside spark-privacy-preserver, and count what crosses the wire (Java 17)
	VELADO_SPARK_PEER=$(abspath $(SPARK_PEER))/bin/python $(SPARK)/bin/python -m benchmarks spark_peer
	$(SPARK)/bin/python -m benchmarks wire --rows 1000000

clean: ## Remove the environment, caches and build results
	rm -rf $(VENV) $(PEERS) $(SPARK) $(SPARK_PEER) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./.git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# A stamp is newer than the files it was installed from, so a second call installs nothing.
$(BIN)/python $(PEERS)/bin/python $(SPARK)/bin/python $(SPARK_PEER)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "velado needs Python 3.11 or later; say which with: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(patsubst %/bin/python,%,$@)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/$(PIP) -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/$(PIP) -c constraints.txt -e ".[dev]"
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/$(PIP) -c constraints.txt -e ".[docs]"
	@touch $@

$(PEERS)/.bench: pyproject.toml benchmarks/constraints.txt | $(PEERS)/bin/python
	$(PEERS)/bin/$(PIP) -c benchmarks/constraints.txt -e ".[bench]"
	@touch $@

# The peer asks for a pyspark of 2020 that needs Java 8: what it runs on here stands in the file.
$(SPARK_PEER)/.bench: benchmarks/constraints-spark-peer.txt | $(SPARK_PEER)/bin/python
	$(SPARK_PEER)/bin/$(PIP) --no-deps -r benchmarks/constraints-spark-peer.txt setuptools
	@touch $@

$(SPARK)/.spark: pyproject.toml constraints-spark.txt | $(SPARK)/bin/python
	$(SPARK)/bin/$(PIP) -c constraints-spark.txt -e ".[spark,duckdb]" pytest hypothesis
	@touch $@
