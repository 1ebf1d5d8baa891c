//! One function for all collectives, for code that reads or generates whole jobs.

use super::library::{self, Library};
use super::rails::phases_of_rails;
use super::ring::Phases;
use super::{Entry, Terms, all_gather, all_reduce, all_to_all, broadcast, halving_doubling, reduce_scatter};
use super::{send_receive, two_trees, two_trees_broadcast};
use crate::{Builder, Collective, Rank, StepId};

/// What a collective does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Everybody gets the sum of all buffers.
    AllReduce,
    /// Everybody gets one part of the sum of all buffers.
    ReduceScatter,
    /// Everybody gets all parts.
    AllGather,
    /// Everybody sends a part of its buffer to each other.
    AllToAll,
    /// Everybody gets the first rank's buffer.
    Broadcast,
    /// Everybody sends its buffer to the next, and the last to the first.
    SendRecv,
}

/// Algorithm of an all-reduce.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AllReduce {
    /// [`all_reduce`].
    #[default]
    Ring,
    /// [`two_trees`].
    Tree,
    /// [`halving_doubling`], for a power of two ranks.
    HalvingDoubling,
    /// [`rails`](super::rails()) of nodes of this many ranks, which divide the group.
    Rails(u32),
}

/// Algorithm of a reduce-scatter and of an all-gather.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parts {
    /// [`reduce_scatter`], [`all_gather`].
    #[default]
    Ring,
    /// In nodes of this many ranks, which divide the group, and along rails across them.
    Rails(u32),
}

/// Algorithm of a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Broadcast {
    /// [`broadcast`].
    #[default]
    Ring,
    /// [`two_trees_broadcast`].
    Tree,
}

/// How collectives are carried out. All-to-alls are pairwise.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CollectiveAlgorithm {
    /// All-reduces.
    pub all_reduce: AllReduce,
    /// Reduce-scatters and all-gathers.
    pub parts: Parts,
    /// Broadcasts.
    pub broadcast: Broadcast,
    /// Channels, chunks, protocol.
    pub terms: Terms,
    /// The library that chooses in place of all that, for the kinds that it has algorithms for.
    pub library: Option<Library>,
}

/// An algorithm does not fit a group of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotPossible {
    /// Halving and doubling needs a power of two.
    #[error("recursive halving and doubling needs a power of two ranks, and not {0}; use a ring or a tree")]
    NoPower(usize),
    /// Nodes that rails join have the same number of ranks.
    #[error("rails need nodes of {local} ranks, which do not divide the group's {ranks}; use a ring or a tree")]
    Uneven {
        /// Ranks of the group.
        ranks: usize,
        /// Ranks of a node.
        local: u32,
    },
}

impl Kind {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::AllReduce => "all_reduce",
            Kind::ReduceScatter => "reduce_scatter",
            Kind::AllGather => "all_gather",
            Kind::AllToAll => "all_to_all",
            Kind::Broadcast => "broadcast",
            Kind::SendRecv => "send_recv",
        }
    }

    /// Bus bandwidth over algorithm bandwidth among `n` ranks (NCCL's tests, PERFORMANCE.md).
    pub fn bus_factor(self, n: usize) -> f64 {
        let others = (n.max(1) - 1) as f64 / n.max(1) as f64;
        match self {
            Kind::AllReduce => 2.0 * others,
            Kind::ReduceScatter | Kind::AllGather | Kind::AllToAll => others,
            Kind::Broadcast | Kind::SendRecv => 1.0,
        }
    }
}

impl CollectiveAlgorithm {
    /// Ranks of a node and the phases, of a kind that goes by rails.
    pub(super) const fn by_rails(&self, kind: Kind) -> Option<(u32, Phases)> {
        match (kind, self.all_reduce, self.parts) {
            (Kind::AllReduce, AllReduce::Rails(local), _) => Some((local, Phases::Both)),
            (Kind::ReduceScatter, _, Parts::Rails(local)) => Some((local, Phases::ReduceScatter)),
            (Kind::AllGather, _, Parts::Rails(local)) => Some((local, Phases::AllGather)),
            _ => None,
        }
    }

