# make setup | make run [VAULT=~/Notes] | make test [ARGS=…] | make bench | make lint
# Needs a Python of 3.11 or newer; PYTHON=… names one.
.DEFAULT_GOAL := help
.PHONY: help setup rsync model run test bench lint locks

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
FLOORS := palace sync librarian ingest injector dualwall
VAULT ?=
ARGS ?=

help:
	@echo 'make setup             the environment in $(VENV)/, rsync, and the embedding model (once)'
	@echo 'make run               a palace, its rooms and a first answer from examples/vault'
	@echo 'make run VAULT=~/Notes the same from your own notes, which are only read'
	@echo 'make test              the tests (ARGS="-m \"not slow\"" for the fast ones)'
	@echo 'make lint bench        the linters; the figures'

setup: $(VENV)/ready rsync model

$(VENV)/ready: requirements.lock pyproject.toml
	@python=''; for one in "$(PYTHON)" python3 python3.14 python3.13 python3.12 python3.11; do \
	  if [ -n "$$one" ] && "$$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$one; break; fi; \
	done; \
	[ -n "$$python" ] || { echo 'Dualwall needs Python 3.11 or newer: sudo apt install python3 python3-venv, or brew install python' >&2; exit 1; }; \
	[ -x $(BIN)/python ] && $(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	  echo "Making $(VENV)/ with $$($$python --version) ..."; \
	  "$$python" -m venv --clear $(VENV) >/dev/null || { echo "$$python has no venv module: sudo apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }; }
	@echo 'Installing the packages of requirements.lock (once) ...'
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready requirements-dev.lock
	@echo 'Installing the packages of requirements-dev.lock (once) ...'
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

rsync:
	@command -v rsync >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo 'Installing rsync ...'; { apt-get update -qq && apt-get install -qq -y rsync; } >/dev/null 2>&1 && exit 0; \
	elif command -v brew >/dev/null; then echo 'Installing rsync ...'; brew install --quiet rsync >/dev/null && exit 0; fi; \
	echo 'rsync is missing: sudo apt install rsync (macOS: brew install rsync), then run make again.' >&2; exit 1

model: $(VENV)/ready
	@$(BIN)/dualwall doctor --prepare-model

run: setup
	@$(BIN)/dualwall tour $(if $(VAULT),"$(VAULT)")

test: setup $(VENV)/ready-dev
	@$(BIN)/python -m pytest $(ARGS)

bench: setup
	@$(BIN)/python -m bench $(ARGS)

lint: $(VENV)/ready-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

locks: $(VENV)/ready-dev
	@cd $(CURDIR) && for group in '' '--group dev'; do \
	  out=requirements$${group:+-dev}.lock; \
	  uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-emit-index-url \
	    $${group:+-c requirements.lock} pyproject.toml --group build $$group -o $$out; done
