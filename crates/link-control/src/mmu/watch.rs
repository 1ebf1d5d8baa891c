//! The watchdog of a port: which of its queues are in a storm, and since when the others are paused.

use node::packet::CLASSES;
use units::Time;

use super::Watchdog;

#[derive(Debug, node::State)]
#[state(refuse("a watchdog looks at its queues"))]
pub(super) struct Watch {
    /// Queues in a storm, as bits.
    pub storm: u8,
    /// By queue: in a storm, since when it has not been paused; else since when it has been paused with packets in it.
    /// [`Time::MAX`] if it is not so now.
    since: [Time; CLASSES],
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { storm: 0, since: [Time::MAX; CLASSES] }
    }
}

impl Watch {
    /// Notes which queues are paused, and which have packets. Returns when to look.
    pub fn note(&mut self, settings: &Watchdog, now: Time, paused: u8, backlog: u8) -> Time {
        let held = (self.storm & !paused) | (!self.storm & paused & backlog);
        for (queue, since) in self.since.iter_mut().enumerate() {
            *since = if held >> queue & 1 == 0 { Time::MAX } else { now.min(*since) };
        }
        self.due(settings).min().unwrap_or(Time::MAX)
    }

    /// Queues whose storms begin and end now, as bits. [`Watch::note`] must follow.
    pub fn look(&mut self, settings: &Watchdog, now: Time) -> (u8, u8) {
        let due: Vec<Time> = self.due(settings).collect();
        let due = (0..CLASSES).fold(0, |bits, queue| bits | u8::from(due[queue] <= now) << queue);
        let (begun, over) = (due & !self.storm, due & self.storm);
        self.storm ^= due;
        for queue in (0..CLASSES).filter(|queue| due >> queue & 1 == 1) {
            self.since[queue] = Time::MAX;
        }
        (begun, over)
    }

    fn due(&self, settings: &Watchdog) -> impl Iterator<Item = Time> {
        let after = |queue| if self.storm >> queue & 1 == 1 { settings.restoration } else { settings.detection };
        (0..CLASSES).map(move |queue| match self.since[queue] {
            Time::MAX => Time::MAX,
            since => since + after(queue),
        })
    }
}
