//! Compiles the eBPF program where clang and the headers are there. Where they are not, the crate is built without it
//! and says at run time what was missing: nothing else of Clearway needs the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    for input in ["bpf/aq.bpf.c", "bpf/a_gap.h", "build.rs"] {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rerun-if-env-changed=CLEARWAY_CLANG");
    println!("cargo::rustc-check-cfg=cfg(aq_program)");
    match compile() {
        Ok(object) => {
            println!("cargo::rustc-cfg=aq_program");
            println!("cargo::rustc-env=CLEARWAY_AQ_PROGRAM={}", object.display());
        }
        Err(why) => println!("cargo::rustc-env=CLEARWAY_AQ_ABSENT={}", why.replace('\n', " ")),
    }
}

fn compile() -> Result<PathBuf, String> {
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return Err("it was built for a system that is not Linux".to_owned());
    }
    let object = Path::new(&env::var("OUT_DIR").map_err(|_| "cargo sets no OUT_DIR")?).join("aq.bpf.o");
    let clang = env::var("CLEARWAY_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let mut command = Command::new(&clang);
    // Debug information: BTF describes the maps.
    command.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-c", "bpf/aq.bpf.c", "-o"]);
    command.arg(&object);
    // Debian keeps asm/types.h in a folder of the machine's kind, of which the target bpf knows nothing.
    let kind = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    command.arg(format!("-I/usr/include/{kind}-linux-gnu"));
    let output = command.output().map_err(|error| format!("{clang} could not be run when it was built: {error}"))?;
    if output.status.success() && fs::metadata(&object).is_ok() {
        return Ok(object);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| line.contains("error")).unwrap_or("it said nothing").trim();
    println!("cargo::warning=the eBPF program of Augmented Queue was not built: {first}");
    Err(format!("{clang} did not compile it when it was built: {first} (on Debian: apt install clang libbpf-dev)"))
}
