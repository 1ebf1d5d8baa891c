use std::collections::BTreeMap;
use std::path::PathBuf;

use scenario::{Crates, Programs, Source};
use serde::Deserialize;

/// What a program is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Of what.
    pub scenario: Read,
    /// What.
    pub asked: Asked,
}

/// A scenario that is to be read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The text, in TOML.
    pub text: String,
    /// Its name in errors.
    pub name: String,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// Keys to set over it.
    pub sets: Vec<(String, String)>,
    /// Digests of the crates that this program's transports are from.
    pub crates: Crates,
}

impl Read {
    pub(super) fn source(self) -> Source {
        let Read { text, name, folder, sets, crates } = self;
        Source { name, text, sets, folder, programs: Programs::new(), crates }
    }
}

/// What a program can do with a scenario.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Asked {
    /// Read it.
    Read,
    /// Work it out as a run would, and say how large it is.
    Check {
        /// How much memory there is.
        memory_bytes_max: Option<u64>,
    },
    /// Say what a run will take: see [`foresee`](crate::foresee()).
    Foresee {
        /// Seconds of CPU to try.
        probe_cpu_s: f64,
        /// How much there is.
        memory_bytes_max: Option<u64>,
    },
    /// Run it at flow level.
    Estimate {
        /// How much memory there is.
        memory_bytes_max: Option<u64>,
    },
    /// Run it.
    Simulate(Simulate),
}

/// How it is run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulate {
    /// Most threads.
    pub threads: usize,
    /// Most parts that the network is cut into.
    pub parts: Option<usize>,
    /// A run that will hardly fit is refused.
    pub memory_bytes_max: Option<u64>,
    /// Files by the link or node that they capture, and the most packets of each.
    pub pcap: Option<(BTreeMap<String, String>, u64)>,
}
