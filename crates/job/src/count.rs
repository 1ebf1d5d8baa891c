use crate::{Graph, Step, Work};

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
        }
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

    /// Of steps and the bytes of messages.
    pub(crate) fn of(steps: &[Step], messages: impl Iterator<Item = u64>) -> Count {
        let computes = |step: &&Step| matches!(step.work, Work::Compute(_));
        let computations = steps.iter().filter(computes).count() as u64;
        let steps = steps.len() as u64;
        messages.fold(Count { steps, computations, ..Count::default() }, |sum, bytes| {
            sum.and(Count { messages: 1, bytes, ..Count::default() })
        })
    }
}

impl Graph {
    /// Its steps, messages and bytes. `leaving` is 0: it depends on where ranks are.
    pub fn count(&self) -> Count {
        Count::of(self.steps(), self.messages().iter().map(|message| message.bytes))
    }
}

#[cfg(test)]
mod tests;
