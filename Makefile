# `make demo` and `make test` set everything up themselves: they need python3 (3.11 or newer) and make.
# `make demo PYTHON=python3.12` picks another Python.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-coreml lint format clean

help:
	@echo "make demo    live transcription of a shipped recording, through a real server"
	@echo "make test    every check: ruff, mypy, bandit, pytest"
	@echo "make test-coreml  the server's tests on the Core ML backend, without a Mac"
	@echo "make lint    ruff, mypy and bandit only"
	@echo "make format  let ruff format the code"
	@echo "make clean   remove the virtual environment and caches"

demo: $(VENV)/.installed
	$(BIN)/parakeet-live demo

test: lint
	$(BIN)/pytest

# The tests of server and client once more, with the Core ML backend interpreting the packages.
test-coreml: $(VENV)/.installed-test
	PARAKEET_TEST_BACKEND=coreml $(BIN)/pytest tests/server tests/clients

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml server clients
	@if command -v npm > /dev/null; then \
	  npm ci --prefix clients/web --silent --no-audit --no-fund && npm run check --prefix clients/web --silent; \
	else echo "no npm here: the types of the browser page are not checked"; fi

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/.created:
	@command -v $(PYTHON) > /dev/null || { \
	  echo "error: there is no $(PYTHON) here. Install Python 3.11 or newer,"; \
	  echo "or name the one to use: make demo PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: Python 3.11 or newer is needed, $(PYTHON) is `$(PYTHON) --version 2>&1`."; \
	  echo "Install a newer one and name it: make demo PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "error: $(PYTHON) cannot make a virtual environment."; \
	  echo "On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@touch $@

# The stamps depend on pyproject.toml alone: the package is installed editable, so code changes need no reinstall.
$(VENV)/.installed: pyproject.toml | $(VENV)/.created
	@echo "installing parakeet-live into $(VENV); this is done once and takes a minute"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/.created
	@echo "installing parakeet-live and the test tools into $(VENV); this is done once and takes some minutes"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.installed
