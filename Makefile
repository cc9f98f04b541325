# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
OLD := .venv-oldest
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
PYTEST := -m pytest -n auto --dist worksteal
NEWEST := --editable '.[test,check]' 'duckdb>=2'
OLDEST := --constraint tests/oldest.txt --editable '.[test]'
# uv installs in a tenth of pip's processor time; where it is not to be had, or finds no index, pip does it.
install = $(VENV)/bin/uv pip install --quiet --python $(1) $(2) || $(PIP) --python $(1) install --quiet $(2)

.PHONY: demo test test-thorough test-oldest stress check bench clean

demo: $(VENV)/ready            ## generate a population, assess, release and measure it, say where the result is
	@mkdir -p build/demo
	@$(VENV)/bin/duckanon run examples/population.sql --db build/demo/clinic.duckdb --create
	@$(VENV)/bin/duckanon run examples/demo.sql --db build/demo/clinic.duckdb
	@$(VENV)/bin/duckanon run examples/road.sql --echo --db build/demo/clinic.duckdb
	@echo "The releases: build/demo/swapped.csv and build/demo/clustered.csv; all tables: build/demo/clinic.duckdb."

test: $(VENV)/ready            ## all checks and tests, on the newest versions: five minutes
	$(MAKE) check
	$(VENV)/bin/python $(PYTEST)

test-thorough: $(VENV)/ready   ## properties with at least 200 examples each, studies, the oldest versions: forty minutes
	$(VENV)/bin/python $(PYTEST) -m "hypothesis or thorough" --hypothesis-profile=thorough
	$(MAKE) test-oldest

test-oldest: $(OLD)/ready      ## the SQL and the bridge on the oldest supported versions
	$(OLD)/bin/python $(PYTEST) -m "not thorough and not shell" tests/bridge $(wildcard tests/*/*.test)

stress: $(VENV)/ready          ## interrupts, closes, failures and kill -9 at random moments: ten minutes
	$(VENV)/bin/python -m tests.stress

check: $(VENV)/ready           ## style, types, and that packages import in one direction
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: $(VENV)/ready           ## ratios against floors and peers; only some: make bench ONLY=swap LARGEST=1e6
	$(VENV)/bin/python -m tests.bench $(if $(ONLY),--only "$(ONLY)") $(if $(LARGEST),--largest $(LARGEST))

clean:
	rm -rf $(VENV) $(OLD) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	-@$(PIP) install --quiet --only-binary uv uv
	$(call install,$(VENV)/bin/python,$(NEWEST))
	@touch $@

$(OLD)/ready: pyproject.toml tests/oldest.txt | $(VENV)/ready
	$(PYTHON) -m venv --clear --without-pip $(OLD)
	$(call install,$(OLD)/bin/python,$(OLDEST))
	@touch $@
