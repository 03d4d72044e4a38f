# Works with GNU make 3.81 and later, which is what macOS has.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help lab test notebooks model lint format clean

VENV := .venv
STAMPS := $(VENV)/stamps
ifeq ($(OS),Windows_NT)
PY := $(VENV)/Scripts/python.exe
else
PY := $(VENV)/bin/python
endif
CELL_TIMEOUT := 600
NOTEBOOKS = $(sort $(wildcard notebooks/*.ipynb))
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

help:
	@echo "make lab        set up once, then open the course in JupyterLab"
	@echo "make test       set up once, then check the code, the tests and every notebook"
	@echo "make notebooks  run all notebooks from scratch and write their outputs"
	@echo "make model      fetch the model (93 MB) into your cache folder"
	@echo "make lint       check style;  make format  mends it"
	@echo "make clean      remove the virtual environment and what tests leave behind"
	@echo "PYTHON=...      the interpreter to use, 3.11 or newer"

lab: $(STAMPS)/lab model
	$(PY) -m jupyter lab $(ALLOW_ROOT) $(LAB_FLAGS) notebooks/00_tour.ipynb

test: lint model
	$(PY) -m pytest tests
	$(PY) -m pytest --nbval --nbval-current-env --nbval-cell-timeout=$(CELL_TIMEOUT) notebooks

# One clean kernel a notebook, in order. Execution times, widget state and what the author has
# solved are not written, so that little but measured times differs from run to run. Then lines
# that a kernel happened to send in pieces become one output.
notebooks: $(STAMPS)/dev model
	rm -rf $(VENV)/nothing-solved
	PAGED_TUTORIAL_DATA=$(CURDIR)/$(VENV)/nothing-solved $(PY) -m nbconvert --to notebook --execute --inplace \
	    --ExecutePreprocessor.timeout=$(CELL_TIMEOUT) \
	    --ExecutePreprocessor.record_timing=False \
	    --ExecutePreprocessor.store_widget_state=False \
	    $(NOTEBOOKS)
	$(PY) -m nbconvert --to notebook --inplace --CoalesceStreamsPreprocessor.enabled=True $(NOTEBOOKS)

model: | $(STAMPS)/python
	@test -e $(STAMPS)/lab || test -e $(STAMPS)/dev || $(MAKE) --no-print-directory $(STAMPS)/lab
	@$(PY) -m paged_tutorial.weights

lint: $(STAMPS)/dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: $(STAMPS)/dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .hypothesis

# ---- set-up: each step leaves a stamp and is repeated only when what it read has changed ----

FITS := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

$(STAMPS)/python:
	@found=; \
	for python in $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11 python); do \
	    if "$$python" -c "$(FITS)" >/dev/null 2>&1; then found="$$python"; break; fi; \
	done; \
	if test -z "$$found"; then \
	    echo "No Python 3.11 or newer with the modules venv and ensurepip$(if $(PYTHON), at $(PYTHON))." >&2; \
	    echo "Install one (on Debian and Ubuntu also python3-venv), or name it: make lab PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	echo "Making a virtual environment in $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv --clear $(VENV)
	@mkdir -p $(STAMPS) && touch $@

define install
	@echo "Installing the package and what it needs (a few minutes at most)"
	@$(PY) -m pip install --quiet --upgrade --constraint constraints.txt pip && \
	 $(PY) -m pip install --quiet --constraint constraints.txt --build-constraint constraints.txt \
	    --editable "$(1)" || \
	 { echo "The installation failed: connect to the network and run the same command again." >&2; exit 1; }
	@touch $@
endef

$(STAMPS)/lab: pyproject.toml constraints.txt | $(STAMPS)/python
	$(call install,.)

$(STAMPS)/dev: pyproject.toml constraints.txt | $(STAMPS)/python
	$(call install,.[dev])
