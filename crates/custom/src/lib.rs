//! WebAssembly modules as congestion controls: from the bytes of a file to the calls that TCP makes.
//!
//! The contract is `transports::tcp::custom::contract`; this crate implements it. It is separate from the protocols
//! because it needs a compiler.
//!
//! The interface with a module ([`ABI`]) is numbers in its memory: `docs/own-protocol.md` has it in full. A module has
//! one instance a host. The state of a flow is copied into the module's memory before each call and copied back after
//! it. So ten thousand flows don't need ten thousand memories. After a failed call the host gets a fresh instance, and
//! the failed flow leaves nothing behind.
//!
//! A module behaves the same in every run: it imports nothing, has neither threads nor vector instructions whose
//! results depend on the processor, NaN has one bit pattern, and its running time is limited by counting instructions.

use std::sync::Arc;

use transports::tcp::custom::contract::Module;

#[cfg(not(target_family = "wasm"))]
mod wasm;

/// The version of the interface with a module, which it has to name.
pub const ABI: i32 = 1;

/// Most bytes of a module's file.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Most bytes of a module's memory.
pub const MEMORY_BYTES_MAX: usize = 4 << 20;

/// Most bytes of a flow's state.
pub const STATE_BYTES_MAX: usize = 4_096;

/// How much a call may do, in units of fuel, which are some instructions each: about a millisecond.
pub const FUEL: u64 = 1_000_000;

/// Reads a module.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub fn read(bytes: &[u8]) -> Result<Arc<dyn Module>, String> {
    if !bytes.starts_with(b"\0asm") {
        return Err("is not a WebAssembly module: such a file begins with \"\\0asm\"; compile yours, as \
                    docs/own-protocol.md shows"
            .to_owned());
    }
    compiled(bytes)
}

#[cfg(not(target_family = "wasm"))]
fn compiled(bytes: &[u8]) -> Result<Arc<dyn Module>, String> {
    Ok(Arc::new(wasm::Compiled::new(bytes)?))
}

#[cfg(target_family = "wasm")]
fn compiled(_: &[u8]) -> Result<Arc<dyn Module>, String> {
    Err("is not run in a page, which has no compiler; the clearway command runs it".to_owned())
}
