//! Falcon, Google's hardware transport (Open Compute Project: Falcon Transport Protocol Specification, revision 0.9,
//! 2024; Singhvi et al.: Falcon: A Reliable, Low Latency Hardware Transport, SIGCOMM 2025).
//!
//! A sender has as many packets in the network as its windows allow (`windows`): a fabric window by the delay of its
//! packets (Swift), for each of several paths, and a NIC window by the occupancy of the receive buffer. New packets go
//! over the paths in turn, by flow labels that switches hash (`paths`); a path that stays congested gets another label
//! (PLB). A receiver takes packets in any order and acknowledges them by bitmaps, several at once (`receiver`). A
//! sender sends again what later departures have overtaken in time (RACK), or in number, probes for a lost tail (TLP),
//! and repeats after a timeout what it has heard nothing of (`connection`).
//!
//! Formats and rules are the specification's. It leaves values to implementations, and several paths, RACK and TLP to
//! later ones: these are from the public simulator of its authors (Isekai, github.com/falcon-transport/isekai, release
//! 1.1). Delay targets follow from the network as those of `swift` do. `docs/schemes/falcon.md` says where every value
//! is from, and lists what was decided differently.
//!
//! A connection carries one message, as with the other transports here, so that what a message meets does not depend on
//! what its hosts have sent before; it begins with the windows of a new connection. A packet of the message is a push
//! transaction.
//!
//! Deliberately absent: pull transactions, and so the request window; errors, resynchronization and RNR of upper
//! layers; ordered connections; piggybacked acknowledgements (data goes one way); out-of-window notification (a window
//! never exceeds what receivers take); encryption; the rate of the engine's events; CSIG; backpressure to the upper
//! layer.

pub mod header;

mod connection;
mod host;
mod intake;
mod params;
mod paths;
mod receiver;
mod sender;
mod windows;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, EndpointParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate};

use contract::{
    About, Capabilities, CongestionSignal, ControlPackets, Family, HeaderFormat, NetworkView, Scheme,
    SwitchRequirements, Timer, headers_of,
};

pub use header::Header;

