# `make` lists the targets. They need git, make and Python 3.10–3.13; all else goes into .venv,
# which is made once, and again when pyproject.toml changes: after that, pip is not called.

# the first of these that fits is used; `make run PYTHON=/opt/python3.12/bin/python` names another
PYTHON ?= python3 python3.13 python3.12 python3.11 python3.10

# runs at once; each has a core of its own
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/made
PROGRAM := $(VENV)/installed
DEVELOPMENT := $(VENV)/installed-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install

# for targets that make what is committed: without it, the committed results stay as they are
COMMITTED := results_dir=results

# files of examples that are made of other datasets
STREAMS := streams/digits.parquet streams/neighbours.parquet

.PHONY: help run test check bench bench-all quickstart reproduce reproduce-quick beyond fidelity rivals streams dual-coordinate transduction figures update-reference clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s%s\n", $$1, $$2}' Makefile

run: $(PROGRAM) ## set up, train MP-BCFW on OCR, draw its figure
	$(BIN)/ssvm-bench run solver=mpbcfw dataset=ocr
	$(BIN)/ssvm-bench plot main

test: $(DEVELOPMENT) ## set up for development, run the tests
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

check: $(DEVELOPMENT) ## lint, format, types, which folder may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

bench: $(DEVELOPMENT) ## the speed ratios that matter, also in results/bench.json: eight minutes
	$(BIN)/python -m benchmarks --cold --json results/bench.json

bench-all: $(DEVELOPMENT) ## all speed ratios, of every dataset: twenty minutes
	$(BIN)/python -m benchmarks --all --cold --json results/bench.json

quickstart: $(PROGRAM) ## BCFW against MP-BCFW on OCR, three seeds
	$(BIN)/ssvm-bench experiment quickstart

reproduce: $(PROGRAM) ## the MP-BCFW paper's figures and claims on the real data: hours
	for name in mpbcfw_fig4 mpbcfw_start mpbcfw_costs; do \
	    $(BIN)/ssvm-bench experiment $$name --jobs $(JOBS) dataset.source=real $(COMMITTED) || exit; \
	done
	for name in mpbcfw_fig5 mpbcfw_fig6 mpbcfw_claims; do \
	    $(BIN)/ssvm-bench plot $$name dataset.source=real $(COMMITTED) || exit; \
	done
	$(BIN)/ssvm-bench report $(COMMITTED)

reproduce-quick: $(PROGRAM) ## the same in small, on stand-ins: five minutes
	$(BIN)/ssvm-bench experiment mpbcfw_quick --jobs $(JOBS) results_dir=results/quick
	$(BIN)/ssvm-bench report results_dir=results/quick

beyond: $(PROGRAM) ## what each option beyond the papers buys, on the real data: over an hour
	$(BIN)/ssvm-bench experiment beyond --jobs $(JOBS) dataset.source=real $(COMMITTED)

fidelity: $(PROGRAM) ## what the MP-BCFW paper leaves open, settled by runs on the real data: an hour
	$(BIN)/ssvm-bench experiment fidelity --jobs $(JOBS) dataset.source=real $(COMMITTED)

rivals: $(PROGRAM) ## subgradient, gradient, cutting-plane and bundle methods, on real and drawn data: hours
	for name in bcfw_poster_optima bcfw_poster bcfw_poster_rates bmrm_mnist bmrm_drop all_solvers \
	        agreement; do \
	    $(BIN)/ssvm-bench experiment $$name --jobs $(JOBS) dataset.source=real $(COMMITTED) || exit; \
	done
	for name in bmrm_plates bmrm_landmarks; do \
	    $(BIN)/ssvm-bench experiment $$name --jobs $(JOBS) $(COMMITTED) || exit; \
	done
	$(BIN)/ssvm-bench plot bmrm $(COMMITTED)

streams: $(STREAMS) ## write the files of the datasets digits and neighbours: minutes, half a gigabyte

dual-coordinate: $(STREAMS) ## dual coordinate descent, in memory and from a stream, on the real data: over an hour
	$(BIN)/ssvm-bench experiment dual_coordinate --jobs $(JOBS) dataset.source=real $(COMMITTED)

streams/digits.parquet: | $(PROGRAM)
	mkdir -p $(@D)
	$(BIN)/ssvm-bench data export mnist $@ --source real \
	    --repeat 34 --jitter shift=1,rotation=10,elastic=1.4

streams/neighbours.parquet: | $(PROGRAM)
	mkdir -p $(@D)
	$(BIN)/ssvm-bench data export usps $@ --source real \
	    --repeat 5 --order neighbours --jitter shift=1

transduction: $(PROGRAM) ## discrete-continuous ADMM and its rivals, on the real data: over an hour
	for name in dcadmm_moons dcadmm_ssl_search dcadmm_ssl dcadmm_convergence dcadmm_scribbles \
	        dcadmm_video dcadmm_video_rho; do \
	    $(BIN)/ssvm-bench experiment $$name --jobs $(JOBS) dataset.source=real $(COMMITTED) || exit; \
	done
	$(BIN)/ssvm-bench plot dcadmm_claims $(COMMITTED)

figures: $(PROGRAM) ## redraw the figures and the claims from the stored traces
	for name in quickstart segmentation mpbcfw_fig4 mpbcfw_fig5 mpbcfw_fig6 mpbcfw_start \
	        mpbcfw_costs mpbcfw_claims fidelity beyond bcfw_poster bcfw_poster_rates \
	        bmrm_mnist bmrm_drop bmrm_plates bmrm_landmarks bmrm parallel dual_coordinate all_solvers agreement \
	        dcadmm_moons dcadmm_ssl dcadmm_convergence dcadmm_scribbles \
	        dcadmm_video dcadmm_video_rho dcadmm_claims; do \
	    $(BIN)/ssvm-bench plot $$name $(COMMITTED) || exit; \
	done

update-reference: $(DEVELOPMENT) ## accept changed regression curves
	$(BIN)/python tests/regression/reference.py

clean: ## remove the environment and caches; results stay
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find ssvm_bench tests -name __pycache__ -prune -exec rm -rf {} +

$(PROGRAM): pyproject.toml | $(MADE)
	@echo "Installing into $(VENV) (a minute or two) …"
	$(PIP) --editable .
	@touch $@

$(DEVELOPMENT): pyproject.toml | $(MADE)
	@echo "Installing into $(VENV), with the development tools (a minute or two) …"
	$(PIP) --editable '.[dev]'
	@touch $@ $(PROGRAM)

$(MADE):
	@for python in $(PYTHON); do \
	    command -v "$$python" >/dev/null 2>&1 || continue; \
	    "$$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' \
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
	    echo "No Python 3.10–3.13 found (looked for: $(PYTHON)). Install one, or name it:" >&2; \
	    echo "make $(MAKECMDGOALS) PYTHON=/path/to/python3.12" >&2; \
	fi; \
	exit 1
