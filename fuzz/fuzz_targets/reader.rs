//! One program for all targets: the variable `FUZZ_TARGET` names the reader that gets libFuzzer's bytes.

#![no_main]

use std::sync::LazyLock;

use clearway_fuzz::{Reader, TARGETS};
use libfuzzer_sys::fuzz_target;

static READER: LazyLock<Reader> = LazyLock::new(|| {
    // The reader of Parquet catches its library's panics; libFuzzer's hook would end the process before that. A panic
    // that nobody catches is still a finding.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    let names: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
    found.unwrap_or_else(|| panic!("FUZZ_TARGET is \"{name}\", and should be one of {}", names.join(", "))).1
});

fuzz_target!(|bytes: &[u8]| {
    READER(bytes);
});