/// Configuration of Falcon, by the specification's names. Windows are in packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "FalconConfig")]
pub struct Config {
    /// Number of paths of a connection, each with a flow label and a fabric window of its own: 1 to 4. Default: 4.
    pub paths: u8,
    /// Fabric window at first, of all paths together. Default: 32.
    pub initial_fcwnd: f64,
    /// Smallest fabric window. Default: 0.01.
    pub min_fcwnd: f64,
    /// Largest fabric window, and how far beyond the first missing packet a receiver takes others. Default: 256.
    pub max_fcwnd: f64,
    /// Growth of a fabric window in a round trip, in packets. Default: 1.
    pub fabric_additive_increment: f64,
    /// Share of the excess delay by which a fabric window shrinks, above 0 and at most 1. Default: 0.8.
    pub fabric_multiplicative_decrease_factor: f64,
    /// Largest share of a fabric window that one decrease takes, between 0 and 1. Default: 0.5.
    pub max_fabric_multiplicative_decrease_factor: f64,
    /// Target delay before scaling. Default: the unloaded round trip without its switches, plus a quarter of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_delay_target: Option<Duration>,
    /// Addition to the target for each switch on the path. Default: what a switch adds to the unloaded round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_scaling_per_hop: Option<Duration>,
    /// Largest addition of flow scaling to the target; zero turns it off. Default: three unloaded round trips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_flow_scaling: Option<Duration>,
    /// Window at which flow scaling adds all of `max_flow_scaling`. Default: 0.1.
    pub min_flow_scaling_window: f64,
    /// Window from which on flow scaling adds nothing. Default: 256.
    pub max_flow_scaling_window: f64,
    /// Share of the old value in the smoothed round trip, from 0 to below 1. Default: 0.75.
    pub rtt_smoothing_alpha: f64,
    /// Retransmission timeout, in smoothed round trips. Default: 2.
    pub retransmit_timeout_scalar: f64,
    /// Shortest retransmission timeout. Default: 250us, or as long as a round trip may take, if that is longer.
    #[schemars(extend("x-least" = "100ns"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_retransmission_timeout: Option<Duration>,
    /// Number of timeouts of a packet that set its path's window to the minimum. Default: 3.
    pub retransmit_limit: u32,
    /// How packets are found lost before they time out. Default: `rack_tlp`.
    pub early_retransmission: EarlyRetransmission,
    /// RACK: time for reordered packets to arrive, in smoothed round trips. Default: 0.25.
    pub rack_time_window_rtt_factor: f64,
    /// TLP: silence after which a packet is sent as a probe, in smoothed round trips, beside the time for which
    /// receivers hold acknowledgements. Default: 2.
    pub tlp_timeout_rtt_factor: f64,
    /// TLP: the shortest such silence. Default: two target delays of a large window, without switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "100ns", "x-zero" = true))]
    pub min_tlp_timeout: Option<Duration>,
    /// With `ooo_distance`: how much higher the number of a packet that has arrived must be. Default: 3.
    pub ooo_distance_threshold: u32,
    /// Packets of a path that a receiver acknowledges at once; 1 acknowledges each. Default: 10.
    pub ack_coalescing_packets: u32,
    /// The longest time that it waits for them. Default: 8us.
    #[schemars(extend("x-least" = "100ns", "x-zero" = true))]
    pub ack_coalescing_timeout: Duration,
    /// Share of packets that ask for an acknowledgement at once, in percent. Default: 10.
    pub ack_request_percent: f64,
    /// Window up to which every packet does. Default: 2.
    pub ack_request_fcwnd_threshold: f64,
    /// Whether a path that stays congested gets another flow label (PLB). Default: true.
    pub plb: bool,
    /// PLB: an acknowledgement is one of congestion if its delay is above this many targets. Default: 1.01.
    pub plb_target_delay_multiplier: f64,
    /// PLB: share of a window's packets from which on a round trip is congested, above 0 and at most 1. Default: 0.5.
    pub plb_congestion_threshold: f64,
    /// PLB: number of congested round trips in a row that change the path. Default: 5.
    pub plb_attempt_threshold: u32,
    /// The receive buffer and the NIC window, for hosts whose upper layer takes packets at a limited rate. Default:
    /// none, it takes them at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<ReceiveBuffer>,
    /// Priority class of data. Default: 1.
    pub class: u8,
    /// Priority class of acknowledgements. Default: that of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_class: Option<u8>,
}

/// How packets are found lost before they time out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EarlyRetransmission {
    /// By time: a packet that left later has arrived, and some time has passed (RACK); a probe finds a lost tail (TLP).
    #[default]
    RackTlp,
    /// By number: a packet with a number so much higher has arrived, and a round trip has passed. Paths of different
    /// delay look like losses to it.
    OooDistance,
}

/// A receive buffer, and the NIC window that follows its occupancy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiveBuffer {
    /// The rate at which the upper layer takes data.
    pub rate: Rate,
    /// Size of the buffer. Default: 1MB.
    #[serde(default = "ReceiveBuffer::size")]
    pub size: Bytes,
    /// Occupancy that the NIC window aims at, in 32nds of the size: 1 to 31. Default: 15.
    #[serde(default = "ReceiveBuffer::target_rx_buffer_level")]
    pub target_rx_buffer_level: u8,
    /// NIC window at first. Default: 64.
    #[serde(default = "ReceiveBuffer::initial_ncwnd")]
    pub initial_ncwnd: f64,
    /// Smallest NIC window. Default: 1.
    #[serde(default = "ReceiveBuffer::one")]
    pub min_ncwnd: f64,
    /// Largest NIC window. Default: 256.
    #[serde(default = "ReceiveBuffer::max_ncwnd")]
    pub max_ncwnd: f64,
    /// Growth of the NIC window in a round trip, in packets. Default: 1.
    #[serde(default = "ReceiveBuffer::one")]
    pub nic_additive_increment: f64,
    /// Share of the excess occupancy by which the NIC window shrinks, above 0 and at most 1. Default: 0.8.
    #[serde(default = "ReceiveBuffer::nic_multiplicative_decrease_factor")]
    pub nic_multiplicative_decrease_factor: f64,
    /// Largest share of the NIC window that one decrease takes, between 0 and 1. Default: 0.5.
    #[serde(default = "ReceiveBuffer::max_nic_multiplicative_decrease_factor")]
    pub max_nic_multiplicative_decrease_factor: f64,
}

