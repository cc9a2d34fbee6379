# `make help` prints the targets: every target with a `##` comment is listed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
RUN := $(BIN)/grove-conformance
PYTEST = $(BIN)/pytest tests -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 12 --durations-min 20
# Many short processes import the same modules: compile each module once, even where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

# Options of the main targets, e.g. `make conformance IMPL=mine.yaml WORKERS=4 ARGS="--profile core"`.
IMPL ?= reference
WORKERS ?= auto
ARGS ?=
# Which part of the mutants `make mutants` proves: i/n, e.g. `make mutants SHARD=2/5`.
SHARD ?= 1/1
# How many generated histories `make histories` plays.
HISTORIES ?= 200
# The same histories, and the same scenes for filters, are drawn for the same seed.
SEED ?= 1
# How many pods `make filters` tries.
PODS ?= 400
# Which part of the crash-at-every-write tests `make test` runs: i/n; all of them with `make test CHAOS=1/1`.
CHAOS ?= 1/48
# Whether `make test` also runs cases that take the way of another case, and what takes long: `make test THOROUGH=1`.
THOROUGH ?=

.DEFAULT_GOAL := help
.PHONY: help conformance test unit check lint types site mutants variants attacks signals overload histories filters scale bench assets docs crds lock prune clean

help:  ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | while IFS="$$(printf '\t')" read -r t d; do printf '  make %-14s %s\n' "$$t" "$$d"; done

conformance: $(READY)  ## judge an implementation on a fake cluster (IMPL=reference|FILE, WORKERS=n, ARGS="…")
	@$(RUN) run --implementation "$(IMPL)" --workers "$(WORKERS)" $(ARGS)

test: $(READY)  ## run all checks of this project: lint, types, unit and integration tests, a selection of mutants
	@$(MAKE) --no-print-directory -j2 lint types site $(COMPILED)
	@CHAOS=$(CHAOS) THOROUGH=$(THOROUGH) $(PYTEST)

unit: $(READY)  ## run the tests that need no control plane
	@$(PYTEST) -m "not cluster"

check: $(READY)  ## run lint and types, and build the site
	@$(MAKE) --no-print-directory -j2 lint types site

lint: $(READY)  ## run ruff (lint and format), import-linter, schema checks of data files, and the lint of citations
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports && $(RUN) validate && $(BIN)/python -m tests.citations.lint

types: $(READY)  ## run mypy in strict mode
	@$(BIN)/mypy

site: $(READY)  ## build the matrix and the documents as a site with search: reports/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

mutants: $(READY)  ## prove that the suite catches each mutant of the reference (SHARD=i/n for a part)
	@$(BIN)/python -m mutants.prove --shard $(SHARD) $(ARGS)

variants: $(READY)  ## prove that the suite lets each permitted difference of the reference through (ARGS=--quick for a part)
	@$(BIN)/python -m mutants.permit $(ARGS)

attacks: $(READY)  ## run the suite against a hostile implementation (ARGS="-k worker" for some of the attacks)
	@$(BIN)/pytest $(addprefix tests/attacks/,whole_runs.py environments.py machines.py files.py) -n $(WORKERS) --maxschedchunk 1 --durations 12 $(ARGS)

signals: $(READY)  ## kill and stop each process of a run at each moment of the run (ARGS="--targets etcd --moments teardown")
	@$(BIN)/python -m tests.attacks.signals reports/signals.jsonl $(ARGS)

overload: $(READY)  ## judge the reference beside busy loops while API servers stop for 20 s (ARGS="--outages 5 -- run --profile gang")
	@$(BIN)/python -m tests.attacks.overload $(if $(ARGS),$(ARGS),-- run)

histories: $(READY)  ## play generated histories of coherent updates on a real control plane (HISTORIES=n, SEED=n)
	@HISTORIES=$(HISTORIES) SEED=$(SEED) $(BIN)/pytest tests/coherent/test_live_histories.py tests/coherent/planted_defects.py --log-cli-level INFO

filters: $(READY)  ## compare the reference's filters with a real kube-scheduler (PODS=n, SEED=n, ARGS="--kubernetes 1.37")
	@$(BIN)/python -m tests.kube_scheduler.play --seed $(SEED) --pods $(PODS) $(ARGS)

scale: $(READY)  ## measure 500 replicas × 2 pods on 100 nodes against the raw floor of the same run (ARGS="--scheduler gang")
	@$(RUN) scale $(if $(filter file,$(origin IMPL)),,--implementation "$(IMPL)") $(ARGS)

bench: $(READY)  ## measure requests to the API server, lists, scheduling cycles and hashes
	@$(BIN)/python tests/bench/api_costs.py
	@$(BIN)/python tests/bench/gang_placement.py
	@$(BIN)/python tests/bench/gang_cycle.py
	@$(BIN)/python -m tests.bench.gang_growth
	@$(BIN)/python tests/bench/hashing.py

assets: $(READY)  ## download or build the control-plane programs and print their paths (ARGS="--kubernetes 1.37")
	@$(RUN) assets $(ARGS)

docs: $(READY)  ## regenerate docs/requirements.md, docs/coverage.md, docs/contract.md, the tables of findings and of who conforms, the schemas for editors
	@$(BIN)/python -m tests.coverage.page
	@$(BIN)/python -m tests.public_schemas
	@$(BIN)/python -m tests.findings.page
	@for page in README.md docs/implementations/README.md; do $(RUN) report matrix docs/implementations --to $$page || exit; done

crds: $(READY)  ## regenerate reference_impl/crds/ from the models and the API server's OpenAPI
	@trap '$(RUN) cluster down crds' EXIT; $(RUN) cluster up crds && $(BIN)/grove-reference crds --kubeconfig "$$($(RUN) cluster kubeconfig crds)"

lock: $(READY)  ## pin the dependencies again (requirements.lock)
	@$(PYTHON) -m venv $(VENV)/uv && $(VENV)/uv/bin/pip -q install uv
	@$(VENV)/uv/bin/uv pip compile --universal --python-version 3.11 --extra dev --extra scale --generate-hashes --no-emit-index-url --no-annotate --no-header -q pyproject.toml -o requirements.lock

prune: $(READY)  ## remove clusters and processes that a killed run left behind
	@$(RUN) cluster prune

clean:  ## remove the virtual environment and the outputs of runs
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Modules are compiled when they are first imported: most modules of the dependencies never are.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": say which one with make PYTHON=…")'
	@$(PYTHON) -c 'import os, sys; bad = sorted(set(os.getcwd()) & set("\x22\x24\x27\x3a\x5c\x60\n")); sys.exit("the path of this checkout, " + os.getcwd() + ", contains " + " ".join(bad) + ", which virtual environments and pip cannot handle: move it to another path" if bad else 0)'
	@echo "making $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip -q --disable-pip-version-check install --no-compile --require-hashes -r requirements.lock
	@$(BIN)/pip -q --disable-pip-version-check install --no-deps --no-build-isolation -e .
	@touch $@

# Workers of pytest that start together would all compile every module of the tests: one process does so beforehand, while
# the type checker runs. What changes later is compiled when it is needed.
$(COMPILED): $(READY)
	@$(BIN)/pytest tests --collect-only -q > /dev/null; touch $@
