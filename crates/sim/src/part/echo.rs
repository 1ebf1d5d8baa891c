//! When events of skipped periods would have taken place.

use units::{Duration, Time};

/// The times of events that were skipped in an island of the network, while other islands are simulated. The engine's
/// windows begin with events, and a run ends only at the end of a window. So windows must begin as if nothing had been
/// skipped.
#[derive(Default)]
pub(crate) struct Echo {
    /// Times of events in a period, since its beginning. Not empty while something echoes.
    events: Vec<u64>,
    length: u64,
    /// Periods follow each other from here ...
    from: u64,
    /// ... until here.
    until: u64,
    /// The next event, if there is one.
    next: Option<u64>,
}

impl Echo {
    /// So many more periods are skipped from `from` on, each with events at these times since its beginning: some, in
    /// ascending order.
    pub fn extend(&mut self, events: &[u64], length: Duration, from: Time, times: u64) {
        let until = from.ps() + length.ps() * times;
        if self.until != from.ps() || self.length != length.ps() || self.events != events {
            *self = Echo { events: events.to_vec(), length: length.ps(), from: from.ps(), ..Echo::default() };
        }
        self.until = until;
        let from = self.next.unwrap_or(from.ps());
        self.next = self.first_from(from);
    }

    /// When the next event would be; [`Time::MAX`] if there is none.
    pub fn next_at(&self) -> Time {
        self.next.map_or(Time::MAX, Time::from_ps)
    }

    /// All events before `end` are over.
    pub fn advance(&mut self, end: Time) {
        if self.next.is_some_and(|next| next < end.ps()) {
            self.next = self.first_from(end.ps());
        }
    }

    /// The first event at this time or later.
    fn first_from(&self, time: u64) -> Option<u64> {
        let next = next_event(&self.events, self.length, time - self.from)?;
        Some(self.from + next).filter(|&at| at < self.until)
    }
}

/// When the first event comes at `since` or later, where events at these times of a period repeat without end. All are
/// since the beginning of the first period. `None` if there is no event.
pub(crate) fn next_event(events: &[u64], length: u64, since: u64) -> Option<u64> {
    let (round, within) = (since / length, since % length);
    match events.get(events.partition_point(|&at| at < within)) {
        Some(at) => Some(round * length + at),
        None => Some((round + 1) * length + events.first()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Against the list of all events.
        #[test]
        fn events_come_as_often_as_the_period(
            events in proptest::collection::btree_set(0u64..50, 1..6),
            times in proptest::collection::vec(1u64..4, 1..4),
            steps in proptest::collection::vec(1u64..90, 1..20),
        ) {
            let (events, length, from) = (Vec::from_iter(events), Duration::from_ps(50), 1_000);
            let mut echo = Echo::default();
            let mut begin = Time::from_ps(from);
            for &times in &times {
                echo.extend(&events, length, begin, times);
                begin += length * times;
            }
            let rounds = 0..times.iter().sum::<u64>();
            let all = rounds.flat_map(|round| events.iter().map(move |at| from + 50 * round + at));
            let mut now = from;
            for step in steps {
                let expected = all.clone().find(|&at| at >= now).map_or(Time::MAX, Time::from_ps);
                proptest::prop_assert_eq!(echo.next_at(), expected);
                now += step;
                echo.advance(Time::from_ps(now));
            }
            // Other periods may follow when these are over.
            echo.advance(begin);
            echo.extend(&[7], Duration::from_ps(20), begin + Duration::from_ps(3), 1);
            proptest::prop_assert_eq!(echo.next_at(), begin + Duration::from_ps(10));
        }
    }
}
