# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
OLD := .venv-oldest
ENGINES := .venv-engines
PLACES := .venv-places
PEERS := pycanon anjana anonypy
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
PYTEST := -m pytest -n auto --dist worksteal
PATIENT := --timeout=600
NEWEST := --editable . --group test --group check 'duckdb>=2'
AT_PLACES := --editable '.[notebook,dbt]' --group test --group places
WITH_ENGINES := --editable '.[spark,postgresql]' --group test 'duckdb>=2'
OLDEST := --constraint tests/oldest.txt --editable . --group test
# uv installs in a tenth of pip's processor time. If there is no uv, or it finds no index, pip installs.
install = $(VENV)/bin/uv pip install --quiet --python $(1) $(2) || $(PIP) --python $(1) install --quiet $(2)

# Modules are compiled once, not in each of the processes that the tests start, wherever `make` is called.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-quick test-thorough test-oldest test-engines test-browser test-places stress mutants check docs bench \
        bench-peers bench-large release-check clean

demo: $(VENV)/ready            ## generate a clinic, assess and release its visits, say where the report is
	@$(VENV)/bin/duckanon demo --to build/clinic

test: $(VENV)/ready            ## all checks and one fixed set of tests, on the newest versions: three and a half minutes on two cores
	$(MAKE) --jobs=2 check test-quick

test-quick: $(VENV)/ready      ## the tests of `make test` alone
	$(VENV)/bin/python $(PYTEST)

test-thorough: $(VENV)/ready   ## tests that take long, properties with more examples, the stock shell, the oldest versions: 25 minutes
	$(VENV)/bin/python $(PYTEST) -m "(hypothesis or thorough or shell) and not engines and not browser" --hypothesis-profile=thorough $(PATIENT)
	$(MAKE) test-oldest

test-oldest: $(OLD)/ready      ## the SQL and the bridge on the oldest supported versions
	$(OLD)/bin/python $(PYTEST) -m "not thorough and not shell" tests/bridge $(wildcard tests/*/*.test)

test-engines: $(ENGINES)/ready ## PostgreSQL and Spark: what is rendered, read, written and released; skips what cannot be installed
	$(ENGINES)/bin/python -m pytest $(PATIENT) -m engines tests/rendered tests/postgresql tests/spark

test-browser: $(VENV)/ready    ## the report and the workbench in Debian's Chromium, which is installed where that is allowed: two minutes
	@$(call install,$(VENV)/bin/python,--group browser) || true
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
	    || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } \
	    || echo "There is no Chromium, and it cannot be installed: the tests in a browser are skipped."
	$(VENV)/bin/python -m pytest $(PATIENT) -m browser -rs tests/browser

test-places: $(PLACES)/ready   ## notebooks, dbt, and the wheel in an empty environment: five minutes
	$(PLACES)/bin/python -m pytest $(PATIENT) -m "" tests/places

stress: $(VENV)/ready          ## interrupts, closes, failures and kill -9 at random moments: ten minutes
	$(VENV)/bin/python -m tests.stress

mutants: $(VENV)/ready         ## 200 random changes of the code, one at a time: how many does a test notice? an hour
	$(VENV)/bin/python -m tests.mutants $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

check: $(VENV)/ready           ## style, types, and that packages import in one direction
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

docs: $(VENV)/docs             ## the documentation as a site, build/site/index.html; a dead link fails: half a minute
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build
	@echo "The site: build/site/index.html"

bench: $(VENV)/ready           ## ratios against floors and peers; fails where one became worse; only some: make bench ONLY=swap LARGEST=1e6
	$(VENV)/bin/python -m tests.bench $(if $(ONLY),--only "$(ONLY)") $(if $(LARGEST),--largest $(LARGEST)) $(if $(RECORD),--record)

bench-peers: $(VENV)/ready     ## the same beside other packages, each installed from PyPI in an environment of its own
	for peer in $(PEERS); do \
	    test -d build/peers/$$peer || { $(PYTHON) -m venv --without-pip build/peers/$$peer \
	        && { $(call install,build/peers/$$peer/bin/python,$$peer pandas) || rm -r build/peers/$$peer; }; }; done
	$(VENV)/bin/python -m tests.bench --only "from CSV" $(if $(RECORD),--record)

bench-large: $(VENV)/ready     ## releases of tables larger than memory: time, peak memory, loss; only some: ONLY="boxes 1e6"
	$(VENV)/bin/python -m tests.bench.large $(ONLY)

release-check: $(VENV)/ready   ## all of a release but its upload: builds it, and tries wheel, source archive and extension; TAG=v0.1.0
	@$(call install,$(VENV)/bin/python,--group release)
	$(VENV)/bin/python -m tests.release_check $(if $(TAG),--tag $(TAG))

clean:
	rm -rf $(VENV) $(OLD) $(ENGINES) $(PLACES) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --quiet 'pip>=25.1'  # the first that installs a --group; a new environment may have an older one
	-@$(PIP) install --quiet --only-binary uv uv
	$(call install,$(VENV)/bin/python,$(NEWEST))
	@touch $@

$(VENV)/docs: $(VENV)/ready
	$(call install,$(VENV)/bin/python,--group docs)
	@touch $@

$(OLD)/ready: pyproject.toml tests/oldest.txt | $(VENV)/ready
	$(PYTHON) -m venv --clear --without-pip $(OLD)
	$(call install,$(OLD)/bin/python,$(OLDEST))
	@touch $@

# The servers come from Debian, where apt-get may install them; what is missing then is skipped, and pytest says so.
$(ENGINES)/ready: pyproject.toml | $(VENV)/ready
	-@test -d /usr/lib/postgresql || apt-get install --quiet --yes postgresql
	-@command -v java || apt-get install --quiet --yes default-jre-headless
	$(PYTHON) -m venv --clear --without-pip $(ENGINES)
	$(call install,$(ENGINES)/bin/python,$(WITH_ENGINES))
	@touch $@

$(PLACES)/ready: pyproject.toml | $(VENV)/ready
	$(PYTHON) -m venv --clear $(PLACES)
	$(call install,$(PLACES)/bin/python,$(AT_PLACES))
	@touch $@