/// Isekai's defaults; of the size, which is the hardware's, a round number.
impl ReceiveBuffer {
    fn size() -> Bytes {
        Bytes(1_000_000)
    }

    fn target_rx_buffer_level() -> u8 {
        15
    }

    fn initial_ncwnd() -> f64 {
        64.0
    }

    fn one() -> f64 {
        1.0
    }

    fn max_ncwnd() -> f64 {
        256.0
    }

    fn nic_multiplicative_decrease_factor() -> f64 {
        0.8
    }

    fn max_nic_multiplicative_decrease_factor() -> f64 {
        0.5
    }

    fn check(&self, mtu_bytes: u64) -> Result<(), Problem> {
        if self.rate == Rate::ZERO {
            return Err(Problem::new(
                "rate",
                "at 0 nothing would ever be delivered; leave receive_buffer out for no limit",
            ));
        }
        if !(mtu_bytes..=1 << 40).contains(&self.size.get()) {
            let message = format!("{} is not between {} (a packet) and 1TiB", self.size, Bytes(mtu_bytes));
            return Err(Problem::new("size", message));
        }
        if !(1..header::LEVELS).contains(&self.target_rx_buffer_level) {
            let message = format!("{} is not from 1 to 31", self.target_rx_buffer_level);
            return Err(Problem::new("target_rx_buffer_level", message));
        }
        within(&[
            ("initial_ncwnd", self.initial_ncwnd, self.min_ncwnd..=self.max_ncwnd, "from min_ncwnd to max_ncwnd"),
            ("min_ncwnd", self.min_ncwnd, 1.0..=WINDOW_MAX, "from 1 to 2047"),
            ("max_ncwnd", self.max_ncwnd, self.min_ncwnd..=WINDOW_MAX, "from min_ncwnd to 2047"),
            ("nic_additive_increment", self.nic_additive_increment, ABOVE_0..=f64::MAX, "above 0"),
            (
                "nic_multiplicative_decrease_factor",
                self.nic_multiplicative_decrease_factor,
                ABOVE_0..=1.0,
                "above 0 and at most 1",
            ),
            (
                "max_nic_multiplicative_decrease_factor",
                self.max_nic_multiplicative_decrease_factor,
                ABOVE_0..=1f64.next_down(),
                "between 0 and 1",
            ),
        ])
    }
}

const ABOVE_0: f64 = f64::MIN_POSITIVE;
/// The largest window: integers of 11 bits (section 10.6.2).
const WINDOW_MAX: f64 = 2047.0;

/// A setting, its value, what it may be, and the same in words.
type Bound = (&'static str, f64, std::ops::RangeInclusive<f64>, &'static str);

fn within(bounds: &[Bound]) -> Result<(), Problem> {
    match bounds.iter().find(|(_, value, range, _)| !range.contains(value)) {
        Some((key, value, _, wanted)) => Err(Problem::new(*key, format!("{value} is not {wanted}"))),
        None => Ok(()),
    }
}

impl Default for Config {
    /// Isekai's, release 1.1 (`Swift::DefaultConfiguration`, `default_config_generator.cc`), but for what follows from
    /// the network and for what it has switched off: several paths, RACK with TLP, and PLB.
    fn default() -> Config {
        Config {
            paths: 4,
            initial_fcwnd: 32.0,
            min_fcwnd: 0.01,
            max_fcwnd: 256.0,
            fabric_additive_increment: 1.0,
            fabric_multiplicative_decrease_factor: 0.8,
            max_fabric_multiplicative_decrease_factor: 0.5,
            base_delay_target: None,
            topology_scaling_per_hop: None,
            max_flow_scaling: None,
            min_flow_scaling_window: 0.1,
            max_flow_scaling_window: 256.0,
            rtt_smoothing_alpha: 0.75,
            retransmit_timeout_scalar: 2.0,
            min_retransmission_timeout: None,
            retransmit_limit: 3,
            early_retransmission: EarlyRetransmission::default(),
            rack_time_window_rtt_factor: 0.25,
            tlp_timeout_rtt_factor: 2.0,
            min_tlp_timeout: None,
            ooo_distance_threshold: 3,
            ack_coalescing_packets: 10,
            ack_coalescing_timeout: Duration::from_us(8),
            ack_request_percent: 10.0,
            ack_request_fcwnd_threshold: 2.0,
            plb: true,
            plb_target_delay_multiplier: 1.01,
            plb_congestion_threshold: 0.5,
            plb_attempt_threshold: 5,
            receive_buffer: None,
            class: 1,
            ack_class: None,
        }
    }
}

