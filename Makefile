# Everything below sets itself up: a virtual environment in .venv, pinned packages, the extension module.
# Needs Python 3.10 or later and a Rust toolchain.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WITHIN := PATH="$(CURDIR)/$(BIN):$$PATH"
# Verbose, so that cargo's progress shows.
INSTALL := $(WITHIN) $(BIN)/pip install --verbose --disable-pip-version-check --no-deps \
	--no-build-isolation --editable .
# It would advertise its successor.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml

# Tools that few need: who needs one installs it, in this version.
TOOLS := target/tools
DENY := 0.20.2
CARGO_FUZZ := 0.13.2
ZIGLANG := 0.17.1
# A version for each version of the crate.
WASM_BINDGEN_VERSION := $(shell sed -n 's/^wasm-bindgen = "=\(.*\)"/\1/p' Cargo.toml)
WASM_BINDGEN_ROOT := $(TOOLS)/wasm-bindgen-$(WASM_BINDGEN_VERSION)
WASM_BINDGEN := $(WASM_BINDGEN_ROOT)/bin/wasm-bindgen
PLAYGROUND := target/playground
NIGHTLY ?= nightly
FUZZ_SECONDS ?= 60
# How long `make swarm` looks for scenarios that fail.
SECONDS ?= 600
# Processes of pytest.
TESTS_AT_ONCE ?= 2
FUZZ_TARGETS ?= $(notdir $(wildcard fuzz/seeds/*))

.PHONY: run test test-rust test-python test-slow test-against against-kernel swarm test-kernel aq lint docs site
.PHONY: rust-docs fuzz deny web wheel try-wheel bench bench-against bench-live bench-scale bench-web clean
.DEFAULT_GOAL := run

run: $(VENV)/.release
	$(BIN)/clearway compare examples/dcpim-vs-tcp.toml --transport dcpim --transport dctcp --transport cubic \
		--picture out/dcpim-vs-tcp.png

test: test-rust test-python

# Property tests draw the same cases each time, so that a change is judged by what it changed; test-slow draws others.
# Examples are left to the lint; documentation of Maze, of State and of the crate clearway has code that runs.
test-rust: lint
	PROPTEST_RNG_SEED=1 cargo test --workspace --locked --lib --bins --tests
	cargo test -p clearway-live -p clearway-node -p clearway --locked --doc

test-python: $(VENV)/.packages
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(MAKE) $(VENV)/.built
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest clearway._core --mypy-config-file pyproject.toml
	$(BIN)/pytest -q -n $(TESTS_AT_ONCE)

test-slow: $(VENV)/.built
	cargo test --workspace --locked -- --ignored
	$(BIN)/pytest -q -m slow
	$(MAKE) swarm

# The same flows in ns-3, which is installed for it: docs/coming-from.md.
test-against: $(VENV)/.built
	$(PYTHON) -m venv target/ns3
	target/ns3/bin/pip install --quiet --disable-pip-version-check ns3==3.44.post0
	CLEARWAY_NS3=target/ns3/bin/python $(BIN)/pytest -q tests/python/test_against.py

# The same flows over this machine's kernel, as root, in some ten minutes: writes docs/kernel-measured.md.
# KERNEL="two small-buffer/bbr" measures these cases alone.
against-kernel: $(VENV)/.built
	$(BIN)/python tests/kernel_page.py $(KERNEL)

# Random scenarios in all configurations, on all cores, for SECONDS; what fails is left in target/swarm. FIRST=1000
# begins with that block, so that a search can be repeated.
swarm: $(VENV)/.built
	PYTHONPATH=tests/python $(BIN)/python -m swarm --seconds $(SECONDS) $(if $(FIRST),--first $(FIRST))

# The command that attaches Augmented Queue to network devices: docs/aq-linux.md. It needs clang and libbpf's headers.
aq:
	cargo build -p clearway-aq-linux --locked --release
	@echo "target/release/clearway-aq: \`clearway aq\` finds it here; copy it to where it is needed"

# Augmented Queue in this machine's kernel, as root: installs what it needs on Debian, then faults and experiments with
# kernel TCP in namespaces. KERNEL="quick table-2" chooses experiments, KERNEL=none none. WRITE=1 writes
# docs/aq-linux.md. COMING=600 has tenants come and go for ten minutes.
test-kernel:
	@for package in clang libbpf-dev iproute2 iputils-ping iperf3 bpftool linux-tools-common \
			containernetworking-plugins runc; do \
		[ "$$(id -u)" != 0 ] || apt-get install -y --no-install-recommends $$package >/dev/null 2>&1 || true; \
	done
	$(MAKE) aq
	cargo test -p clearway-aq-linux --locked -- --nocapture
	$(PYTHON) tests/kernel/faults.py
	$(PYTHON) tests/kernel/attacks.py
	$(PYTHON) tests/kernel/daemon.py
	$(PYTHON) tests/kernel/containers.py
	$(if $(filter none,$(KERNEL)),,$(PYTHON) tests/kernel/experiments.py $(KERNEL) $(if $(WRITE),--write))

# From what fails soonest to what takes longest.
lint:
	cargo fmt --all --check
	$(PYTHON) tests/limits.py
	$(PYTHON) tests/words.py
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(MAKE) rust-docs

# The site, with Rust's pages under rust/: target/site/index.html. It loads nothing from elsewhere.
docs: rust-docs $(VENV)/.docs
	RUST_DOC=target/doc $(MKDOCS)
	@echo "target/site/index.html"

# The same without Rust's pages, in seconds.
site: $(VENV)/.docs
	$(MKDOCS)
	@echo "target/site/index.html"

rust-docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# The playground, which the site takes along: target/playground/page/index.html. It needs rustup, node and npm; nothing
# else here does.
web: $(WASM_BINDGEN)
	rustup target add wasm32-unknown-unknown
	cargo rustc -p clearway-web --lib --crate-type cdylib --locked --profile web --target wasm32-unknown-unknown
	$(WASM_BINDGEN) --target web --no-typescript --out-dir $(PLAYGROUND)/engine \
		target/wasm32-unknown-unknown/web/clearway_web.wasm
	mkdir -p $(PLAYGROUND)/npm
	cp crates/web/page/package.json crates/web/page/package-lock.json crates/web/page/.npmrc $(PLAYGROUND)/npm
	npm ci --prefix $(PLAYGROUND)/npm
	node crates/web/page/build.mjs $(PLAYGROUND)/engine $(PLAYGROUND)/npm $(PLAYGROUND)/page

# Each reader of what comes from outside gets bytes from libFuzzer for FUZZ_SECONDS. What breaks one is left in
# fuzz/artifacts. FUZZ_TARGETS="scenario frame" tries these alone. The dev profile is optimised and checks overflows.
fuzz: $(TOOLS)/bin/cargo-fuzz
	@cargo --version >/dev/null 2>&1 || rustup toolchain install $(NIGHTLY) --profile minimal
	$(TOOLS)/bin/cargo-fuzz build --dev --features libfuzzer reader
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target fuzz/artifacts/$$target; \
		echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
		FUZZ_TARGET=$$target $(TOOLS)/bin/cargo-fuzz run --dev --features libfuzzer reader \
			fuzz/corpus/$$target fuzz/seeds/$$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 -max_len=4096 \
			-print_final_stats=1 -verbosity=0 -artifact_prefix=fuzz/artifacts/$$target/ || exit 1; \
	done

fuzz: export RUSTUP_TOOLCHAIN = $(NIGHTLY)

# Licences, advisories and sources of dependencies. It asks the database of advisories: not part of `make test`.
deny: $(TOOLS)/bin/cargo-deny
	$(TOOLS)/bin/cargo-deny --all-features check

$(TOOLS)/bin/cargo-fuzz:
	cargo install cargo-fuzz --version $(CARGO_FUZZ) --locked --root $(TOOLS) --target-dir target

$(TOOLS)/bin/cargo-deny:
	cargo install cargo-deny --version $(DENY) --locked --root $(TOOLS) --target-dir target

$(WASM_BINDGEN):
	cargo install wasm-bindgen-cli --version $(WASM_BINDGEN_VERSION) --locked \
		--root $(WASM_BINDGEN_ROOT) --target-dir target

# One wheel for every Python from 3.10 on, of this machine's kind, in target/wheels. With ZIG=1 it runs on any Linux
# whose glibc is 2.17 or later (manylinux2014), however new this machine's is, and with TARGET=aarch64-unknown-linux-gnu
# beside it on arm64. (For macOS everything compiles so, but linking needs Apple's SDK: build it there.) Without line
# numbers for crashes, which would make it several times as large. WHEEL holds more for maturin. The second wheel has
# the data of papers' authors.
wheel: $(VENV)/.packages
	$(if $(ZIG),$(BIN)/pip install --quiet --disable-pip-version-check ziglang==$(ZIGLANG))
	$(if $(TARGET),rustup target add $(TARGET))
	$(WITHIN) $(BIN)/maturin build --release --locked --strip --out target/wheels \
		$(if $(ZIG),--zig --compatibility manylinux2014) \
		$(if $(TARGET),--target $(TARGET)) $(WHEEL)
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir target/wheels ./python/papers

# The newest of these wheels in an environment of its own, without cargo: figures within a minute of `pip install`.
try-wheel:
	$(PYTHON) tests/try_wheel.py

# BENCH="storm --repeat 3" chooses lines and options, BENCH=--help lists them. WRITE=1 writes docs/speed.md.
bench:
	cargo run --release --locked -p clearway-sim --example bench -- $(if $(WRITE),--json docs/speed.json) $(BENCH)
	$(if $(WRITE),$(PYTHON) tests/bench_page.py)

# What large scenarios take on this machine, into docs/speed.md. SCALE=ring-10000/check chooses lines.
bench-scale: $(VENV)/.release
	$(BIN)/python tests/scale_page.py $(SCALE)

# Measures live runs on this machine, into docs/live-measured.md; as root, the kernel's TCP over them too. Nothing else
# should run meanwhile.
bench-live: $(VENV)/.release
	$(BIN)/python tests/live_page.py $(if $(filter 0,$(shell id -u)),,bench)

# What the playground reaches on this machine in Chromium and Firefox, into docs/playground.md. Nothing else should run
# meanwhile.
bench-web: web $(VENV)/.release
	$(BIN)/python tests/playground_page.py

# Pairs with the code of a commit: status 1 if this tree is more than 3% slower. AGAINST names lines and options.
bench-against:
	$(PYTHON) tests/bench_against.py $(or $(REV),HEAD) $(AGAINST)

$(VENV)/.packages: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is needed"; exit 1; }
	@command -v cargo >/dev/null || { echo "A Rust toolchain is needed: cargo is not in PATH"; exit 1; }
	@echo "Installing Python packages into $(VENV): about half a minute, once"
	$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); echo "On Debian: apt install python3-venv"; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.docs: $(VENV)/.packages requirements-docs.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	touch $@

# One module at a time in the environment: the one for tests shares with `cargo test` what is compiled, the other is
# the faster.
$(VENV)/.built: $(VENV)/.packages $(RUST)
	@echo "Building the extension module for tests: some minutes on two cores, unless cargo test has built the most"
	rm -f $(VENV)/.release
	MATURIN_PEP517_ARGS="--locked --profile dev" $(INSTALL)
	touch $@

$(VENV)/.release: $(VENV)/.packages $(RUST)
	@echo "Building the extension module, optimised as a whole: about seven minutes on two cores, the first time;"
	@echo "cargo says nothing for the last of them, while it links"
	rm -f $(VENV)/.built
	MATURIN_PEP517_ARGS="--locked --profile release" $(INSTALL)
	touch $@

clean:
	rm -rf $(VENV) target out
