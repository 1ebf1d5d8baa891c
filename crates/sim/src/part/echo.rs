//! When events of skipped periods would have taken place.

use std::sync::Arc;

use units::{Duration, Time};

/// When events take place in a period: spans of time that follow each other. All times are in picoseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    spans: Vec<Span>,
}

/// A span of time.
#[derive(Debug, PartialEq, Eq)]
struct Span {
    /// Since the beginning of the period.
    begin: u64,
    end: u64,
    /// What happens in it repeats after so long.
    every: u64,
    /// The times of the first events, since its beginning, in ascending order.
    at: Vec<u64>,
}

impl Events {
    /// Adds a span of time in which events repeat. The first ones are at these times since its beginning, in any order.
    pub fn extend(&mut self, length: Duration, every: Duration, at: impl Iterator<Item = u64>) {
        let begin = self.length();
        let mut at: Vec<u64> = at.collect();
        at.sort_unstable();
        at.dedup();
        self.spans.push(Span { begin, end: begin + length.ps(), every: every.ps(), at });
    }

    /// The length of the period.
    fn length(&self) -> u64 {
        self.spans.last().map_or(0, |span| span.end)
    }

    /// When the first event comes at `since` or later, if the period repeats without end. Both are since the beginning
    /// of its first repetition. `None` if there is no event.
    pub fn next(&self, since: u64) -> Option<u64> {
        let (round, within) = (since / self.length(), since % self.length());
        let later = self.spans.partition_point(|span| span.end <= within);
        let next = self.spans[later..].iter().find_map(|span| span.next(within));
        match next {
            Some(at) => Some(round * self.length() + at),
            None => Some((round + 1) * self.length() + self.spans.iter().find_map(|span| span.next(0))?),
        }
    }
}

impl Span {
    /// The first event at `since` or later, both since the beginning of the period.
    fn next(&self, since: u64) -> Option<u64> {
        let since = since.saturating_sub(self.begin);
        let (round, within) = (since / self.every, since % self.every);
        let next = match self.at.get(self.at.partition_point(|&at| at < within)) {
            Some(at) => round * self.every + at,
            None => (round + 1) * self.every + self.at.first()?,
        };
        Some(self.begin + next).filter(|&at| at < self.end)
    }
}

/// The times of events that were skipped in an island of the network, while other islands are simulated. The engine's
/// windows begin with events, and a run ends only at the end of a window. So windows must begin as if nothing had been
/// skipped.
#[derive(Default)]
pub(crate) struct Echo {
    /// Events in a period. There are some while something echoes.
    events: Arc<Events>,
    /// Periods follow each other from here ...
    from: u64,
    /// ... until here.
    until: u64,
    /// The next event, if there is one.
    next: Option<u64>,
}

impl Echo {
    /// So many more periods are skipped from `from` on, each with these events: some.
    pub fn extend(&mut self, events: &Arc<Events>, from: Time, times: u64) {
        let until = from.ps() + events.length() * times;
        let goes_on = self.until == from.ps() && (Arc::ptr_eq(&self.events, events) || self.events == *events);
        if !goes_on {
            *self = Echo { events: events.clone(), from: from.ps(), ..Echo::default() };
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
        let next = self.events.next(time - self.from)?;
        Some(self.from + next).filter(|&at| at < self.until)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};

    use super::*;

    /// Spans of time: how often something repeats in it, how long that is, and when events come. And all these events,
    /// since the beginning of the period.
    fn of_spans(spans: &[(u64, u64, std::collections::BTreeSet<u64>)]) -> (Arc<Events>, Vec<u64>, u64) {
        let (mut events, mut all, mut begin) = (Events::default(), Vec::new(), 0);
        for (times, every, at) in spans {
            let at: Vec<u64> = at.iter().map(|at| at % every).collect();
            let span = Duration::from_ps(times * every);
            events.extend(span, Duration::from_ps(*every), at.iter().copied());
            all.extend((0..*times).flat_map(|round| at.iter().map(move |at| begin + round * every + at)));
            begin += times * every;
        }
        all.sort_unstable();
        (Arc::new(events), all, begin)
    }

    proptest::proptest! {
        /// Against the list of all events.
        #[test]
        fn events_come_as_often_as_the_period(
            spans in vec((1u64..4, 1u64..20, btree_set(0u64..20, 0..4)), 1..5),
            times in vec(1u64..4, 1..4),
            steps in vec(1u64..90, 1..20),
        ) {
            let ((events, at, length), from) = (of_spans(&spans), 1_000);
            proptest::prop_assume!(!at.is_empty());
            let mut echo = Echo::default();
            let mut begin = Time::from_ps(from);
            for &times in &times {
                echo.extend(&events, begin, times);
                begin += Duration::from_ps(length) * times;
            }
            let rounds = 0..times.iter().sum::<u64>();
            let all = rounds.flat_map(|round| at.iter().map(move |at| from + length * round + at));
            let mut now = from;
            for step in steps {
                let expected = all.clone().find(|&at| at >= now).map_or(Time::MAX, Time::from_ps);
                proptest::prop_assert_eq!(echo.next_at(), expected);
                now += step;
                echo.advance(Time::from_ps(now));
            }
            // Other periods may follow when these are over.
            echo.advance(begin);
            let (other, ..) = of_spans(&[(1, 20, [7].into())]);
            echo.extend(&other, begin + Duration::from_ps(3), 1);
            proptest::prop_assert_eq!(echo.next_at(), begin + Duration::from_ps(10));
        }
    }
}
