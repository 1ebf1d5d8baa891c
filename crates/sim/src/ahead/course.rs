//! What happens in a span of time, some of which may have been skipped.

use std::sync::Arc;

use driver::{Log, LogOfHost, Stretch};
use units::Time;

use super::period::{Period, back};
use crate::part::Events;

/// What has happened in an island, in order: what was logged, and periods that were skipped.
#[derive(Default)]
pub(super) struct Course {
    pieces: Vec<Piece>,
}

struct Piece {
    from: Time,
    until: Time,
    what: What,
}

enum What {
    /// By part.
    Logged(Arc<[Log]>),
    /// A period has happened so many times more.
    Repeated(Arc<Period>, u64),
}

impl Course {
    /// Adds what has been logged since then.
    pub fn logged(&mut self, from: Time, until: Time, logs: Arc<[Log]>) {
        self.pieces.push(Piece { from, until, what: What::Logged(logs) });
    }

    /// From then on, a period has been skipped so many times.
    pub fn repeated(&mut self, from: Time, period: &Arc<Period>, times: u64) {
        let until = from + period.length * times;
        self.pieces.push(Piece { from, until, what: What::Repeated(period.clone(), times) });
    }

    /// Adds what has happened afterwards.
    pub fn append(&mut self, mut later: Course) {
        self.pieces.append(&mut later.pieces);
    }

    /// What was logged, by part.
    fn logs(&self) -> impl Iterator<Item = &[Log]> {
        self.pieces.iter().filter_map(|piece| match &piece.what {
            What::Logged(logs) => Some(&logs[..]),
            What::Repeated(..) => None,
        })
    }

    /// By host: what has happened to messages and ranks. Nothing of that is in a period that was skipped.
    pub fn of_hosts(&self) -> Vec<LogOfHost> {
        let mut all: Vec<LogOfHost> = Vec::new();
        for logs in self.logs() {
            let hosts = logs.iter().flat_map(|log| &log.hosts);
            if all.is_empty() {
                all = hosts.cloned().collect();
            } else {
                all.iter_mut().zip(hosts).for_each(|(all, more)| all.told.extend_from_slice(&more.told));
            }
        }
        all
    }

    /// What has happened in one part.
    pub fn of_part(&self, part: usize) -> Vec<Stretch<'_>> {
        self.pieces.iter().map(|piece| piece.of_part(part)).collect()
    }

    /// When events have taken place from `begin` on: when it began.
    pub fn events(&self, begin: Time) -> Events {
        let (mut events, mut now) = (Events::default(), begin);
        for &Piece { from, until, ref what } in &self.pieces {
            if now < from {
                // It was moved ahead by averages: what happened is not known.
                events.extend(from - now, from - now, std::iter::empty());
            }
            match what {
                What::Logged(logs) => events.extend(until - from, until - from, since(from, logs)),
                What::Repeated(period, _) => {
                    let began = back(period.end, period.length);
                    let at = period.course.logs().flat_map(|logs| since(began, logs));
                    events.extend(until - from, period.length, at);
                }
            }
            now = until;
        }
        events
    }
}

impl Piece {
    /// What has happened in one part.
    fn of_part(&self, part: usize) -> Stretch<'_> {
        match &self.what {
            What::Logged(logs) => Stretch::logged(&logs[part]),
            What::Repeated(period, times) => Stretch {
                logs: period.course.logs().map(|logs| &logs[part]).collect(),
                times: *times,
                since: self.from - period.end,
                period: period.length,
            },
        }
    }
}

/// When events were logged, in picoseconds since `from`.
fn since(from: Time, logs: &[Log]) -> impl Iterator<Item = u64> {
    logs.iter().flat_map(|log| &log.events).map(move |at| (*at - from).ps())
}
