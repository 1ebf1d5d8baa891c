//! Ultra Ethernet Transport (UET: Ultra Ethernet Specification 1.0, 2025), with its congestion control as the public
//! simulator of its authors has it (`uet-htsim`, github.com/ultraethernet/uet-htsim).
//!
//! Either a sender has a window that follows two signals of the network, ECN marks and queueing delay (NSCC, `nscc`),
//! or a receiver gives it credit at the rate of its link (RCCC, `credits`), or both. Packets of one message go over
//! many paths: each carries an entropy value that switches hash, and the answers to earlier packets tell senders which
//! values to use again (`spraying`). So packets arrive in any order: a receiver accepts them as they come, and
//! acknowledges them selectively (`receiver`). Switches trim packets that find no room (queues: `trimming`), and
//! receivers answer these with NACKs. A packet without an answer is sent again after a timeout, or, where switches do
//! not trim, when enough later packets have arrived (`sender`).
//!
//! `docs/schemes/uet.md` says where every constant is from, and lists what was decided differently.
//!
//! Deliberately absent: the semantic layer (SES), security (TSS), the setting-up and closing of delivery contexts (a
//! message is a context of its own, which begins at once), ordered and unreliable delivery, the receiver's penalty on a
//! sender's window, the probe packets of SLEEK, and several messages on one window. LLR and CBFC are link controls.

pub mod header;

mod credits;
mod host;
mod nscc;
mod params;
mod receiver;
mod sender;
mod spraying;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, EndpointParams, Marking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, HostId, Problem, SwitchId};

use contract::{
    About, Capabilities, CongestionSignal, ControlPackets, Family, HeaderFormat, NetworkView, Scheme,
    SwitchRequirements, Timer, headers_of,
};

pub use header::Header;
pub use spraying::Spraying;

use crate::trimming::{Params, TrimmingQueues};

/// Configuration of UET.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What holds senders back. Default: `nscc`.
    pub congestion_control: CongestionControl,
    /// How senders choose the path of each packet. Default: `mixed`.
    pub spraying: Spraying,
    /// Number of entropy values of a message, a power of two; 1 keeps it on one path. Default: 64.
    pub entropies: u16,
    /// Whether switches trim packets that find no room, in queues of UET's own; otherwise they treat them as `switch`
    /// says. Default: true.
    pub trimming: bool,
    /// With trimming, room for data at a switch port; there is twice as much for headers. Default: a bandwidth-delay
    /// product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// NSCC: the window at first. Default: the greatest, one and a half bandwidth-delay products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<Bytes>,
    /// NSCC: the queueing delay that the window aims at. Default: three quarters of the network's round trip, all of it
    /// without trimming.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_delay: Option<Duration>,
    /// NSCC: whether quick adapt is on. Default: true.
    pub quick_adapt: bool,
    /// RCCC alone: oversubscription of the network, such as 2 for 2:1. It bounds how far receivers lower their credit
    /// rate. With 1 they never do. Default: that of the first host's switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<f64>,
    /// Bytes that arrive before a receiver acknowledges them, unless it must acknowledge earlier. Default: 16KiB.
    pub ack_bytes: Bytes,
    /// Silence after which a packet counts as lost. Default: 15us plus the time of six full queues, each of one
    /// bandwidth-delay product with trimming and of five without.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "100ns"))]
    pub rto: Option<Duration>,
    /// Whether a packet also counts as lost when one and a half windows of later packets have arrived. Default: only
    /// without trimming.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infers_losses: Option<bool>,
}

/// What holds senders back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CongestionControl {
    /// A window by the network's signals (network-signal-based congestion control).
    #[default]
    Nscc,
    /// Credit of receivers (receiver-credit congestion control).
    Rccc,
    /// Both: a packet needs room in the window and credit.
    Both,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            congestion_control: CongestionControl::default(),
            spraying: Spraying::default(),
            entropies: 64,
            trimming: true,
            queue: None,
            initial_window: None,
            target_delay: None,
            quick_adapt: true,
            oversubscription: None,
            ack_bytes: Bytes(16_384),
            rto: None,
            infers_losses: None,
        }
    }
}

