//! Pauses that end by themselves (IEEE 802.1Qbb; 802.3, annex 31B). A frame says for how many quanta of 512 bit times a
//! class pauses, and is sent again in time while the pause is to last. So frames may be lost: a lost pause is made good
//! by the next one, and a lost resume costs no more than the rest of the quanta.

use node::link::LinkCx;
use node::packet::CLASSES;
use units::{Duration, PortId, Problem, Rate, Time};

use super::{Frame, QUANTUM_BYTES};

/// How long a pause lasts, and after how long it is sent again (0 for never), in quanta of the sending port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quanta {
    pause: u16,
    refresh: u16,
}

impl Quanta {
    /// From the keys `quanta` and `refresh`; `None` if pauses hold until they are lifted.
    pub fn new(quanta: Option<u16>, refresh: Option<u16>) -> Option<Quanta> {
        quanta.map(|pause| Quanta { pause, refresh: refresh.unwrap_or((pause / 2).max(1)) })
    }

    pub fn check(quanta: Option<u16>, refresh: Option<u16>) -> Result<(), Problem> {
        match (quanta, refresh) {
            (None, Some(_)) => Err(Problem::new("refresh", "goes with quanta; write that too, or delete it")),
            (Some(0), _) => {
                let message = "0 quanta are no pause; write 1 to 65535, or leave it out for pauses without an end";
                Err(Problem::new("quanta", message))
            }
            _ => Ok(()),
        }
    }

    /// Pauses that end too soon for what they are to hold back.
    pub fn doubt(quanta: Option<u16>, refresh: Option<u16>) -> Option<Problem> {
        let Quanta { pause, refresh } = Quanta::new(quanta, refresh)?;
        let message = match refresh {
            0 => format!("a pause ends after {pause} quanta even if memory is still full, and packets are lost then"),
            refresh if refresh >= pause => {
                format!("a pause ends after {pause} quanta, before it is sent again after {refresh}")
            }
            _ => return None,
        };
        Some(Problem::new("refresh", format!("{message}; write less than quanta, such as {}", (pause / 2).max(1))))
    }
}

/// When the pauses of a node end, those that its neighbours have asked for and those that it has asked for itself.
#[derive(Debug, node::State)]
#[state(refuse("pauses end by themselves"))]
pub(crate) struct Expiry {
    #[state(built("settings"))]
    quanta: Quanta,
    ports: Vec<Clock>,
    wakes_at: Time,
    /// Pauses that were sent again, and pauses of neighbours that have ended by themselves.
    #[state(count)]
    refreshes: u64,
    #[state(count)]
    ended: u64,
}

/// By class, at one port; [`Time::MAX`] for none.
#[derive(Debug, node::State)]
struct Clock {
    #[state(built("settings"))]
    rate: Rate,
    /// When a pause of the neighbour's ends.
    until: [Time; CLASSES],
    /// When a pause is to be sent to it again.
    again: [Time; CLASSES],
}

impl Clock {
    fn span(&self, quanta: u16) -> Duration {
        self.rate.transmit(QUANTUM_BYTES * u64::from(quanta))
    }

    fn next_at(&self) -> Time {
        self.until.iter().chain(&self.again).copied().min().unwrap_or(Time::MAX)
    }
}

impl Expiry {
    /// Of a node whose ports have these rates, with nothing paused; `None` if pauses hold until they are lifted.
    pub fn new(quanta: Option<Quanta>, rates: impl Iterator<Item = Rate>) -> Option<Box<Expiry>> {
        let none = [Time::MAX; CLASSES];
        let ports = rates.map(|rate| Clock { rate, until: none, again: none });
        quanta.map(|quanta| {
            Box::new(Expiry { quanta, ports: ports.collect(), wakes_at: Time::MAX, refreshes: 0, ended: 0 })
        })
    }

    /// The neighbour at a port has sent a frame.
    pub fn heard(&mut self, now: Time, port: PortId, frame: Frame) {
        let clock = &mut self.ports[port.index()];
        let end = now + clock.span(frame.quanta);
        set(&mut clock.until, frame.pause, end);
        set(&mut clock.until, frame.classes & !frame.pause, Time::MAX);
        self.wakes_at = self.wakes_at.min(clock.next_at());
    }