impl Config {
    fn timeout_min(&self, network: &NetworkView) -> Duration {
        network.timer(self.min_retransmission_timeout, Duration::from_us(250))
    }

    fn check_windows(&self) -> Result<(), Problem> {
        let below_1 = 1f64.next_down();
        within(&[
            ("min_fcwnd", self.min_fcwnd, 1e-3..=1.0, "from 0.001 to 1"),
            (
                "max_fcwnd",
                self.max_fcwnd,
                1.0..=WINDOW_MAX,
                "from 1 to 2047, the largest value that the hardware holds",
            ),
            ("initial_fcwnd", self.initial_fcwnd, self.min_fcwnd..=self.max_fcwnd, "from min_fcwnd to max_fcwnd"),
            ("fabric_additive_increment", self.fabric_additive_increment, ABOVE_0..=f64::MAX, "above 0"),
            (
                "fabric_multiplicative_decrease_factor",
                self.fabric_multiplicative_decrease_factor,
                ABOVE_0..=1.0,
                "above 0 and at most 1",
            ),
            (
                "max_fabric_multiplicative_decrease_factor",
                self.max_fabric_multiplicative_decrease_factor,
                ABOVE_0..=below_1,
                "between 0 and 1",
            ),
            ("min_flow_scaling_window", self.min_flow_scaling_window, ABOVE_0..=f64::MAX, "above 0"),
            (
                "max_flow_scaling_window",
                self.max_flow_scaling_window,
                self.min_flow_scaling_window.next_up()..=f64::MAX,
                "above min_flow_scaling_window",
            ),
            ("rtt_smoothing_alpha", self.rtt_smoothing_alpha, 0.0..=below_1, "from 0 to below 1"),
            ("retransmit_timeout_scalar", self.retransmit_timeout_scalar, 1.0..=1e6, "from 1 to 1e6"),
            ("rack_time_window_rtt_factor", self.rack_time_window_rtt_factor, 0.0..=1e6, "from 0 to 1e6"),
            ("tlp_timeout_rtt_factor", self.tlp_timeout_rtt_factor, 1.0..=1e6, "from 1 to 1e6"),
            ("ack_request_percent", self.ack_request_percent, 0.0..=100.0, "from 0 to 100"),
            ("ack_request_fcwnd_threshold", self.ack_request_fcwnd_threshold, 0.0..=f64::MAX, "0 or more"),
            ("plb_target_delay_multiplier", self.plb_target_delay_multiplier, 1.0..=1e6, "from 1 to 1e6"),
            ("plb_congestion_threshold", self.plb_congestion_threshold, ABOVE_0..=1.0, "above 0 and at most 1"),
        ])
    }

