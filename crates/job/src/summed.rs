//! Sums over the steps of some ranks, of a job with too many steps to note each.

use units::Time;

use crate::{CollectiveId, Graph, Rank};

/// From when to when a rank took part in something, and how many of its steps there it has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, state::Saved)]
pub struct Share {
    /// When it first sent, received or computed.
    pub begin: Time,
    /// When it was done with the last of them; with a message, when it had handed it over.
    pub end: Time,
    /// How many steps.
    pub steps: u64,
}

/// When ranks had done what, summed: for each of them and its collectives, and for iterations.
#[derive(Clone, Debug, state::Saved)]
pub struct Summed {
    ranks: Vec<Rank>,
    /// By rank, in that order: its collectives so far, by number.
    shares: Vec<Vec<(CollectiveId, Share)>>,
    /// By iteration: when the last of its steps that are done was, and how many are not.
    iterations: Vec<(Time, u64)>,
}

impl Summed {
    /// Before anything has happened.
    pub(crate) fn new(graph: &Graph, ranks: impl Iterator<Item = Rank>) -> Summed {
        let ranks: Vec<Rank> = ranks.collect();
        let mut iterations = vec![(Time::ZERO, 0); graph.iterations() as usize];
        for &rank in &ranks {
            graph.each_part(rank, |_, iteration, steps| iterations[iteration as usize].1 += steps);
        }
        Summed { shares: vec![Vec::new(); ranks.len()], ranks, iterations }
    }

    /// A rank has done a step, counted among these ranks.
    pub(crate) fn note(&mut self, rank: u32, of: Option<CollectiveId>, iteration: u32, (begin, end): (Time, Time)) {
        let (last, left) = &mut self.iterations[iteration as usize];
        *last = end.max(*last);
        *left -= 1;
        let Some(of) = of else { return };
        let shares = &mut self.shares[rank as usize];
        let at = shares.partition_point(|known| known.0 < of);
        match shares.get_mut(at).filter(|known| known.0 == of) {
            None => shares.insert(at, (of, Share { begin, end, steps: 1 })),
            Some((_, share)) => {
                (share.begin, share.end) = (share.begin.min(begin), share.end.max(end));
                share.steps += 1;
            }
        }
    }

    /// By rank and collective, of those of which something has happened.
    pub fn shares(&self) -> impl Iterator<Item = (Rank, CollectiveId, Share)> {
        let of =
            |(&rank, shares): (&Rank, &'_ Vec<_>)| shares.iter().map(move |&(of, share)| (rank, of, share)).collect();
        self.ranks.iter().zip(&self.shares).flat_map(move |pair| -> Vec<_> { of(pair) })
    }

    /// By iteration: when the last of its steps that are done was, and how many are not.
    pub fn iterations(&self) -> &[(Time, u64)] {
        &self.iterations
    }
}
