//! What has become of packets and bytes.

use node::pool::Pool;
use node::{Overflow, PortStats};
use run::{Finding, Plan};
use units::Time;

use crate::{Carrier, Driver, End, HostSlot, LinkRx, LinkTx, Probe, SwitchSlot};

/// Where bytes are. Frames between neighbours are in no count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// What hosts, and transports' parts in switches, have sent.
    pub sent: u64,
    /// What they have received.
    pub received: u64,
    /// What was lost for a reason that was counted.
    pub lost: u64,
    /// What is on links and in switches.
    pub inside: u64,
}

impl Tally {
    /// The name of the finding that all bytes are somewhere.
    pub const CONSERVED: &str = "bytes conserved";

    /// The bytes of a part.
    pub fn of<C: Carrier, P: Probe>(driver: &Driver<C, P>) -> Tally {
        let mut tally = Tally::default();
        driver.hosts.iter().for_each(|slot| tally.add_host(slot));
        driver.switches.iter().for_each(|slot| tally.add_switch(slot));
        driver.links.link_rxs.iter().for_each(|link_rx| tally.add_link_rx(link_rx, &driver.links.pool));
        driver.links.link_txs.iter().for_each(|link_tx| tally.add_link_tx(link_tx));
        tally
    }

    /// The sum of two parts' bytes.
    pub fn and(self, other: Tally) -> Tally {
        Tally {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            // Under link-level retry a link's sending end adds and its receiving end subtracts, so one tally may be
            // below zero.
            lost: self.lost.wrapping_add(other.lost),
            inside: self.inside.wrapping_add(other.inside),
        }
    }

    /// Whether every byte that was sent was received, lost for a reason that was counted, or is still inside.
    pub fn finding(self, plan: &Plan) -> Finding {
        let Tally { sent, received, lost, inside } = self;
        let trims = if plan.settings.overflow == Overflow::Trim { ", cut-off payload counted as lost" } else { "" };
        Finding {
            name: Tally::CONSERVED,
            ok: sent == received.wrapping_add(lost).wrapping_add(inside),
            detail: format!("{sent} sent = {received} received + {lost} lost + {inside} inside{trims}"),
        }
    }

    fn add_host(&mut self, slot: &HostSlot) {
        self.sent += slot.host.sent_bytes;
        self.received += slot.host.received_bytes;
        self.lost += slot.lost.1;
    }

    fn add_switch(&mut self, slot: &SwitchSlot) {
        let (made, ended) = slot.switch.agents_bytes();
        self.sent += made;
        self.received += ended;
        self.lost += slot.switch.unroutable_bytes + slot.switch.staged_out.1;
        let ports = slot.switch.ports().iter().map(|port| port.stats);
        self.lost += ports.map(|stats| stats.overflow_bytes + stats.dead_bytes + stats.expired_bytes).sum::<u64>();
        self.inside += slot.switch.used_bytes();
    }

    fn add_link_rx<R>(&mut self, link_rx: &LinkRx<R>, pool: &Pool) {
        if let Some(acceptor) = &link_rx.acceptor {
            self.lost = self.lost.wrapping_sub(acceptor.accepted_before().1);
            self.inside = self.inside.wrapping_sub(acceptor.accepted_bytes());
            return;
        }
        self.lost = self.lost.wrapping_add(link_rx.lost_bytes);
        let noise = link_rx.noise.as_ref().map_or(0, |noise| noise.corrupted_bytes + noise.lossy_bytes);
        self.lost = self.lost.wrapping_add(noise);
        self.inside = self.inside.wrapping_add(link_rx.bytes(pool));
    }

    /// Under link-level retry, what has left is on the link until the other end has accepted it, or lost with it.
    fn add_link_tx<S>(&mut self, link_tx: &LinkTx<S>) {
        if let Some(repeater) = &link_tx.repeater {
            self.lost = self.lost.wrapping_add(repeater.sent_before().1);
            self.inside = self.inside.wrapping_add(repeater.sent_bytes());
        }
    }
}

/// What the sender of a link has counted by `end`.
pub fn sender_stats<C: Carrier, P: Probe>(driver: &Driver<C, P>, link_tx: &LinkTx<C::Sender>, end: Time) -> PortStats {
    // Packets that left before the link went down. Those that the other end had accepted are subtracted there.
    let before = link_tx.repeater.as_ref().map_or(0, |repeater| repeater.sent_before().0);
    match link_tx.from {
        End::Switch { index, port } => {
            let switch = &driver.switches[index as usize].switch;
            let own_queues_max = switch.flow_control().map_or(0, |control| control.queues_max(port));
            let port = switch.port(port);
            let dead_packets = port.stats.dead_packets + before;
            let unsent_bytes = port.unsent_bytes(end);
            PortStats { paused: port.paused_time(end), own_queues_max, dead_packets, unsent_bytes, ..port.stats }
        }
        End::Host { index, port } => {
            let HostSlot { host, lost, sent_frames, ports, per_byte, free_at, .. } = &driver.hosts[index as usize];
            let (sent, lost, sent_frames, per_byte, free_at) = match ports.as_ref().map(|ports| &ports[port.index()]) {
                None => ((host.sent_packets, host.sent_bytes), *lost, *sent_frames, per_byte, *free_at),
                Some(port) => (port.sent, port.lost, port.sent_frames, &port.per_byte, port.free_at),
            };
            let (pauses, paused) = host.pauses(port, end);
            // As at a switch, what met a dead link was not sent.
            PortStats {
                sent_packets: sent.0 - lost.0,
                sent_bytes: sent.1 - lost.1,
                dead_packets: lost.0 + before,
                dead_bytes: lost.1,
                sent_frames,
                pauses,
                paused,
                unsent_bytes: per_byte.bytes_in(free_at.since(end)).min(sent.1 - lost.1),
                ..Default::default()
            }
        }
    }
}