    /// Settings that have no effect beside others.
    fn idle(&self) -> Vec<Problem> {
        let usual = Config::default();
        let by_time = self.early_retransmission == EarlyRetransmission::RackTlp;
        let (window, probe) = ("rack_time_window_rtt_factor", "tlp_timeout_rtt_factor");
        let of_time = "has no effect here; set early_retransmission = \"rack_tlp\"";
        let of_distance = "has no effect here; set early_retransmission = \"ooo_distance\"";
        let of_plb = "has no effect without PLB; set plb = true";
        let delay_multiplier = self.plb_target_delay_multiplier != usual.plb_target_delay_multiplier;
        let all = [
            (window, self.rack_time_window_rtt_factor != usual.rack_time_window_rtt_factor, by_time, of_time),
            (probe, self.tlp_timeout_rtt_factor != usual.tlp_timeout_rtt_factor, by_time, of_time),
            ("min_tlp_timeout", self.min_tlp_timeout.is_some(), by_time, of_time),
            (
                "ooo_distance_threshold",
                self.ooo_distance_threshold != usual.ooo_distance_threshold,
                !by_time,
                of_distance,
            ),
            ("plb_target_delay_multiplier", delay_multiplier, self.plb, of_plb),
            (
                "plb_congestion_threshold",
                self.plb_congestion_threshold != usual.plb_congestion_threshold,
                self.plb,
                of_plb,
            ),
            ("plb_attempt_threshold", self.plb_attempt_threshold != usual.plb_attempt_threshold, self.plb, of_plb),
        ];
        let idle = all.into_iter().filter(|(_, set, used, _)| *set && !used);
        idle.map(|(key, _, _, why)| Problem::new(key, why)).collect()
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "Falcon",
            source: "Singhvi et al., SIGCOMM 2025; Open Compute Project: Falcon Transport Protocol 0.9, 2024",
            summary: "A window by delay for each of several paths, one by the receive buffer; finds losses by time.",
            needs: "switches: ECMP over a flow label; hosts: timestamps at the wire, data in any order, selective \
                    acknowledgement",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_hosts(Family::Reactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        if !(1..=params::PATHS as u8).contains(&self.paths) {
            let message = format!("{} is not from 1 to 4: two bits of a flow label name the path", self.paths);
            return Err(Problem::new("paths", message));
        }
        for (key, number) in [
            ("retransmit_limit", self.retransmit_limit),
            ("ooo_distance_threshold", self.ooo_distance_threshold),
            ("ack_coalescing_packets", self.ack_coalescing_packets),
            ("plb_attempt_threshold", self.plb_attempt_threshold),
        ] {
            if number == 0 {
                return Err(Problem::new(key, "0 is not above 0; write at least 1"));
            }
        }
        let long = Duration::from_ms(500);
        for (key, time) in [
            ("base_delay_target", self.base_delay_target),
            ("min_retransmission_timeout", self.min_retransmission_timeout),
            ("min_tlp_timeout", self.min_tlp_timeout),
            ("ack_coalescing_timeout", Some(self.ack_coalescing_timeout)),
        ] {
            if let Some(time) = time.filter(|&time| time == Duration::ZERO || time > long) {
                return Err(Problem::new(key, format!("{time} is not above 0 and up to {long}")));
            }
        }
        for (key, class) in [("class", Some(self.class)), ("ack_class", self.ack_class)] {
            if let Some(class) = class.filter(|&class| class > 7) {
                return Err(Problem::new(key, format!("{class} is not one of 0 to 7")));
            }
        }
        self.check_windows()?;
        self.receive_buffer.as_ref().map_or(Ok(()), |buffer| buffer.check(1)).map_err(|of| of.under("receive_buffer"))
    }

    fn check_on(&self, network: &NetworkView) -> Result<(), Problem> {
        let mtu_bytes = u64::from(network.site.mtu_bytes);
        let buffer = self.receive_buffer.as_ref().map_or(Ok(()), |buffer| buffer.check(mtu_bytes));
        buffer.map_err(|of| of.under("receive_buffer"))
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements {
            signal: CongestionSignal::Delay,
            flow_labels: true,
            ..SwitchRequirements::only(Balancing::Ecmp)
        }
    }

    // One for each packet at the most, where windows are small; where they are large, one for several packets.
    fn control_packets(&self) -> ControlPackets {
        ControlPackets::ACKS
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        let rtt = network.site.data_rtt.mul_f64(self.retransmit_timeout_scalar);
        let first = rtt.max(self.timeout_min(network));
        let set = self.min_retransmission_timeout.map(|_| first);
        vec![Timer::new("min_retransmission_timeout", set, first, "sends a packet again")]
    }

    fn advice(&self) -> Vec<Problem> {
        self.idle()
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Falcon::new(params::Params::new(self, site, network)))
    }
}
