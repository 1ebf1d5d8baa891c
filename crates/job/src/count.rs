use crate::collective::Terms;
use crate::graph::ring::Ring;
use crate::{Graph, Message, Step, Work};

/// How large a job is, worked out from its description before anything is built. A number that does not fit is
/// `u64::MAX`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Steps of all ranks.
    pub steps: u64,
    /// Messages from rank to rank.
    pub messages: u64,
    /// Those of them that leave their hosts; where ranks of a group send different numbers of messages, an estimate.
    pub leaving: u64,
    /// Payload of all messages.
    pub bytes: u64,
    /// Computations.
    pub computations: u64,
    /// Steps that a graph need not keep, since they follow from others: those of rings, but for one a rank.
    pub implied: u64,
}

impl Count {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Count) -> Count {
        let add = |of: fn(&Count) -> u64| of(&self).saturating_add(of(&other));
        Count {
            steps: add(|count| count.steps),
            messages: add(|count| count.messages),
            leaving: add(|count| count.leaving),
            bytes: add(|count| count.bytes),
            computations: add(|count| count.computations),
            implied: add(|count| count.implied),
        }
    }

    /// This, `by` times.
    #[must_use]
    pub fn times(self, by: u64) -> Count {
        Count {
            steps: self.steps.saturating_mul(by),
            messages: self.messages.saturating_mul(by),
            leaving: self.leaving.saturating_mul(by),
            bytes: self.bytes.saturating_mul(by),
            computations: self.computations.saturating_mul(by),
            implied: self.implied.saturating_mul(by),
        }
    }

    /// Steps outside of rings, and ranks' parts of rings: what a graph keeps ([`Graph::kept`]).
    pub fn kept(&self) -> u64 {
        self.steps.saturating_sub(self.implied)
    }

    /// The same with `part` of `whole` messages leaving their hosts.
    #[must_use]
    pub fn leaving(self, (part, whole): (u64, u64)) -> Count {
        let leaving = u128::from(self.messages) * u128::from(part) / u128::from(whole.max(1));
        Count { leaving: u64::try_from(leaving).unwrap_or(u64::MAX), ..self }
    }

    /// This many computations.
    pub(crate) fn computations(count: u64) -> Count {
        Count { steps: count, computations: count, ..Count::default() }
    }

    /// Of single steps and messages, and of rings.
    pub(crate) fn of<'a>(
        steps: &[Step],
        messages: &[Message],
        rings: impl Iterator<Item = (&'a Ring, &'a Terms)>,
    ) -> Count {
        let computes = |step: &&Step| matches!(step.work, Work::Compute(_));
        let computations = steps.iter().filter(computes).count() as u64;
        let bytes = messages.iter().fold(0, |sum: u64, message| sum.saturating_add(message.bytes));
        let (steps, messages) = (steps.len() as u64, messages.len() as u64);
        let singles = Count { steps, messages, bytes, computations, ..Count::default() };
        rings.fold(singles, |sum, (ring, terms)| sum.and(Count::of_ring(ring, terms)))
    }

    fn of_ring(ring: &Ring, terms: &Terms) -> Count {
        let mut bytes = 0u64;
        for i in 0..ring.ranks {
            ring.each_length(i, |length, count| {
                bytes = bytes.saturating_add(terms.payload(length).saturating_mul(count));
            });
        }
        let (ranks, messages) = (u64::from(ring.ranks), u64::from(ring.messages()));
        let steps = ranks * u64::from(ring.steps());
        Count { steps, messages, bytes, implied: steps - ranks, ..Count::default() }
    }
}

impl Graph {
    /// Its steps, messages and bytes. `leaving` is 0: it depends on where ranks are.
    pub fn count(&self) -> Count {
        let rings = self.rings().iter().map(|ring| (ring, self.terms(ring)));
        Count::of(self.singles(), self.messages_of_singles(), rings)
    }
}

#[cfg(test)]
mod tests;
