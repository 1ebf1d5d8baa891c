#!/bin/sh
# Makes the modules beside it again: dctcp-rust.wasm needs rustup's target wasm32-unknown-unknown, dctcp-c.wasm needs
# clang and wasm-ld (Debian: clang lld).
set -e
cd "$(dirname "$0")"
rustc --edition 2024 --target wasm32-unknown-unknown --crate-type cdylib -C opt-level=3 -C panic=abort -C strip=symbols \
	-C link-arg=-zstack-size=16384 dctcp.rs -o dctcp-rust.wasm
if command -v clang >/dev/null && command -v wasm-ld >/dev/null; then
	clang --target=wasm32 -O3 -nostdlib -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=16384 dctcp.c -o dctcp-c.wasm
fi
