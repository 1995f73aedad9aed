# Everything a visitor needs. The first target used makes the environment; all are safe to repeat.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test test-long bench scale verify-dense readme notebooks lint clean gpu-check overhead validation

help:
	@echo "make demo       record, compare, draw and run the winner, a minute or two; more the first time, while kernels compile"
	@echo "make test       lint, types, import rules, tests"
	@echo "make test-long  the long studies too"
	@echo "make bench      measure engines, caches, solvers, decisions, start and grid; keep the results"
	@echo "make scale      play 10 million tokens at 48 layers x 128 experts: memory, and cost of the last tenth"
	@echo "make verify-dense  dense replay against decoding really run at gamma 1, 2, 4, 8 on 40 prompts"
	@echo "make readme     play the README's comparison again and rewrite its table and picture"
	@echo "make notebooks  play the grid that a notebook reads and execute all notebooks again"
	@echo "make gpu-check  everything that needs a GPU, in under eight minutes; JSON in experiments/results/gpu"
	@echo "make overhead   what a layer costs the host, and how busy a link is that all wait for"
	@echo "make validation  calibrate, run seven policies for real on both clocks of the stand-in, compare with the simulator; keep the results"
	@echo "make lint       ruff, mypy and the import rules alone"
	@echo "make clean      remove the environment and caches; outputs/ stays"

# The stamp is written last, so an interrupted installation is done again.
$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "need Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/spac demo

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not gpu"

test-long: lint
	$(BIN)/python -m pytest -m "not gpu"

# Without libcachesim its section is left out, with the reason.
bench: $(STAMP)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/spac bench copy_to=experiments/results/bench

scale: $(STAMP)
	$(BIN)/python -m experiments.benchmarks.scale 10000000 spac

verify-dense: $(STAMP)
	$(BIN)/python -m runtime.dense_verification

readme: $(STAMP)
	$(BIN)/spac compare requests=6 policy=[all_cpu,static_hot,lru_fetch,lru_cpu,binary_prefetch,freetoken,hybrimoe,spac,ours,belady,window_oracle,foresight]
	$(BIN)/python -m experiments.readme outputs/compare/latest

notebooks: $(STAMP)
	$(BIN)/spac compare requests=6 policy=[all_cpu,lru_cpu,spac,ours,belady] gamma=[1,2,4,8] bound=none pictures=false
	cp outputs/compare/latest/table.csv experiments/results/notebooks/windows.csv
	$(BIN)/python -m experiments.notebooks

# With the packages of whatever Python there is: PYTHON=.venv/bin/python for those of this project.
gpu-check:
	$(PYTHON) -m experiments.gpu_check

overhead: $(STAMP)
	$(BIN)/python -m experiments.host_overhead

# On an idle machine: whoever else works on it is in the measured times.
validation: $(STAMP)
	$(BIN)/spac validate keep=experiments/results/validation

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports tests/architecture/importlinter.ini

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
