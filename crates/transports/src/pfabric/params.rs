use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId};

use super::{Config, Header};

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: EndpointParams,
    /// Initial and largest window of a flow, in packets.
    pub window: u32,
    pub window_max: u32,
    /// Retransmission timeout.
    pub timeout: Duration,
    /// Number of timeouts after which a flow probes.
    pub probe_after: u32,
}

/// The class of all packets; switches go by remaining size.
const CLASS: u8 = 0;

impl Params {
    pub fn new(config: &Config, site: &EndpointParams) -> Params {
        let window_bytes = config.initial_window.map_or(site.bdp_bytes(), |bytes| bytes.get());
        let window = window_bytes.div_ceil(u64::from(site.mtu_bytes)).clamp(1, 1 << 20) as u32;
        Params {
            window,
            window_max: (f64::from(window) * config.window_max).min(f64::from(1 << 20)) as u32,
            timeout: site.data_rtt.mul_f64(config.timeout),
            probe_after: config.probe_after,
            site: site.clone(),
        }
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.site.payload_max())).min(u64::from(u32::MAX - 1)) as u32
    }

    /// Whether a host may send now.
    pub fn open(&self, gate: node::Gate<'_>) -> bool {
        gate.open(CLASS)
    }

    /// A packet with headers and this much of the message.
    pub fn packet(&self, flow: FlowId, to: HostId, header: Header, payload_bytes: u16) -> Packet {
        let mut packet = self.site.data_packet(flow, to, header, payload_bytes);
        packet.class = CLASS;
        packet
    }
}
