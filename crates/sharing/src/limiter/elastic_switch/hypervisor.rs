//! The hypervisor between a VM and the network: both layers, their timers, and the control packets.

use node::{EndpointParams, Packet, Shaper};
use units::{FlowId, HostId, Time};

use super::header::Header;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::{CONTROL, Config, Hose, RateAllocation};
use crate::limiter::rate_limiter::burst;

#[derive(node::State)]
#[state(refuse("hosts have rate limiters that do not say what of their state moves"))]
pub(super) struct Hypervisor {
    #[state(built("settings"))]
    config: Config,
    #[state(built("settings"))]
    site: EndpointParams,
    transport: u8,
    outgoing: Outgoing,
    incoming: Incoming,
    /// Time of the last call.
    seen: Time,
    period_began: Time,
    /// Both are [`Time::MAX`] while no pair is active.
    period_ends: Time,
    interval_ends: Time,
    control_packets: u64,
}

impl Hypervisor {
    pub fn new(config: &Config, site: &EndpointParams, hose: Hose, transport: u8) -> Hypervisor {
        let burst = burst(config.burst, site);
        Hypervisor {
            config: config.clone(),
            site: site.clone(),
            transport,
            outgoing: Outgoing::new(hose.outbound, site.nic_rate, burst, config.queue_packets),
            incoming: Incoming::new(hose.inbound),
            seen: Time::ZERO,
            period_began: Time::ZERO,
            period_ends: Time::MAX,
            interval_ends: Time::MAX,
            control_packets: 0,
        }
    }

    /// A packet of the VM, in either direction, starts the clocks.
    fn active(&mut self, now: Time) {
        if self.period_ends == Time::MAX {
            self.period_began = now;
            self.period_ends = now + self.config.period;
            if let RateAllocation::WorkConserving(probing) = &self.config.rate_allocation {
                self.interval_ends = now + probing.interval;
            }
        }
    }

    fn next_control(&mut self) -> Option<Packet> {
        let (peer, header, class) = if let Some((peer, guarantee, signs)) = self.incoming.next_report() {
            (peer, Header::Report { guarantee, signs }, 0)
        } else {
            let (peer, packets, class) = self.outgoing.next_count()?;
            (peer, Header::Count { packets }, class)
        };
        self.control_packets += 1;
        Some(self.control(peer, header, class))
    }

    fn control(&self, peer: HostId, header: Header, class: u8) -> Packet {
        let mut packet = self.site.control_packet(CONTROL, peer, header);
        packet.class = class;
        packet.transport = self.transport;
        packet
    }
}

impl Shaper for Hypervisor {
    fn enqueue(&mut self, now: Time, packet: Packet) -> bool {
        self.seen = now;
        self.active(now);
        self.outgoing.enqueue(now, packet)
    }

    fn holds(&self, flow: FlowId) -> bool {
        self.outgoing.holds(flow)
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.seen = now;
        self.next_control().or_else(|| self.outgoing.transmit(now))
    }

    fn receive(&mut self, now: Time, packet: &Packet) -> bool {
        self.seen = now;
        if packet.transport != self.transport {
            self.active(now);
            self.incoming.data(now, packet);
            return true;
        }
        match packet.header() {
            Header::Report { guarantee, signs } => self.outgoing.reported(now, packet.src, guarantee, signs),
            Header::Count { packets } => {
                self.active(now);
                self.incoming.counted(now, packet.src, packets);
            }
        }
        false
    }

    fn poll_at(&self) -> Time {
        // A packet that may already be sent waits for the NIC and needs no wake-up.
        self.period_ends.min(self.interval_ends).min(self.outgoing.ready_after(self.seen))
    }

    fn wake(&mut self, now: Time) {
        self.seen = now;
        if let RateAllocation::WorkConserving(probing) = &self.config.rate_allocation
            && now >= self.interval_ends
        {
            self.outgoing.end_interval(now, probing);
            self.incoming.end_interval();
            self.interval_ends = now + probing.interval;
        }
        if now >= self.period_ends {
            self.outgoing.end_period(self.period_began, now, self.config.demand_headroom);
            self.incoming.end_period(self.period_began, now, self.config.demand_headroom);
            self.period_began = now;
            self.period_ends = now + self.config.period;
            if !self.outgoing.active() && !self.incoming.active() {
                self.period_ends = Time::MAX;
                self.interval_ends = Time::MAX;
            }
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("limiter_passed_packets", self.outgoing.passed),
            ("limiter_dropped_packets", self.outgoing.dropped),
            ("limiter_control_packets", self.control_packets),
            ("limiter_congested_intervals", self.outgoing.congested),
        ]
    }
}
