# Everything below sets itself up: a virtual environment in .venv, pinned packages, the extension module.
# Needs Python 3.10 or later and a Rust toolchain.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL = PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml

.PHONY: run test test-rust test-python test-slow bench clean
.DEFAULT_GOAL := run

run: $(VENV)/.release
	$(BIN)/clearway compare examples/dcpim-vs-tcp.toml --transport dcpim --transport dctcp --transport cubic

test: test-rust test-python

test-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --workspace --locked

test-python: $(VENV)/.built
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest clearway._core --mypy-config-file pyproject.toml
	$(BIN)/pytest -q

test-slow: $(VENV)/.built
	cargo test --workspace --locked --profile fast-build -- --ignored
	$(BIN)/pytest -q -m slow

bench:
	cargo run --release --locked -p clearway-sim --example bench

$(VENV)/.packages: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is needed"; exit 1; }
	@command -v cargo >/dev/null || { echo "A Rust toolchain is needed: cargo is not in PATH"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); echo "On Debian: apt install python3-venv"; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

# One module at a time in the environment: the one for tests is built in half the time, the other is the faster.
$(VENV)/.built: $(VENV)/.packages $(RUST)
	rm -f $(VENV)/.release
	MATURIN_PEP517_ARGS="--locked --profile fast-build" $(INSTALL)
	touch $@

$(VENV)/.release: $(VENV)/.packages $(RUST)
	rm -f $(VENV)/.built
	MATURIN_PEP517_ARGS="--locked --profile release" $(INSTALL)
	touch $@

clean:
	rm -rf $(VENV) target out
