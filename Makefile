# One way in. `make help` prints the comment behind each verb.
# As root the Debian packages that are missing are installed too; otherwise everything else is
# done first and the one missing command is printed at the end.

PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
LABS := $(sort $(notdir $(basename $(wildcard solutions/lab*.py))))
PINS := pyproject.toml labs/labkit/pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help course test lint book labs bench

help:  ## print these lines
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

course: .venv/course  ## set up, build book and labs, grade the sample class, say what to open
	@sh tools/system.sh install bubblewrap g++
	autograder build
	python book/build.py
	set -e; for lab in $(LABS); do autograder release $$lab; autograder sample-class $$lab; done
	@sh tools/system.sh require bubblewrap g++
	set -e; for lab in $(LABS); do \
	  autograder grade $$lab || test $$? -le 2; \
	  autograder feedback $$lab; autograder report $$lab; autograder sample-class $$lab --verify; \
	done  # grade: 1 says that some are below full marks, 2 that some are not gradable; both are meant
	@printf '\nOpen next:\n  the book    %s\n  the labs    %s %s\n  the reports %s\n' \
	  "$(CURDIR)/book/_build/html/index.html" \
	  "$(CURDIR)/$(BIN)/jupyter lab" "$(CURDIR)/labs" \
	  "$(CURDIR)/course/.autograder/reports"

test: .venv/test lint  ## set up and run every test
	@sh tools/system.sh install bubblewrap g++ chromium
	@sh tools/system.sh require bubblewrap g++ chromium
	OMP_NUM_THREADS=1 pytest -n 2 --dist loadgroup $(if $(CI),--randomly-seed=1)

lint: .venv/test  ## formatting, types, spelling
	ruff format --check .
	ruff check .
	mypy solutions/fp4kv labs/labkit/src/labkit autograder
	codespell

book: .venv/course  ## build the book, strictly
	python book/build.py

labs: .venv/course  ## build the released and the solved notebooks from their sources
	autograder build

bench: .venv/test  ## every measured ratio, both sides in one run
	python bench/quantise.py
	OPENBLAS_NUM_THREADS=1 python bench/attention.py
	python bench/kernels.py
	python bench/kernels_gpu.py
	OMP_NUM_THREADS=1 python bench/real_replay.py --out .cache/real_replay.json
	python bench/replay.py
	python bench/grading.py

.venv/course: $(PINS)
	@sh tools/system.sh install python3-venv
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e labs/labkit[validate,kernels] -e .[book]
	$(BIN)/python -m autograder.gradebook.plugin
	@touch $@

.venv/test: .venv/course
	$(BIN)/pip install -q -c constraints.txt -e labs/labkit[validate,kernels] -e .[book,oracles,test]
	@touch $@
