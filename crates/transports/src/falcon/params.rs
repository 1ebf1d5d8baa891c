use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId, Rate};

use super::{Config, EarlyRetransmission, Header};
use crate::target_delay::{Gains, Target, Wanted, unloaded};
use contract::NetworkView;

/// The most paths of a connection: the two low bits of a flow label name one.
pub(super) const PATHS: usize = 4;

/// Isekai's least for [`Params::upper_timeout`] (`kDefaultUlpRto`).
const UPPER_TIMEOUT: Duration = Duration::from_ms(5);

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: EndpointParams,
    pub class: u8,
    pub ack_class: u8,
    /// Paths of a connection.
    pub paths: usize,
    pub initial_fcwnd: f64,
    pub target: Target,
    pub gains: Gains,
    /// Share of the old value in a smoothed round trip.
    pub rtt_smoothing: f64,
    pub timeout_scalar: f64,
    pub timeout_min: Duration,
    /// Silence after which a packet goes again that has arrived and was not acknowledged.
    pub upper_timeout: Duration,
    /// Timeouts of a packet that set the window to its minimum.
    pub timeouts_max: u32,
    pub early: Early,
    pub ack_request_share: f64,
    pub ack_request_window: f64,
    /// Packets of a path, and time, until they are acknowledged.
    pub ack_packets: u32,
    pub ack_timeout: Duration,
    pub plb: Plb,
    pub nic: Option<Nic>,
}

/// How packets are found lost before they time out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Early {
    /// By time, with probes: the reordering window and the time until a probe in round trips, and the shortest such
    /// time.
    RackTlp { window: f64, probe: f64, probe_min: Duration },
    /// By this many numbers.
    OooDistance(u32),
}

/// When a path is changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plb {
    pub on: bool,
    pub delay_multiplier: f64,
    pub congested_share: f64,
    pub rounds: u32,
}

/// The receive buffer, and the window that follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nic {
    /// At which the upper layer takes packets.
    pub rate: Rate,
    pub buffer_bytes: u64,
    pub initial: f64,
    pub min: f64,
    pub max: f64,
    pub increase: f64,
    pub decrease: f64,
    pub decrease_max: f64,
    pub target_level: u8,
}

impl Params {
    pub fn new(config: &Config, site: &EndpointParams, network: &NetworkView) -> Params {
        let (base, hop) = unloaded(site);
        let wanted = Wanted {
            base: config.base_delay_target,
            hop: config.topology_scaling_per_hop,
            range: config.max_flow_scaling,
            min_window: config.min_flow_scaling_window,
            max_window: config.max_flow_scaling_window,
        };
        let target = wanted.on(site.data_rtt.ps() as f64, base.ps() as f64, hop.ps() as f64);
        let probe_min = || Duration::from_ps(2 * target.ps(config.max_flow_scaling_window, 0) as u64);
        Params {
            class: config.class,
            ack_class: config.ack_class.unwrap_or(config.class),
            paths: usize::from(config.paths).clamp(1, PATHS),
            initial_fcwnd: config.initial_fcwnd,
            target,
            gains: Gains {
                increase: config.fabric_additive_increment,
                decrease: config.fabric_multiplicative_decrease_factor,
                decrease_max: config.max_fabric_multiplicative_decrease_factor,
                window_min: config.min_fcwnd,
                window_max: config.max_fcwnd,
            },
            rtt_smoothing: config.rtt_smoothing_alpha,
            timeout_scalar: config.retransmit_timeout_scalar,
            timeout_min: config.timeout_min(network),
            upper_timeout: network.timer(None, UPPER_TIMEOUT),
            timeouts_max: config.retransmit_limit,
            early: match config.early_retransmission {
                EarlyRetransmission::RackTlp => Early::RackTlp {
                    window: config.rack_time_window_rtt_factor,
                    probe: config.tlp_timeout_rtt_factor,
                    probe_min: config.min_tlp_timeout.unwrap_or_else(probe_min),
                },
                EarlyRetransmission::OooDistance => Early::OooDistance(config.ooo_distance_threshold),
            },
            ack_request_share: config.ack_request_percent / 100.0,
            ack_request_window: config.ack_request_fcwnd_threshold,
            ack_packets: config.ack_coalescing_packets,
            ack_timeout: config.ack_coalescing_timeout,
            plb: Plb {
                on: config.plb,
                delay_multiplier: config.plb_target_delay_multiplier,
                congested_share: config.plb_congestion_threshold,
                rounds: config.plb_attempt_threshold,
            },
            nic: config.receive_buffer.as_ref().map(|nic| Nic {
                rate: nic.rate,
                buffer_bytes: nic.size.get(),
                initial: nic.initial_ncwnd,
                min: nic.min_ncwnd,
                max: nic.max_ncwnd,
                increase: nic.nic_additive_increment,
                decrease: nic.nic_multiplicative_decrease_factor,
                decrease_max: nic.max_nic_multiplicative_decrease_factor,
                target_level: nic.target_rx_buffer_level,
            }),
            site: site.clone(),
        }
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

    /// An answer, which takes the path of what it answers.
    pub fn answer(&self, flow: FlowId, to: HostId, label: u32, header: Header) -> Packet {
        let mut packet = self.site.control_packet(flow, to, header);
        packet.class = self.ack_class;
        packet.set_flow_label(label);
        packet
    }
}
