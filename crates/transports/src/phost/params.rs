use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId};

use super::{Config, FreeTokensFor, Header, Policy};

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: EndpointParams,
    pub policy: Policy,
    /// Time from a token to the data packet that answers it, over the longest path.
    pub rtt: Duration,
    /// How much longer a data packet takes than a control packet.
    pub data_lag: Duration,
    /// Transmission time of a full packet: the time between tokens.
    pub packet_time: Duration,
    /// Lifetime of a token after its arrival.
    pub lifetime: Duration,
    /// Number of unanswered tokens that downgrades a source.
    pub window: u32,
    /// Duration of a downgrade.
    pub timeout: Duration,
    /// Silence after which a request is repeated: longer than that of a receiver that has downgraded its source.
    pub silence: Duration,
    free: u32,
    free_for: FreeTokensFor,
    short: u32,
    lowest_class: u8,
}

/// Priority class of control packets.
pub(super) const CONTROL: u8 = 0;
/// Priority class of short flows' packets.
const SHORT: u8 = 1;

impl Params {
    pub fn new(config: &Config, site: &EndpointParams) -> Params {
        let packet_time = site.nic_rate.transmit(u64::from(site.mtu_bytes));
        let bdp_bytes = site.bdp_bytes();
        let packets = |bytes: u64| bytes.div_ceil(u64::from(site.mtu_bytes)).min(1 << 24) as u32;
        let lifetime = packet_time.mul_f64(config.token_lifetime);
        Params {
            policy: config.policy,
            rtt: site.data_rtt,
            data_lag: site.data_rtt.saturating_sub(site.control_rtt),
            packet_time,
            lifetime,
            window: config.token_window.map_or(packets(bdp_bytes), |bytes| packets(bytes.get())).max(1),
            timeout: site.data_rtt.mul_f64(config.timeout),
            silence: site.data_rtt.mul_f64(config.timeout) + site.data_rtt,
            free: config.free_tokens.map_or(packets(bdp_bytes), |bytes| packets(bytes.get())),
            free_for: config.free_tokens_for,
            short: config
                .short_flow
                .filter(|_| config.priorities > 2)
                .map_or(packets(bdp_bytes), |bytes| packets(bytes.get())),
            lowest_class: config.priorities - 1,
            site: site.clone(),
        }
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.site.payload_max())).min(u64::from(u32::MAX)) as u32
    }

    /// Free tokens of a flow with this many packets.
    pub fn free(&self, packets: u32) -> u32 {
        match self.free_for {
            FreeTokensFor::ShortFlows if packets > self.free => 0,
            FreeTokensFor::EveryFlow | FreeTokensFor::ShortFlows => packets.min(self.free),
        }
    }

    /// The class of the data packets of a flow with this many packets.
    pub fn class(&self, packets: u32) -> u8 {
        if packets <= self.short { SHORT } else { self.lowest_class }
    }

    /// A control packet.
    pub fn control(&self, flow: FlowId, to: HostId, header: Header) -> Packet {
        let mut packet = self.site.control_packet(flow, to, header);
        packet.class = CONTROL;
        packet
    }
}
