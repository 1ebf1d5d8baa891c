use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

use job::collective::CollectiveAlgorithm;
use job::read::{Reading, TraceFile};
use job::{Count, Graph, STEPS_MAX};
use units::Problem;

/// A job that another tool wrote: its files' contents, its size, and its graph, which is built on first use.
#[derive(Clone, Debug)]
pub struct Loaded {
    trace: TraceFile,
    how: CollectiveAlgorithm,
    /// Contents of files, by path.
    files: BTreeMap<String, Vec<u8>>,
    ranks: u32,
    count: Count,
    graph: OnceLock<Arc<Graph>>,
}

/// A graph of no more steps is made at once, so that all that is wrong with its file is said when the file is read.
const SMALL: u64 = 1_000_000;

impl Loaded {
    /// Reads a trace and counts it. `read` maps a path to the file's content; hosts have `local` ranks each.
    pub(super) fn new(
        trace: &TraceFile,
        how: CollectiveAlgorithm,
        local: u32,
        mut read: impl FnMut(&str) -> io::Result<Vec<u8>>,
    ) -> Result<Loaded, Problem> {
        let mut files = BTreeMap::new();
        let mut kept = |path: &str| {
            let content = read(path)?;
            files.insert(path.to_owned(), content.clone());
            Ok(content)
        };
        let counted = trace.count(&reading(how), &mut kept, local);
        let (ranks, count) = counted.map_err(|error| Problem::new("trace", error.to_string()))?;
        let mut loaded = Loaded { trace: trace.clone(), how, files, ranks, count, graph: OnceLock::new() };
        if count.steps <= SMALL {
            loaded.graph()?;
            loaded.files = BTreeMap::new();
        }
        Ok(loaded)
    }

    /// Its ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Its steps, messages and bytes.
    pub fn count(&self) -> Count {
        self.count
    }

    /// The graph of what its ranks do.
    pub fn graph(&self) -> Result<Arc<Graph>, Problem> {
        if let Some(graph) = self.graph.get() {
            return Ok(graph.clone());
        }
        let mut read = |path: &str| self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into());
        let made = self.trace.load(&reading(self.how), &mut read);
        let graph = Arc::new(made.map_err(|error| Problem::new("trace", error.to_string()))?);
        Ok(self.graph.get_or_init(|| graph).clone())
    }
}

fn reading(how: CollectiveAlgorithm) -> Reading {
    Reading { how, steps_max: STEPS_MAX }
}

/// The graph follows from the rest.
impl PartialEq for Loaded {
    fn eq(&self, other: &Loaded) -> bool {
        let of = |loaded: &Loaded| (loaded.ranks, loaded.count);
        self.trace == other.trace && self.how == other.how && of(self) == of(other) && self.files == other.files
    }
}
