# Everything a contributor types. `make` alone lists the targets.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-slow check docs bench lock
MAKEFLAGS += --no-print-directory

PYTHON := .venv/bin/python
READY := .venv/.ready
ROOMS := release_specs tabulation mechanisms estimation reporting flows
WORKERS ?= 2

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

setup: $(READY) ## make .venv with the locked dependencies and the margrave command
	@echo "setup: ready"

demo: $(READY) ## make a whole release on generated microdata and verify it
	@$(PYTHON) -m flows.demo

test: $(READY) ## run the quick tests
	@$(PYTHON) -m pytest -n $(WORKERS) -m "not slow"

test-slow: $(READY) ## run all tests, the slow statistical ones too
	@MARGRAVE_MUTATIONS=20000 MARGRAVE_ENUMERATION=30 MARGRAVE_NEIGHBOURS=40 MARGRAVE_CRASHES=200 $(PYTHON) -m pytest -n $(WORKERS)

check: $(READY) ## lint, formatting, types, import walls, dead code
	@echo "check: ruff" && $(PYTHON) -m ruff check --quiet . && $(PYTHON) -m ruff format --quiet --check .
	@echo "check: mypy" && $(PYTHON) -m mypy --no-error-summary $(ROOMS)
	@echo "check: import walls" && verdict=$$(.venv/bin/lint-imports --no-logo 2>&1) || { echo "$$verdict"; exit 1; }
	@echo "check: vulture" && $(PYTHON) -m vulture

docs: $(READY) ## write the generated pages and the golden diagnostics anew
	@$(PYTHON) -m release_specs.reference && $(PYTHON) -m tests.follow_tutorial && $(PYTHON) -m tests.release_specs.golden

bench: $(READY) ## run the benchmarks
	@found=no; \
	for script in benchmarks/*.py; do \
		if [ -f "$$script" ]; then found=yes; echo "bench: $$script"; $(PYTHON) "$$script" || exit 1; fi; \
	done; \
	[ $$found = yes ] || echo "bench: benchmarks/ holds no benchmark yet"

# Existing pins are kept as far as pyproject.toml allows; `make lock UPGRADE=1` moves all to the newest.
# Options at the start of a line (index addresses) are dropped: pip finds the files where the machine's settings say.
lock: ## write requirements.lock anew from pyproject.toml (UPGRADE=1 for newest versions)
	@$(FIND_INTERPRETER); \
	tool=$$(mktemp -d) || exit 1; trap 'rm -rf "$$tool"' EXIT; \
	echo "lock: installing uv in a throw-away environment"; \
	"$$interpreter" -m venv "$$tool/venv" && "$$tool/venv/bin/python" -m pip install -qq uv || exit 1; \
	index=$$("$$tool/venv/bin/python" -m pip config get global.index-url 2>/dev/null) && export UV_DEFAULT_INDEX="$$index"; \
	[ ! -f requirements.lock ] || cp requirements.lock "$$tool/new.lock"; \
	echo "lock: resolving pyproject.toml"; \
	UV_PYTHON_DOWNLOADS=never "$$tool/venv/bin/uv" pip compile --quiet --no-config --python "$$tool/venv/bin/python" \
		--universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-emit-index-url --no-header \
		$(if $(UPGRADE),--upgrade) --extra dev --output-file "$$tool/new.lock" pyproject.toml || exit 1; \
	{ echo "# Made by \`make lock\` from pyproject.toml, its dev extra included. Do not edit by hand."; \
	  grep -v -e '^-' -e '^# Made by' "$$tool/new.lock"; } > "$$tool/clean.lock"; \
	cmp -s "$$tool/clean.lock" requirements.lock || cp "$$tool/clean.lock" requirements.lock; \
	echo "lock: $$(grep -c '==' requirements.lock) packages in requirements.lock"

# The lock file is complete, so nothing is resolved. pip would compile on one core; compileall uses them all, and its
# verdict does not matter: some packages ship templates that are not valid Python.
QUIETLY := -qq --disable-pip-version-check --no-deps

$(READY): requirements.lock pyproject.toml
	@$(FIND_INTERPRETER); \
	if ! $(PYTHON) -m pip --version >/dev/null 2>&1; then \
		echo "setup: making .venv with $$("$$interpreter" --version 2>&1)"; \
		$(ENSURE_VENV); \
		"$$interpreter" -m venv --clear .venv || exit 1; \
	fi; \
	echo "setup: installing the locked dependencies (a minute or two)"; \
	$(PYTHON) -m pip install $(QUIETLY) --no-compile --require-hashes -r requirements.lock || exit 1; \
	$(PYTHON) -m compileall -q -j 0 .venv/lib >/dev/null 2>&1; \
	echo "setup: installing margrave itself, editable"; \
	$(PYTHON) -m pip install $(QUIETLY) --no-build-isolation -e . || exit 1; \
	touch $(READY)

# Sets `interpreter` to the first Python that is new enough; PYTHON_COMMAND names one to prefer.
define FIND_INTERPRETER
interpreter=; \
for candidate in $(PYTHON_COMMAND) python3 python3.11 python3.12 python3.13 python3.14; do \
	if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
		interpreter=$$candidate; break; \
	fi; \
done; \
if [ -z "$$interpreter" ]; then \
	echo "Margrave needs Python 3.11 or newer and found none. Install it, or name it: make setup PYTHON_COMMAND=/path/to/python3" >&2; exit 1; \
fi
endef

# Debian ships the venv module without ensurepip, in a package of its own.
define ENSURE_VENV
if ! "$$interpreter" -c 'import ensurepip' >/dev/null 2>&1; then \
	package=$$("$$interpreter" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "setup: installing Debian's $$package"; \
		{ apt-get update -qq && apt-get install -y -qq "$$package"; } >/dev/null || exit 1; \
	else \
		echo "Python's venv module lacks ensurepip. Install it, for example: sudo apt-get install $$package" >&2; exit 1; \
	fi; \
fi
endef
