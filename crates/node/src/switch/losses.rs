//! Packets that a switch loses: each is counted, reported to the agent that it was for, and noted for probes.

use std::collections::VecDeque;

use units::{PortId, Time};

use super::{Received, Switch};
use crate::Packet;
use crate::packet::flags;
use crate::pool::{PacketId, Pool, Slot};

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, crate::Saved)]
pub enum Loss {
    /// No room.
    Overflow,
    /// Its output link or this switch is down.
    Dead,
    /// There is no path to its destination, or its source route names no valid port.
    NoRoute,
    /// A stage dropped it.
    Stage,
    /// It has passed too many switches.
    Expired,
    /// The link lost it, or it came damaged.
    Link,
}

/// A packet that a switch has lost.
#[derive(Clone, Copy, Debug, crate::Saved)]
pub struct Lost {
    /// The port by which it had come.
    pub port: PortId,
    /// What it was.
    pub packet: Packet,
    /// Why it is lost.
    pub why: Loss,
}

impl Switch {
    /// From now on it notes each packet that it loses, until [`Switch::take_loss`].
    pub fn note_losses(&mut self) {
        self.losses = Some(VecDeque::new());
    }

    /// The oldest loss that has not been taken, whether the packet was not let in or had waited.
    pub fn take_loss(&mut self) -> Option<Lost> {
        self.losses.as_mut()?.pop_front()
    }

    /// Removes a lost packet from the pool, and notes it if somebody observes losses.
    #[inline]
    fn remove(&mut self, pool: &mut Pool, id: PacketId, why: Loss) -> Slot {
        let slot = pool.remove(id);
        self.lost_flows.note(&slot.packet);
        if let Some(losses) = &mut self.losses {
            let port = PortId(u32::from(slot.transit.in_port));
            losses.push_back(Lost { port, packet: slot.packet, why });
        }
        slot
    }

    #[cold]
    pub(super) fn lose_unroutable(&mut self, pool: &mut Pool, id: PacketId) -> Received {
        let slot = self.remove(pool, id, Loss::NoRoute);
        self.unroutable_packets += 1;
        self.unroutable_bytes += u64::from(slot.packet.wire_bytes);
        self.ports[usize::from(slot.transit.in_port)].stats.unroutable_packets += 1;
        Received::Lost(Loss::NoRoute, None)
    }

    pub(super) fn stage_out(&mut self, pool: &mut Pool, id: PacketId) {
        self.staged_out.0 += 1;
        self.staged_out.1 += u64::from(self.remove(pool, id, Loss::Stage).packet.wire_bytes);
    }

    pub(super) fn lose_overflow(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) {
        let packet = self.remove(pool, id, Loss::Overflow).packet;
        let stats = &mut self.ports[out.index()].stats;
        stats.overflow_packets += 1;
        stats.overflow_bytes += u64::from(packet.wire_bytes);
        if let Some(kept) = &mut self.kept {
            kept.overflow_packets[usize::from(packet.class)] += 1;
        }
        self.tell_agent(now, out, &packet);
    }

    #[cold]
    pub(super) fn lose_expired(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) {
        let packet = self.remove(pool, id, Loss::Expired).packet;
        let stats = &mut self.ports[out.index()].stats;
        stats.expired_packets += 1;
        stats.expired_bytes += u64::from(packet.wire_bytes);
        self.tell_agent(now, out, &packet);
    }

    #[cold]
    pub(super) fn lose_dead(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) {
        let packet = self.remove(pool, id, Loss::Dead).packet;
        let stats = &mut self.ports[out.index()].stats;
        stats.dead_packets += 1;
        stats.dead_bytes += u64::from(packet.wire_bytes);
        self.tell_agent(now, out, &packet);
    }

    /// Tells an agent that a packet for agents has been lost here.
    #[cold]
    fn tell_agent(&mut self, now: Time, out: PortId, packet: &Packet) {
        if packet.has(flags::ROUTER_ALERT) {
            self.ask_agent(now, usize::from(packet.transport), |agent, cx| agent.lost(cx, out, packet));
        }
    }
}
