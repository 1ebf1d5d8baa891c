use std::sync::Arc;

use fabric::Routes;
use node::pool::{Pool, Transit};
use node::wire::{Malformed, Reader, Writer};
use node::{Loss, Packet};
use run::{Finding, Plan, Table};
use units::{Duration, PortId, Time};

use crate::{HostSlot, SwitchSlot};

/// Observes a run: a driver calls it while the run goes on, and takes its results at the end.
///
/// A part of a network has a probe of its own, which sees what happens in that part; the tables and findings are of all
/// parts together. Nothing that a probe does changes the run. It is chosen once a run, as a type: with `()` a driver
/// makes none of these calls.
///
/// Not reported: packets that are in flight on a link, or arrive at a host's port, when the link is down (only counters
/// have these); and that a packet was trimmed, since its header travels on.
pub trait Probe: Send + Sized + node::State {
    /// Whether a driver ever has to look at [`Probe::wants`].
    const ANY: bool = true;

    /// Which of the frequent calls it wants. Asked once, before anything happens.
    fn wants(&self) -> Wants;

    /// A packet has come to a host whole.
    fn on_arrival(&mut self, _now: Time, _host: &HostSlot, _packet: &Packet, _transit: &Transit) {}

    /// A frame between neighbours is about to be handed to a switch.
    fn on_frame(&mut self, _now: Time, _switch: &SwitchSlot, _port: PortId, _frame: &Packet, _pool: &Pool) {}

    /// A host has acted: it has taken in what came or was due, and its NIC what it could.
    fn on_host(&mut self, _now: Time, _host: &HostSlot) {}

    /// A packet has joined a queue of a port, and the transmitter, if it was free, has taken one.
    fn on_enqueue(&mut self, _now: Time, _switch: &SwitchSlot, _port: PortId) {}

    /// A packet's first bit leaves by a port, and its last at `leaving.last`.
    fn on_departure(&mut self, _now: Time, _from: NodePort, _leaving: Leaving<'_>) {}

    /// A packet that came to a node by a port is lost: on its link, before it was let in, or while it waited.
    fn on_drop(&mut self, _now: Time, _at: NodePort, _packet: &Packet, _why: Loss) {}

    /// An interval of `measure.interval` ends.
    fn on_sample(&mut self, _now: Time, _view: View<'_>) {}

    /// There are too many samples: from now on one is taken at multiples of `interval`, which is twice what it was.
    /// Drop samples at other times, and add what they summed over time to the next sample.
    fn on_thin(&mut self, _interval: Duration) {}

    /// Something is about to change.
    fn on_change(&mut self, _now: Time, _change: Upcoming<'_>, _view: View<'_>) {}

    /// The run is over.
    fn end(&mut self, _view: View<'_>) {}

    /// Writes what it saw, for the process that combines the results of all processes.
    fn pack(&self, _to: &mut Writer<'_>) {}

    /// Adds what a probe of the same plan saw in another process. The bytes are not trusted.
    ///
    /// # Errors
    /// If such a probe can't have written these bytes.
    fn absorb(&mut self, _from: &mut Reader<'_>) -> Result<(), Malformed> {
        Ok(())
    }

    /// What all probes of this kind saw, as tables.
    fn tables(_seen: &[&Self], _whole: &Whole<'_>) -> Vec<Table> {
        Vec::new()
    }

    /// Notes for readers of these tables.
    fn notes(_seen: &[&Self], _whole: &Whole<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Whether promises were kept.
    fn findings(_seen: &[&Self], _whole: &Whole<'_>) -> Vec<Finding> {
        Vec::new()
    }
}

/// A port of a node, by numbers that hold in the whole network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, node::Saved)]
pub struct NodePort {
    /// The host's id, or the switch's.
    pub id: u32,
    /// Which of the two.
    pub is_switch: bool,
    /// The port.
    pub port: PortId,
}

/// A packet that leaves a node.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// Its way so far. At a switch, `at` is when it came there.
    pub transit: &'a Transit,
    /// The flags that it had when it came to this node; at a host, all its flags. Only with [`Wants::changes`].
    pub came: u8,
    /// Bytes that go on waiting at a switch's port.
    pub waiting_bytes: u32,
    /// When its last bit leaves.
    pub last: Time,
}

/// Which of the frequent calls a probe wants. Every probe gets the rare ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// [`Probe::on_arrival`].
    pub arrivals: bool,
    /// [`Probe::on_frame`].
    pub frames: bool,
    /// [`Probe::on_host`].
    pub hosts: bool,
    /// [`Probe::on_enqueue`].
    pub enqueues: bool,
    /// [`Probe::on_departure`].
    pub departures: bool,
    /// [`Leaving::came`].
    pub changes: bool,
    /// [`Probe::on_drop`].
    pub drops: bool,
    /// [`Probe::on_sample`].
    pub samples: bool,
}

impl Wants {
    /// What either wants.
    pub fn or(self, other: Wants) -> Wants {
        Wants {
            arrivals: self.arrivals | other.arrivals,
            frames: self.frames | other.frames,
            hosts: self.hosts | other.hosts,
            enqueues: self.enqueues | other.enqueues,
            departures: self.departures | other.departures,
            changes: self.changes | other.changes,
            drops: self.drops | other.drops,
            samples: self.samples | other.samples,
        }
    }
}

/// The nodes of a part.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Its switches.
    pub switches: &'a [SwitchSlot],
    /// Its hosts.
    pub hosts: &'a [HostSlot],
    /// Its packets.
    pub pool: &'a Pool,
}

/// What is about to happen to a part.
#[derive(Clone, Copy, Debug)]
pub enum Upcoming<'a> {
    /// All switches forward by these tables.
    Routes(&'a Arc<Routes>),
    /// Some switches do, here or in other parts.
    RoutesOfSome(&'a Arc<Routes>),
    /// A link of this switch, by its place in the part, fails or works again.
    LinkOf(u32),
    /// Some link anywhere is slower than it should be, for the first time.
    GuaranteeEnds,
}

/// A run that is over, all parts together.
pub struct Whole<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// When it ended.
    pub end: Time,
    /// Between samples.
    pub sample_interval: Duration,
    /// All switches.
    pub switches: Vec<&'a SwitchSlot>,
    /// All hosts.
    pub hosts: Vec<&'a HostSlot>,
}

impl Probe for () {
    const ANY: bool = false;

    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// A run that observes nothing has the tables that every run has.
    fn tables(_: &[&()], whole: &Whole<'_>) -> Vec<Table> {
        crate::Probes::tables(&[], whole)
    }

    fn findings(_: &[&()], whole: &Whole<'_>) -> Vec<Finding> {
        crate::Probes::findings(&[], whole)
    }
}

#[cfg(test)]
mod tests;
