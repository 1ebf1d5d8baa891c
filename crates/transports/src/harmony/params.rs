//! Values that both sides of a host derive from the configuration, and the control packets that both send.

use node::packet::flags;
use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId, Time};

use super::bounds::Bounds;
use super::{AdditionalTo, Config, Header, Refused, SIGNALS, URGENT};

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: EndpointParams,
    pub bounds: Bounds,
    /// Slots of this host: K, and more if its link is faster than the slowest host's.
    pub slots: u32,
    /// Message bytes for each additional slot, in whole packets. 0 for no additional slots.
    pub additional: u64,
    /// Bytes that a slot sends in a round trip.
    pub slot_bdp_bytes: u64,
    pub additional_to: AdditionalTo,
    pub retry_after: Duration,
    /// The longest pause after a refused additional slot: the time for which such a slot lasts.
    pub pause_max: Duration,
    pub attempts: u8,
    pub gives_up: bool,
    delta_admission: Duration,
}

impl Params {
    pub fn new(config: &Config, site: &EndpointParams, bounds: Bounds) -> Params {
        let payload = u64::from(site.payload_max());
        let additional = config.additional.map_or(bounds.access_rate.bytes_in(site.data_rtt), |bytes| bytes.get());
        let additional = additional.div_ceil(payload).saturating_mul(payload);
        let retry_after = config.retry_after.unwrap_or(site.control_rtt);
        Params {
            slots: bounds.virtual_links(site.nic_rate).clamp(1, super::SLOTS_MAX),
            additional,
            additional_to: config.additional_to,
            slot_bdp_bytes: bounds.slot_rate.bytes_in(site.data_rtt),
            retry_after,
            pause_max: bounds.sends(additional).max(retry_after),
            attempts: config.attempts,
            gives_up: config.refused == Refused::GiveUp,
            delta_admission: config.delta_admission,
            site: site.clone(),
            bounds,
        }
    }

    /// Number of packets of a message; `None` if a message cannot have this size.
    pub fn packets(&self, bytes: u64) -> Option<u32> {
        let packets = bytes.div_ceil(u64::from(self.site.payload_max()));
        u32::try_from(packets).ok().filter(|&packets| packets > 0 && packets < u32::MAX)
    }

    /// When a request that arrived at `arrived` is rejected: delta_admission later by this host's clock.
    pub fn admits_until(&self, arrived: Time) -> Time {
        let clock = self.site.clock;
        clock.true_time(clock.local_ps(arrived).saturating_add_unsigned(self.delta_admission.ps()))
    }

    /// A control packet that is routed by the switches' tables.
    pub fn control(&self, flow: FlowId, dst: HostId, header: Header) -> Packet {
        let mut packet = self.site.control_packet(flow, dst, header);
        packet.class = SIGNALS;
        packet
    }

    /// A control packet over a path that is known to work, which reserves and frees nothing.
    pub fn along(&self, flow: FlowId, dst: HostId, header: Header, route: u64) -> Packet {
        let mut packet = self.control(flow, dst, header);
        packet.label = route;
        packet.flags = flags::SOURCE_ROUTED;
        packet
    }

    /// Whether a packet came in that way.
    pub fn is_along(packet: &Packet) -> bool {
        packet.has(flags::SOURCE_ROUTED) && !packet.has(flags::ROUTER_ALERT)
    }

    /// A source-routed control packet. Switches on its route handle it, except the receiver's complete, after which
    /// there is nothing left to free.
    pub fn routed(&self, flow: FlowId, dst: HostId, header: Header, route: u64) -> Packet {
        let mut packet = self.control(flow, dst, header);
        packet.label = route;
        packet.flags = match header {
            Header::Delivered => flags::SOURCE_ROUTED,
            _ => flags::SOURCE_ROUTED | flags::ROUTER_ALERT,
        };
        packet.class = match header {
            Header::Rsvp(_) | Header::Complete { .. } | Header::Delivered => URGENT,
            _ => SIGNALS,
        };
        packet
    }
}
