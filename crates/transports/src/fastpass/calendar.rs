//! The reservations of one link: trains of packets, one in each period.

use units::{Duration, Time};

/// Packets that pass a link one in each `period`, from the first bit of the first to the last bit of the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
#[state(first(walk.same(self.phase(walk.now()))))]
pub(super) struct Train {
    #[state(past)]
    pub begin: Time,
    pub until: Time,
    pub period: Duration,
    /// How long each packet occupies the link.
    pub busy: Duration,
}

impl Train {
    /// Whether any two of their packets would be on the link at the same time. Trains pass each other if one lies
    /// before the first or after the last packet of the other. Trains at the same time must differ in phase, by their
    /// common period.
    fn clashes(&self, other: &Train) -> bool {
        if self.begin >= other.until || other.begin >= self.until {
            return false;
        }
        let common = gcd(self.period.ps(), other.period.ps());
        let (first, second) = if self.begin <= other.begin { (self, other) } else { (other, self) };
        let apart = (second.begin - first.begin).ps() % common;
        apart < first.busy.ps() || common - apart < second.busy.ps()
    }

    /// Whether two clash depends on their phases: a train that stays keeps its own only over whole periods.
    fn phase(&self, now: Time) -> u64 {
        let period = self.period.ps();
        (now.ps() + period - self.begin.ps() % period) % period
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if a == b || b == 0 { a } else { gcd(b, a % b) }
}

#[derive(Clone, Debug, Default, node::State)]
#[state(first(self.trains.retain(|train| train.until > walk.now())))]
pub(super) struct Calendar {
    trains: Vec<Train>,
}

impl Calendar {
    /// When the last of the trains that block this one has passed, if any do.
    #[inline]
    pub fn blocked_until(&self, train: &Train) -> Option<Time> {
        self.trains.iter().filter(|other| other.clashes(train)).map(|other| other.until).max()
    }

    /// Adds a train, and drops those that had passed before `now`.
    pub fn enter(&mut self, now: Time, train: Train) {
        debug_assert!(self.blocked_until(&train).is_none());
        self.trains.retain(|other| other.until > now);
        self.trains.push(train);
    }
}

#[cfg(test)]
mod tests;