/// Fewest packets of a default queue, for networks with next to no delay.
const QUEUE_PACKETS_MIN: u64 = 8;

impl Config {
    /// Full packets of a bandwidth-delay product.
    fn bdp_packets(site: &EndpointParams) -> u64 {
        site.bdp_bytes().div_ceil(u64::from(site.mtu_bytes))
    }

    fn queue_bytes(&self, site: &EndpointParams) -> u64 {
        let packets = Config::bdp_packets(site).max(QUEUE_PACKETS_MIN);
        self.queue.map_or(packets * u64::from(site.mtu_bytes), |queue| queue.get())
    }

    fn target_delay(&self, site: &EndpointParams) -> Duration {
        let rtt = site.data_rtt;
        self.target_delay.unwrap_or(if self.trimming { Duration::from_ps(rtt.ps() / 4 * 3) } else { rtt })
    }

    fn rto(&self, site: &EndpointParams) -> Duration {
        let queues = if self.trimming { 6 } else { 6 * 5 };
        self.rto.unwrap_or(Duration::from_us(15) + site.nic_rate.transmit(self.queue_bytes(site)) * queues)
    }

    /// Marks from a fifth of a bandwidth-delay product on, and all from four fifths on.
    fn marking(site: &EndpointParams) -> Marking {
        let mtu = u64::from(site.mtu_bytes);
        let packets = Config::bdp_packets(site);
        let (min, max) = (packets.div_ceil(5), (packets * 4).div_ceil(5));
        let max = max.max(min + 1);
        Marking::Ramp { min: Bytes(min * mtu), max: Bytes(max * mtu), probability_max: 1.0, per: None }
    }
}

