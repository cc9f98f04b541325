# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
OLD := .venv-oldest
PIP := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test check bench clean

demo: $(VENV)/ready            ## generate a population, assess, release and measure it, say where the result is
	@mkdir -p build/demo
	@$(VENV)/bin/duckanon run examples/population.sql --db build/demo/clinic.duckdb
	@$(VENV)/bin/duckanon run examples/demo.sql --db build/demo/clinic.duckdb
	@$(VENV)/bin/duckanon run examples/road.sql --echo --db build/demo/clinic.duckdb
	@echo "The releases: build/demo/swapped.csv and build/demo/clustered.csv; all tables: build/demo/clinic.duckdb."

test: check $(OLD)/ready       ## all checks; all tests on the newest DuckDB, the quick ones on the oldest versions too
	$(VENV)/bin/python -m pytest -n auto --dist worksteal
	$(OLD)/bin/python -m pytest -n auto --dist worksteal -m "not slow"

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
	$(VENV)/bin/python $(PIP) --editable '.[test,check]' 'duckdb>=2'
	@touch $@

$(OLD)/ready: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv --clear $(OLD)
	$(OLD)/bin/python $(PIP) --constraint tests/oldest.txt --editable '.[test]'
	@touch $@
