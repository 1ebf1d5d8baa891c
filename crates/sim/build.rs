//! Works out a digest of the code that decides results, so that two programs can tell whether they have the same.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates of a simulation, and those of the other levels and of live runs, whose results have the same digest of
/// their code.
const CRATES: [&str; 18] = [
    "units",
    "job",
    "engine",
    "fabric",
    "node",
    "contract",
    "transports",
    "link-control",
    "sharing",
    "custom",
    "catalogue",
    "workload",
    "scenario",
    "run",
    "driver",
    "fluid",
    "links",
    "live",
];

fn main() {
    let crates = Path::new("..");
    let mut files = Vec::new();
    for name in CRATES.iter().chain(&["sim"]) {
        let folder = crates.join(name);
        println!("cargo::rerun-if-changed={}", folder.join("src").display());
        collect(&folder.join("src"), &mut files);
    }
    // Versions of other people's crates decide, too.
    files.push(crates.join("../Cargo.lock"));
    files.sort();
    // FNV-1a: the standard library's hash may differ between compilers, and this is no secret.
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let content = fs::read(file).unwrap_or_default();
        let name = file.to_string_lossy().replace('\\', "/");
        for byte in name.bytes().chain([0]).chain((content.len() as u64).to_le_bytes()).chain(content) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=CLEARWAY_SOURCE={digest:016x}");
}

/// The files of a folder that are compiled into it: all but tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.file_name().is_some_and(|name| name != "tests.rs") {
            files.push(path);
        }
    }
}
