//! Nodes on the real clock.
//!
//! One thread drives all nodes of the process, by an agenda of what is due when: frames that come out of links,
//! transmitters that become free, deadlines of hosts. When the clock has come to what is due first, it is done; until
//! then the thread sleeps on the sockets.
//!
//! **Time.** What was due at t is done with `now` = t, though the clock is past t already when the thread gets there:
//! so a late wake-up neither stretches a transmission nor shifts a protocol's clocking, as with a real NIC, which has a
//! clock of its own and some packets in hand. All nodes share that time, and it is never more than [`CREDIT`] behind
//! the real clock: where the machine holds things up for longer, time is lost for good, and the audit says so. When an
//! application was told of something is noted by the real clock: a flow's completion time has all lateness in it.

use driver::{Cut, Driver, drivers};
use run::Plan;
use units::{Duration, Time};

use crate::clock::{Clock, Lateness};
use crate::datagrams::{Datagrams, Read, Sent};
use crate::sockets::Sockets;

/// How far nodes may live behind the real clock: a few turns of a busy machine's scheduler.
pub const CREDIT: Duration = Duration::from_ms(10);

/// How often the run looks up from what is due: for who watches, and for strangers' datagrams.
const LOOK: Duration = Duration::from_ms(50);

/// Everything that a live run consists of.
pub(crate) struct Network<'a> {
    /// All nodes, and links of datagrams between them.
    pub driver: Driver<Datagrams<'a>, ()>,
    /// The time by which nodes live.
    now: Time,
    /// By [`driver::Due`].
    pub lateness: [Lateness; 3],
    /// Things that were so late that time was lost, and how much in all.
    pub slips: (u64, Duration),
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Goal,
    Horizon,
    Quiet,
    Interrupted,
}

impl<'a> Network<'a> {
    pub fn new(plan: &'a Plan, sockets: Sockets, clock: Clock) -> Network<'a> {
        let cut = Cut::new(plan, 1);
        let mut carrier = Some(Datagrams::new(plan, sockets, clock));
        let carrier = || carrier.take().expect("there is one part");
        let mut built = drivers(plan, &cut, carrier, Sent::new, |link| Read::new(cut.outlet_of(link)), || ());
        Network {
            driver: built.pop().expect("there is one part"),
            now: Time::ZERO,
            lateness: Default::default(),
            slips: (0, Duration::ZERO),
        }
    }

    /// Lets the network live until so many flows have ended, `horizon` has come, or `watch` returns true. Gives why it
    /// ended and when.
    pub fn run(&mut self, goal: u64, horizon: Time, mut watch: impl FnMut(Time, u64) -> bool) -> (Ended, Time) {
        let mut look_at = Time::ZERO;
        self.driver.links.carrier.clock.restart();
        loop {
            let links = &mut self.driver.links;
            Datagrams::read_sent(links);
            let wall = links.carrier.clock.now();
            if wall >= look_at {
                look_at = wall + LOOK;
                Datagrams::read_ready(links, Duration::ZERO);
                if watch(wall, links.carrier.ended_flows) {
                    return (Ended::Interrupted, wall);
                }
            }
            if links.carrier.ended_flows >= goal {
                return (Ended::Goal, wall);
            }
            let (due, source) = links.agenda.first();
            if due == Time::MAX {
                Datagrams::read_ready(links, LOOK);
                if links.agenda.first().0 == Time::MAX {
                    return (Ended::Quiet, wall);
                }
                continue;
            }
            if due.min(wall) >= horizon {
                return (Ended::Horizon, wall);
            }
            if due > wall {
                let span = links.carrier.clock.until(due.min(look_at).min(horizon));
                Datagrams::read_ready(links, span);
            } else {
                self.act(wall, due, source);
            }
        }
    }

    /// How late everything was, of all kinds together.
    pub fn all_lateness(&self) -> Lateness {
        let mut all = Lateness::default();
        self.lateness.iter().for_each(|kind| all.add(kind));
        all
    }

    /// What was due at `due` is done.
    fn act(&mut self, wall: Time, due: Time, source: usize) {
        let floor = Time::ZERO + wall.since(Time::ZERO + CREDIT);
        if due < floor {
            self.slips.0 += 1;
            self.slips.1 += floor.since(self.now.max(due));
        }
        self.now = self.now.max(due).max(floor);
        let kind = self.driver.act(self.now, source);
        self.lateness[kind as usize].note(wall.since(due));
    }
}

#[cfg(test)]
mod tests;
