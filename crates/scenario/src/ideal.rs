//! What a flow would take alone in the network: the denominator of slowdown.

use fabric::{Fabric, Routes};
use units::{Duration, HostId, PerByte};

use crate::{Completion, HEAD_BYTES, Scenario};

/// Completion times of flows that are alone in the network and sent at line rate from their first bit on.
///
/// A message is cut into full packets and a last one. At link j, packet n begins to leave when it has been seen there
/// and the packet before it has gone, and has gone when all of it has been sent and has come in:
///
/// - begin_j(n) = max(seen_j(n), gone_j(n-1))
/// - gone_j(n) = max(begin_j(n) + t_j(n), gone_{j-1}(n) + l_j)
/// - seen_{j+1}(n) = begin_j(n) + h_j(n) + l_{j+1}
///
/// with t_j the transmission time, l_j the propagation and processing before link j, and h_j the time until the next
/// switch may forward: t_j, or under cut-through that of the packet's head. For N equal packets the first line is
/// begin_j(N) = begin_j(1) + (N-1) max_{i<=j} t_i in closed form, since h_j <= t_j. With completion "acknowledged", a
/// control packet's way back is added.
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
            Completion::Acknowledged => {
                let back = self.train(&self.hops(dst, src), 0);
                Duration::from_ps(delivery.ps().saturating_add(back.ps()))
            }
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
        let last = header + (bytes - full_before * payload);
        // Without overflow: sizes, rates and delays come from outside.
        let wide = |time: Duration| u128::from(time.ps());
        let (mut full_begin, mut full_gone, mut slowest) = (0, 0, 0);
        let (mut last_seen, mut last_gone) = (0, 0);
        for hop in hops {
            let sent = |bytes: u64| wide(hop.per_byte.transmit(bytes as u32));
            let seen = |bytes: u64| sent(if self.scenario.switch.cut_through { bytes.min(HEAD_BYTES) } else { bytes });
            let after = wide(hop.after);
            slowest = sent(mtu).max(slowest);
            if full_before > 0 {
                full_gone = (full_begin + slowest * u128::from(full_before - 1) + sent(mtu)).max(full_gone);
                full_begin += seen(mtu) + after;
            }
            let last_begin = full_gone.max(last_seen);
            last_gone = (last_begin + sent(last)).max(last_gone) + after;
            last_seen = last_begin + seen(last) + after;
            full_gone += after;
        }
        Duration::from_ps(u64::try_from(last_gone).unwrap_or(u64::MAX))
    }
}