    /// A frame about these classes is about to be sent by a port. Returns the quanta to write into it.
    fn said(&mut self, now: Time, port: PortId, classes: u8, pause: bool) -> u16 {
        let clock = &mut self.ports[port.index()];
        let refreshes = pause && self.quanta.refresh > 0;
        let at = if refreshes { now + clock.span(self.quanta.refresh) } else { Time::MAX };
        set(&mut clock.again, classes, at);
        self.wakes_at = self.wakes_at.min(at);
        if pause { self.quanta.pause } else { 0 }
    }

    /// When [`Expiry::due`] is to be asked.
    pub fn next_at(&self) -> Time {
        self.wakes_at
    }

    /// Pauses of a port that end now, and those that are to be sent again, as bits.
    fn due(&mut self, now: Time, port: PortId) -> (u8, u8) {
        let clock = &mut self.ports[port.index()];
        let (ended, again) = (take_due(&mut clock.until, now), take_due(&mut clock.again, now));
        self.ended += u64::from(ended.count_ones());
        self.refreshes += u64::from(again.count_ones());
        (ended, again)
    }

    /// The time has come: what ends is handed to `ended` as if the neighbour had sent it, and pauses are sent again.
    pub fn wake(&mut self, cx: &mut LinkCx<'_>, mut ended: impl FnMut(&mut LinkCx<'_>, PortId, Frame)) {
        for port in (0..self.ports.len()).map(PortId::from) {
            let (over, again) = self.due(cx.now, port);
            if over != 0 {
                ended(cx, port, Frame::resume(over));
            }
            if again != 0 {
                let quanta = self.said(cx.now, port, again, true);
                cx.send(port, Frame { classes: again, pause: again, quanta });
            }
        }
        self.settle();
    }

    /// The same at the only port of a NIC. Returns what ends, as bits, and the frame to send.
    pub fn wake_nic(&mut self, now: Time) -> (u8, Option<Frame>) {
        let (over, again) = self.due(now, PortId(0));
        let frame = (again != 0).then(|| {
            let quanta = self.said(now, PortId(0), again, true);
            Frame { classes: again, pause: again, quanta }
        });
        self.settle();
        (over, frame)
    }

    fn settle(&mut self) {
        self.wakes_at = self.ports.iter().map(Clock::next_at).min().unwrap_or(Time::MAX);
    }

    /// The link at a port has gone down or come up: nothing is paused at either end.
    pub fn clear(&mut self, port: PortId) {
        let clock = &mut self.ports[port.index()];
        (clock.until, clock.again) = ([Time::MAX; CLASSES], [Time::MAX; CLASSES]);
        self.settle();
    }

    pub fn counters(&self) -> [(&'static str, u64); 2] {
        [("pfc_refreshes", self.refreshes), ("pfc_expired", self.ended)]
    }
}

/// The frame by which a node pauses classes or lets them go on, noted where pauses end by themselves.
pub(crate) fn frame(expiry: &mut Option<Box<Expiry>>, now: Time, port: PortId, classes: u8, pause: bool) -> Frame {
    let quanta = match expiry {
        Some(expiry) => expiry.said(now, port, classes, pause),
        None if pause => u16::MAX,
        None => 0,
    };
    Frame { classes, pause: if pause { classes } else { 0 }, quanta }
}

fn set(times: &mut [Time; CLASSES], classes: u8, at: Time) {
    (0..CLASSES).filter(|class| classes >> class & 1 == 1).for_each(|class| times[class] = at);
}

fn take_due(times: &mut [Time; CLASSES], now: Time) -> u8 {
    let mut due = 0;
    for (class, at) in times.iter_mut().enumerate().filter(|(_, at)| **at <= now) {
        due |= 1 << class;
        *at = Time::MAX;
    }
    due
}

#[cfg(test)]
mod tests;
