//! What was measured, where and when: so that numbers of different runs are compared only where they can be.

use std::fs;
use std::process::Command;

use serde::Serialize;

/// The machine that a bench ran on; "unknown" where Linux's files do not say.
#[derive(Serialize)]
pub struct Machine {
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Of the first core, from the first level up, such as "32K, 512K, 32768K".
    pub caches: String,
    pub memory_bytes: u64,
    pub kernel: String,
}

impl Machine {
    pub fn this() -> Machine {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let kibibytes = value(&file("/proc/meminfo"), "MemTotal");
        let kibibytes = kibibytes.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        Machine {
            cpu: known(value(&file("/proc/cpuinfo"), "model name")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            caches: known(caches()),
            memory_bytes: kibibytes.unwrap_or(0) * 1024,
            kernel: known(Some(file("/proc/sys/kernel/osrelease").trim().to_owned())),
        }
    }
}

/// Sizes of the first core's data caches.
fn caches() -> Option<String> {
    let of = |index: usize, what: &str| {
        let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}")).ok()?;
        Some(text.trim().to_owned())
    };
    let data = |index: &usize| of(*index, "type").is_some_and(|kind| kind != "Instruction");
    let sizes: Vec<String> = (0..8).filter(data).filter_map(|index| of(index, "size")).collect();
    (!sizes.is_empty()).then(|| sizes.join(", "))
}

/// The commit of the folder that the bench is started in, with "-dirty" if it has changes.
pub fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty", "--exclude=*"]).output();
    let said = output.ok().filter(|output| output.status.success());
    known(said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Now, in UTC.
pub fn date() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M"]).output().ok();
    known(output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

fn known(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
