use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId};

use super::nscc::Gains;
use super::spraying::Spraying;
use super::{Config, CongestionControl, Header};

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: EndpointParams,
    pub spraying: Spraying,
    /// Number of entropy values of a message.
    pub entropies: u16,
    /// NSCC, if senders keep a window.
    pub nscc: Option<Gains>,
    /// Whether receivers give credit.
    pub rccc: bool,
    /// The greatest window, in bytes with headers: also the first credit, which needs no receiver.
    pub window_max: u64,
    pub network_rtt: Duration,
    /// Silence after which a packet is lost.
    pub rto: Duration,
    /// A packet also counts as lost when a packet has arrived that was sent much later: by one and a half windows, and
    /// by five packets at least.
    pub infers_losses: bool,
    /// Bytes that arrive before they are acknowledged.
    pub ack_bytes: u64,
}

/// Priority class of control packets and of headers of trimmed ones.
pub(super) const CONTROL: u8 = 0;
/// Priority class of data.
pub(super) const DATA: u8 = 1;
/// How far beyond the first missing packet another may be: what a receiver has to remember.
pub(super) const REACH: u32 = 1 << 16;

impl Params {
    pub fn new(config: &Config, site: &EndpointParams) -> Params {
        let target = config.target_delay(site);
        let initial = config.initial_window.map(|window| window.get());
        let (mtu, payload) = (u64::from(site.mtu_bytes), u64::from(site.payload_max()));
        let gains = Gains::new(site.nic_rate, mtu, payload, site.data_rtt, target);
        let window_max = gains.window_max(site.data_rtt);
        let gains = gains.with(initial, config.quick_adapt);
        Params {
            spraying: config.spraying,
            entropies: config.entropies,
            nscc: (config.congestion_control != CongestionControl::Rccc).then_some(gains),
            rccc: config.congestion_control != CongestionControl::Nscc,
            window_max,
            network_rtt: site.data_rtt,
            rto: config.rto(site),
            infers_losses: config.infers_losses.unwrap_or(!config.trimming),
            ack_bytes: config.ack_bytes.get(),
            site: site.clone(),
        }
    }

    /// A sender without credit asks for it no more often than once in so long.
    pub fn asks_again(&self) -> Duration {
        self.network_rtt.min(self.rto)
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.site.payload_max())).min(u64::from(u32::MAX)) as u32
    }

    /// Payload of a packet of a message of this many bytes.
    pub fn payload(&self, message_bytes: u64, psn: u32) -> u64 {
        let most = u64::from(self.site.payload_max());
        message_bytes.saturating_sub(u64::from(psn) * most).min(most)
    }

    /// The same with headers: what windows and credits count.
    pub fn wire_bytes(&self, message_bytes: u64, psn: u32) -> u64 {
        self.payload(message_bytes, psn) + u64::from(self.site.header_bytes)
    }

    /// All packets of a message, with headers.
    pub fn all_wire_bytes(&self, message_bytes: u64) -> u64 {
        let headers = u64::from(self.packets(message_bytes)) * u64::from(self.site.header_bytes);
        message_bytes.saturating_add(headers)
    }

    /// A control packet.
    pub fn control(&self, flow: FlowId, to: HostId, header: Header) -> Packet {
        let mut packet = self.site.control_packet(flow, to, header);
        packet.class = CONTROL;
        packet
    }
}