/// How many times the rates of its hosts exceed those to other switches, at the first host's switch.
fn oversubscription(network: &NetworkView) -> f64 {
    let fabric = &network.fabric;
    let node = fabric.switch_node(fabric.rack_of(HostId(0)));
    let (mut down, mut up) = (0u64, 0u64);
    for &link in &fabric.ports[node.index()] {
        let link = fabric.link(link);
        let side = if fabric.as_host(link.to).is_some() { &mut down } else { &mut up };
        *side += link.rate.bps();
    }
    if up == 0 { 1.0 } else { (down as f64 / up as f64).max(1.0) }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "UET",
            source: "Ultra Ethernet Consortium: Ultra Ethernet Specification 1.0, 2025",
            summary: "Senders spray packets over many paths under a window by marks and delay (NSCC) or receivers' \
                      credit (RCCC); switches trim packets that do not fit.",
            needs: "switches: ECMP over a flow label, ECN, trimming (can be switched off); hosts: data in any order, \
                    selective acknowledgement",
        }
    }

    fn capabilities(&self) -> Capabilities {
        let family = match self.congestion_control {
            CongestionControl::Nscc => Family::Reactive,
            CongestionControl::Rccc | CongestionControl::Both => Family::Proactive,
        };
        Capabilities { brings_queueing: self.trimming, ..Capabilities::of_hosts(family) }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        let problem = |key: &str, message: String| Err(Problem::new(key, message));
        if !self.entropies.is_power_of_two() {
            return problem("entropies", format!("{} is not a power of two, such as 64", self.entropies));
        }
        for (key, bytes) in [("queue", self.queue), ("initial_window", self.initial_window)] {
            if let Some(bytes) = bytes.filter(|bytes| !(1..=1 << 30).contains(&bytes.get())) {
                return problem(key, format!("{bytes} is not between 1B and 1GiB"));
            }
        }
        if !(1..=1 << 30).contains(&self.ack_bytes.get()) {
            return problem("ack_bytes", format!("{} is not between 1B (each packet) and 1GiB", self.ack_bytes));
        }
        let long = Duration::from_ms(1_000);
        for (key, time) in [("rto", self.rto), ("target_delay", self.target_delay)] {
            if let Some(time) = time.filter(|&time| time == Duration::ZERO || time > long) {
                return problem(key, format!("{time} is not above 0 and up to {long}"));
            }
        }
        if let Some(ratio) = self.oversubscription.filter(|ratio| !(1.0..=1e6).contains(ratio)) {
            return problem("oversubscription", format!("{ratio} is not between 1 (none) and 1e6"));
        }
        Ok(())
    }

    fn advice(&self) -> Vec<Problem> {
        let by_credit = self.congestion_control == CongestionControl::Rccc;
        let of_trimming = "has no effect without trimming; set switch.buffer instead";
        let of_credit = "has no effect with a window, which sees to it; set congestion_control = \"rccc\"";
        let of_window = "has no effect under RCCC alone; set congestion_control = \"nscc\"";
        let all = [
            ("queue", self.queue.is_some() && !self.trimming, of_trimming),
            ("oversubscription", self.oversubscription.is_some() && !by_credit, of_credit),
            ("initial_window", self.initial_window.is_some() && by_credit, of_window),
            ("target_delay", self.target_delay.is_some() && by_credit, of_window),
            ("quick_adapt", !self.quick_adapt && by_credit, of_window),
        ];
        all.into_iter().filter(|idle| idle.1).map(|(key, _, why)| Problem::new(key, why)).collect()
    }

    fn requirements(&self, site: &EndpointParams) -> SwitchRequirements {
        let by_switches = self.spraying == Spraying::Switches;
        let balancing = if by_switches { Balancing::Spray } else { Balancing::Ecmp };
        SwitchRequirements {
            signal: CongestionSignal::Ecn(Config::marking(site)),
            flow_labels: !by_switches,
            ..SwitchRequirements::only(balancing)
        }
    }

    // Acknowledgements of four full packets at the least and of each marked one at the most, and credit for four.
    fn control_packets(&self) -> ControlPackets {
        let credits = if self.congestion_control == CongestionControl::Nscc { 0.0 } else { 0.3 };
        ControlPackets { per_packet: 0.5 + credits, ..ControlPackets::NONE }
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        vec![Timer::new("rto", self.rto, self.rto(&network.site), "sends a packet again")]
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        let params = params::Params::new(self, site);
        let credits = params.rccc.then(|| {
            let alone = self.congestion_control == CongestionControl::Rccc;
            let ratio = self.oversubscription.unwrap_or_else(|| oversubscription(network));
            let control = (alone && ratio > 1.0).then(|| credits::RateControl::new(ratio, site.data_rtt));
            let payload = u64::from(site.payload_max());
            credits::Credits::new(site.nic_rate, payload, params.window_max, control)
        });
        Box::new(host::Uet::new(params, receiver::Receiver::new(credits)))
    }

    fn queueing(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn node::QueueDiscipline>> {
        if !self.trimming {
            return None;
        }
        let (site, fabric) = (&network.site, &network.fabric);
        let room = u32::try_from(self.queue_bytes(site)).unwrap_or(u32::MAX / 2).min(u32::MAX / 2);
        let params = Params {
            transport: site.transport,
            data_bytes_max: room,
            headers_bytes_max: 2 * room,
            header_bytes: u32::from(site.header_bytes),
            headers_per_packet: u16::MAX,
            // Receivers see to the last link where they give credit.
            marks_last_hop: self.congestion_control == CongestionControl::Nscc,
            send_back: None,
            trimmed_last_hop: Some(header::trimmed_last_hop),
        };
        let links = &fabric.ports[fabric.switch_node(switch).index()];
        let to_hosts = links.iter().map(|&link| fabric.as_host(fabric.link(link).to).is_some());
        Some(Box::new(TrimmingQueues::new(params, to_hosts)))
    }
}
