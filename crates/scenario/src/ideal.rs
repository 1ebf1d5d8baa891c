//! What a flow would take alone in the network: the denominator of slowdown.

use fabric::{Fabric, Routes};
use units::{Duration, HostId, PerByte};

use crate::{Completion, HEAD_BYTES, Scenario};

/// Completion times of flows that are alone in the network and sent at line rate from their first bit on.
///
/// A message of S bytes is cut into full packets and a last one; each is stored and forwarded at every switch. The last
/// packet leaves link j when it has come in and the one before it has left:
/// D_j(n) = max(D_{j-1}(n) + l_j, D_j(n-1)) + t_j(n), with l_j the propagation and processing before link j and t_j the
/// transmission time. For the n-1 equal packets before it, D_j(n-1) = D_j(1) + (n-2) max_{i<=j} t_i in closed form.
/// With completion "acknowledged", a control packet's way back is added. Cut-through replaces each t_j but the
/// last by the time of the headers.
pub struct Ideal<'a> {
    fabric: &'a Fabric,
    routes: &'a Routes,
    scenario: &'a Scenario,
}

struct Hop {
    per_byte: PerByte,
    /// Propagation and processing after the link.
    after: Duration,
}

impl<'a> Ideal<'a> {
    /// For flows over these routes.
    pub fn new(fabric: &'a Fabric, routes: &'a Routes, scenario: &'a Scenario) -> Ideal<'a> {
        Ideal { fabric, routes, scenario }
    }

    /// Completion time of a message of `bytes`, as the scenario defines completion. Zero if there is no path.
    pub fn completion(&self, src: HostId, dst: HostId, bytes: u64) -> Duration {
        let there = self.hops(src, dst);
        if there.is_empty() {
            return Duration::ZERO;
        }
        let delivery = self.train(&there, bytes);
        match self.scenario.measure.completion {
            Completion::Delivered => delivery,
            Completion::Acknowledged => delivery + self.train(&self.hops(dst, src), 0),
        }
    }

    fn hops(&self, src: HostId, dst: HostId) -> Vec<Hop> {
        let ends = [self.fabric.uplink(src), Fabric::reverse(self.fabric.uplink(dst))];
        let hop = |id| {
            let link = self.fabric.link(id);
            let host = if ends.contains(&id) { self.scenario.host.delay } else { Duration::ZERO };
            Hop { per_byte: link.rate.per_byte(), after: link.propagation + self.fabric.delay_after(id) + host }
        };
        self.routes.path(self.fabric, src, dst).map(hop).collect()
    }

    /// Arrival of the last bit of a message of `bytes` (0: a lone control packet) over `hops`.
    fn train(&self, hops: &[Hop], bytes: u64) -> Duration {
        let (mtu, header) = (self.scenario.host.mtu.get(), self.scenario.host.header.get());
        let payload = mtu - header;
        let full_before = bytes.saturating_sub(1) / payload;
        let last = header + bytes - full_before * payload;
        let cut_through = self.scenario.switch.cut_through;
        // Departures of the last bit (of the head under cut-through) from each link in turn.
        let (mut first, mut slowest, mut before) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mut tail = Duration::ZERO;
        for (index, hop) in hops.iter().enumerate() {
            let final_hop = index + 1 == hops.len();
            let full = hop.per_byte.transmit(mtu as u32);
            let seen = |bytes: u64| {
                let head = bytes.min(HEAD_BYTES);
                hop.per_byte.transmit(if cut_through && !final_hop { head } else { bytes } as u32)
            };
            slowest = slowest.max(full);
            if full_before > 0 {
                first += seen(mtu);
                before = first + slowest * (full_before - 1);
                if cut_through && !final_hop {
                    before += full - seen(mtu); // the link is held until the tail has passed
                }
            }
            tail = tail.max(before) + seen(last);
            first += hop.after;
            tail += hop.after;
            before += hop.after;
        }
        tail
    }
}
