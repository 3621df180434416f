# Everything a user or a contributor runs. `make run` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run test check install bench truth gpu-bench slow-test gpu-test browser-test extras-test cluster-test kernels-test torture clean help
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

install: $(STAMP) ## create .venv and install tiebreak into it

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (about two minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[speech,dev]'
	@touch $(STAMP)

run: $(STAMP) ## run the default study on embedded data; ends with a verdict and a report
	@$(BIN)/tiebreak run pooling --quick --out runs/pooling

test: $(STAMP) ## run the tests (slow, GPU and browser checks have targets of their own)
	@PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal \
		-m "not slow and not gpu and not browser and not cluster"

check: $(STAMP) ## lint and strict types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(STAMP) ## measure our training loop against a bare PyTorch loop, in one process
	@$(BIN)/python benchmarks/overhead.py

gpu-bench: $(STAMP) ## what fusing gains on a CUDA device
	@$(BIN)/python benchmarks/fused.py gpu

truth: $(STAMP) ## what verdicts promise, simulated (minutes); writes benchmarks/results/truth.md
	@$(BIN)/python benchmarks/truth.py --out benchmarks/results

slow-test: $(STAMP) ## the tests that take minutes
	@$(BIN)/python -m pytest -q -m slow

gpu-test: $(STAMP) ## the tests that need a CUDA device
	@$(BIN)/python -m pytest -q -m gpu

browser-test: $(STAMP) ## install Debian's Chromium if missing and look at the report in it
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	@$(BIN)/python -m pytest -q -m browser

extras-test: $(STAMP) ## the tests with libraries of other tools (trackers, Hugging Face), in an environment of their own
	@test -x $(VENV)-extras/bin/python || $(PYTHON) -m venv $(VENV)-extras
	@$(VENV)-extras/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[trackers,examples,dev]'
	@OMP_NUM_THREADS=1 $(VENV)-extras/bin/python -m pytest -q -m extras tests/exchange tests/test_examples.py

cluster-test: $(STAMP) ## the tests that start a Ray cluster on this machine; installs Ray into .venv if missing
	@$(BIN)/python -c "import ray" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[cluster]'
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m cluster tests/cluster

kernels-test: $(STAMP) ## the tests of the GPU kernels in Triton's interpreter, in an environment of their own
	@test -x $(VENV)-kernels/bin/python || $(PYTHON) -m venv $(VENV)-kernels
	@$(VENV)-kernels/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[kernels,dev]'
	@OMP_NUM_THREADS=1 TRITON_INTERPRET=1 $(VENV)-kernels/bin/python -m pytest -q -m kernels tests/layers/kernels

TORTURE ?= 200
FUZZ ?= 100000
DAMAGE ?= 50

torture: $(STAMP) ## kills, full disks, damage, hostile input: hours; TORTURE=20 FUZZ=1000 DAMAGE=5 make torture: less
	@OMP_NUM_THREADS=1 TORTURE=$(TORTURE) FUZZ=$(FUZZ) DAMAGE=$(DAMAGE) $(BIN)/python -m pytest -q -n auto \
		tests/torture tests/fuzz tests/results tests/drive/test_resume.py tests/cli/test_hostile_names.py \
		tests/test_strangers_folder.py tests/test_bombs.py tests/report/page

clean: ## remove the environment and caches (never your runs)
	rm -rf $(VENV) $(VENV)-extras $(VENV)-kernels .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
