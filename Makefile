# `make` lists the targets. They need git, make and Python 3.11–3.15; all else goes into .venv,
# which is made once, and again when pyproject.toml changes: after that, pip is not called.

# the first of these that fits is used; `make run PYTHON=/opt/python3.12/bin/python` names another
PYTHON ?= python3 python3.13 python3.12 python3.11 python3.14 python3.15

# runs at once; each has a core of its own
JOBS ?= 2

# how much LLVM optimises the kernels of `make test`: compiling is most of its time, and a fifth of
# it is saved. Other commands must not load these kernels, so they have a folder of their own.
# `make test-processors` and `make test NUMBA_OPT=3` test optimised kernels, as users run them
NUMBA_OPT ?= 1

# whose sums `make test-processors` has; others: Prescott, Haswell, Zen, and with AVX-512 SkylakeX
KIND ?= Nehalem

# tests of kernels that take few minutes if Python interprets these
INTERPRETED := $(addprefix tests/, base/test_linalg.py planes/test_few_zeros.py planes/test_wide.py \
    solvers/test_eg.py solvers/test_nonnegative.py papers/test_transduction_parts.py)

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/made
PROGRAM := $(VENV)/installed
WITH_EXTRAS := $(VENV)/installed-extras
DEVELOPMENT := $(VENV)/installed-dev
FOR_DOCS := $(VENV)/installed-docs
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install

# `make clean reproduce LOCKED=1`: with the versions of packages that `make lock` wrote down
LOCK := experiments/requirements.lock
ifdef LOCKED
PIP += --constraint $(LOCK)
endif

# for targets that make what is committed: without it, the committed results stay as they are
COMMITTED := results_dir=results
REAL := dataset.source=real

# $(call make-runs,EXPERIMENTS,OVERRIDES) makes runs and figures, $(call draw,EXPERIMENTS,OVERRIDES) figures
make-runs = for name in $(1); do \
	    $(BIN)/ssvm-bench experiment $$name --jobs $(JOBS) $(2) $(COMMITTED) || exit; \
	done
draw = printf '%s\n' $(1) | xargs -P $(JOBS) -n 4 sh -c '$(BIN)/ssvm-bench plot "$$@" $(2) $(COMMITTED)' -

.PHONY: help run test test-processors test-whole test-site coverage check kernels docs bench bench-all answer quickstart rivals beyond figures options papers-pages pictures update-reference lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(PROGRAM) ## set up, train BCFW and MP-BCFW on words of OCR, draw and compare
	$(BIN)/ssvm-bench experiment main
	@echo; echo "Next, a third solver on the same words; it finds the two again:"
	@echo "$(BIN)/ssvm-bench experiment main solver=bcfw,mpbcfw,mpbcfw_fast"

test: $(DEVELOPMENT) ## set up for development, run the tests
	NUMBA_OPT=$(NUMBA_OPT) NUMBA_CACHE_DIR="$(CURDIR)/$(VENV)/kernels-$(NUMBA_OPT)" \
	    $(BIN)/python -m pytest -n $(JOBS) --dist loadfile

test-processors: $(DEVELOPMENT) ## the numerical tests, as on an older processor: three minutes
	OPENBLAS_CORETYPE=$(KIND) NUMBA_CPU_NAME=generic \
	    $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m processors

test-whole: $(DEVELOPMENT) ## every solver on every dataset and type of features: hours
	$(BIN)/python -m pytest -n $(JOBS) -m whole tests/solvers/test_every.py

test-site: $(DEVELOPMENT) ## look at the site of `make docs` in Chromium: minutes
	$(BIN)/python -m pytest tests/repository/test_site.py

coverage: $(DEVELOPMENT) ## which lines of the kernels some of the tests reach, interpreted: minutes
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run tests/families.py > /dev/null
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run --append -m pytest $(INTERPRETED)
	$(BIN)/coverage report | tee coverage.txt

check: $(DEVELOPMENT) ## lint, format, types and what a user's program knows of them, imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict --follow-imports=silent --cache-dir=.mypy_cache/strict tests/typed.py
	$(BIN)/lint-imports --no-cache --no-logo

kernels: $(DEVELOPMENT) ## the wheel ssvm-bench-kernels in dist/, for this Python and platform: minutes
	$(BIN)/python kernels/build.py

docs: $(FOR_DOCS) ## build the site into site/, and open site/index.html; warnings are errors
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=docs/site $(BIN)/mkdocs build --strict