    /// The name of the algorithm that carries out `kind`.
    pub const fn algorithm(&self, kind: Kind) -> &'static str {
        match (kind, self.all_reduce, self.broadcast) {
            _ if self.by_rails(kind).is_some() => "rails",
            (Kind::AllReduce, AllReduce::Tree, _) | (Kind::Broadcast, _, Broadcast::Tree) => "tree",
            (Kind::AllReduce, AllReduce::HalvingDoubling, _) => "halving_doubling",
            (Kind::AllToAll, ..) => "pairwise",
            _ => "ring",
        }
    }

    /// The same, of a collective whose library chooses by size.
    fn chosen(&self, kind: Kind, ranks: &[Rank], bytes: u64) -> &'static str {
        let by_library = self.library.and_then(|own| library::chosen(&own, kind, ranks, bytes));
        by_library.unwrap_or_else(|| self.algorithm(kind))
    }

    /// Adds one collective among `ranks`, which enter after the steps `entry`: for each, the step at which it has its
    /// result. `bytes` counts as NCCL's tests do: of an all-gather and a reduce-scatter all parts together, of an
    /// all-to-all what a rank sends, its own part counted. One rank alone sends nothing.
    #[allow(clippy::too_many_arguments)]
    pub fn add(
        &self,
        b: &mut Builder,
        kind: Kind,
        name: &str,
        iteration: u32,
        ranks: &[Rank],
        bytes: u64,
        entry: Entry<'_>,
    ) -> Result<Vec<StepId>, NotPossible> {
        let n = ranks.len();
        self.fits(kind, n)?;
        if n < 2 {
            return Ok(entry.iter().zip(ranks).map(|(entry, &rank)| b.join(rank, entry)).collect());
        }
        let collective = Collective {
            name: name.to_owned(),
            kind: kind.name(),
            algorithm: self.chosen(kind, ranks, bytes),
            ranks: n as u32,
            bytes,
            bus_factor: kind.bus_factor(n),
            iteration,
        };
        Ok(b.within(collective, |b| {
            let Some(own) = &self.library else { return self.plain(b, kind, ranks, bytes, entry) };
            library::add(b, own, kind, ranks, bytes, entry).unwrap_or_else(|| {
                let entry = library::late(b, own, ranks, entry);
                self.plain(b, kind, ranks, bytes, &entry)
            })
        }))
    }

    /// Adds a collective whose algorithm is given.
    fn plain(&self, b: &mut Builder, kind: Kind, ranks: &[Rank], bytes: u64, entry: Entry<'_>) -> Vec<StepId> {
        let terms = &self.terms;
        if let Some((local, phases)) = self.by_rails(kind) {
            let added = phases_of_rails(b, ranks, local as usize, bytes, terms, entry, phases);
            return added.expect("that it divides was checked");
        }
        match (kind, self.all_reduce, self.broadcast) {
            (Kind::AllReduce, AllReduce::Ring | AllReduce::Rails(_), _) => all_reduce(b, ranks, bytes, terms, entry),
            (Kind::AllReduce, AllReduce::Tree, _) => two_trees(b, ranks, bytes, terms, entry),
            (Kind::AllReduce, AllReduce::HalvingDoubling, _) => {
                halving_doubling(b, ranks, bytes, terms, entry).expect("a power of two was checked")
            }
            (Kind::ReduceScatter, ..) => reduce_scatter(b, ranks, bytes, terms, entry),
            (Kind::AllGather, ..) => all_gather(b, ranks, bytes, terms, entry),
            (Kind::AllToAll, ..) => all_to_all(b, ranks, bytes, terms, entry),
            (Kind::SendRecv, ..) => send_receive(b, ranks, bytes, terms, entry),
            (Kind::Broadcast, _, Broadcast::Ring) => broadcast(b, ranks, bytes, terms, entry),
            (Kind::Broadcast, _, Broadcast::Tree) => two_trees_broadcast(b, ranks, bytes, terms, entry),
        }
    }

    /// Whether `kind` can be carried out among `n` ranks.
    pub fn fits(&self, kind: Kind, n: usize) -> Result<(), NotPossible> {
        match (kind, self.all_reduce, self.by_rails(kind)) {
            _ if self.library.is_some() => Ok(()),
            (Kind::AllReduce, AllReduce::HalvingDoubling, _) if !n.is_power_of_two() => Err(NotPossible::NoPower(n)),
            (.., Some((local, _))) if local == 0 || !n.is_multiple_of(local as usize) => {
                Err(NotPossible::Uneven { ranks: n, local })
            }
            _ => Ok(()),
        }
    }
}
