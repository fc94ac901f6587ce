# Everything a fresh machine needs: Python 3.11+, make, a C compiler and the package index.
#   make demo    see Berth work on simulated cards
#   make test    all tests
#   make check   ruff, mypy, format
#   make bench   measure
#   make sim     the whole broker in simulated worlds, N=1000000 events
#   make soak    real processes, struck at random, SOAK_SECONDS=600

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two cores are plenty busy with two workers: the tests start real engines.
WORKERS ?= 2

# How many simulated events `make sim` plays.
N ?= 1000000

.PHONY: demo test check format bench sim soak clean

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/berth demo

test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not gpu"

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)
	$(BIN)/python -m tests.bench

sim: $(STAMP)
	$(BIN)/python -m tests.sim --events $(N)

soak: $(STAMP)
	$(BIN)/python -m tests.soak

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