bench: $(DEVELOPMENT) ## the speed ratios that matter, also in results/bench: twenty minutes
	$(BIN)/python -m benchmarks --cold --json results/bench

bench-all: $(DEVELOPMENT) ## all speed ratios, of every dataset: twenty minutes
	$(BIN)/python -m benchmarks --all --cold --json results/bench

answer: $(PROGRAM) ## who is first, and at which cost of a call: figures, profiles, table of the package and page, from stored traces
	$(call draw,crossover crossover_more all_solvers beyond mpbcfw_fig4)
	$(BIN)/python docs/which_solver.py

quickstart: $(PROGRAM) ## BCFW against MP-BCFW on OCR, three seeds
	$(BIN)/ssvm-bench experiment quickstart

rivals: $(WITH_EXTRAS) ## subgradient, gradient, cutting-plane and bundle methods, on real and simulated data: hours
	$(call make-runs,$(RIVALS) all_solvers agreement,$(REAL))
	$(call make-runs,$(RIVALS_SIMULATED))
	$(call draw,$(RIVALS_DRAWN))

beyond: $(WITH_EXTRAS) ## what each option beyond the papers buys, on the real data: over an hour
	$(call make-runs,beyond second_order in_out shrinking by_seconds certified kernel,$(REAL))

figures: $(WITH_EXTRAS) ## redraw the figures and the claims from the stored traces
	$(call draw,quickstart segmentation $(FIGURES) beyond second_order in_out shrinking by_seconds certified kernel parallel all_solvers agreement)
	$(BIN)/python docs/verdicts.py
	$(BIN)/python docs/prose.py

options: $(DEVELOPMENT) ## the tables of docs/options.md and of completion, from the code
	$(BIN)/python docs/tables.py

pictures: $(PROGRAM) ## the drawings in docs/pictures
	$(BIN)/python docs/pictures/draw.py

papers-pages: $(PROGRAM) ## the verdicts in docs/papers, and the numbers in pages, from the stored tables
	$(BIN)/python docs/verdicts.py
	$(BIN)/python docs/prose.py

update-reference: $(DEVELOPMENT) ## accept changed regression curves
	$(BIN)/python tests/regression/reference.py

lock: $(MADE) ## write down the newest versions of all packages, for LOCKED=1
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --extra all --extra graphs \
	    --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
	    --output-file $(LOCK) pyproject.toml

clean: ## remove the environment and caches; results stay
	rm -rf $(VENV) build dist kernels/ssvm_bench_kernels site .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find ssvm_bench tests -name __pycache__ -prune -exec rm -rf {} +

$(PROGRAM): pyproject.toml | $(MADE)
	@echo "Installing into $(VENV) (a minute or two) …"
	$(PIP) --editable .
	@touch $@

$(WITH_EXTRAS): pyproject.toml | $(MADE)
	@echo "Installing into $(VENV), with pictures (a minute or two) …"
	$(PIP) --editable '.[images]'
	@touch $@ $(PROGRAM)

$(DEVELOPMENT): pyproject.toml | $(MADE)
	@echo "Installing into $(VENV), with the development tools (a minute or two) …"
	$(PIP) --editable '.[dev]'
	@touch $@ $(WITH_EXTRAS) $(PROGRAM)

$(FOR_DOCS): pyproject.toml | $(MADE)
	@echo "Installing into $(VENV), with what builds the site (a minute or two) …"
	$(PIP) --editable '.[docs]'
	@touch $@ $(PROGRAM)

$(MADE):
	@for python in $(PYTHON); do \
	    command -v "$$python" >/dev/null 2>&1 || continue; \
	    "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 16))' \
	        2>/dev/null || continue; \
	    fits=$$python; \
	    "$$python" -c 'import ensurepip, venv' 2>/dev/null || continue; \
	    echo "Making $(VENV) with $$("$$python" --version) …"; \
	    rm -rf $(VENV) && "$$python" -m venv $(VENV) && touch $@; \
	    exit; \
	done; \
	if [ -n "$$fits" ]; then \
	    echo "$$fits cannot make an environment: apt install python3-venv, then try again." >&2; \
	else \
	    echo "No Python 3.11–3.15 found (looked for: $(PYTHON)). Install one, or name it:" >&2; \
	    echo "make $(MAKECMDGOALS) PYTHON=/path/to/python3.12" >&2; \
	fi; \
	exit 1

# the targets of each paper, and what they add to those of all: RIVALS, FIGURES
include ssvm_bench/papers/*/targets.mk
