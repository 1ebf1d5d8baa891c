//! RDMA over Ethernet (RoCEv2) as packet simulators know it: a queue pair a message, sent by rate and window.
//!
//! Common to all rate controls: the NIC serves the queue pairs that may send in turn, packet by packet, each at its own
//! rate. Acknowledgements go first, in a class of their own, so that pauses of data do not pause them. A window of one
//! bandwidth-delay product shrinks with the rate; HPCC's authors (SIGCOMM 2019) introduced it and use it with every
//! control. Losses are recovered by going back (RoCE) or selectively (IRN: Mittal et al., SIGCOMM 2018, section 3). A
//! rate control adds one file: its settings ([`control::Algorithm`]), a queue pair's rate ([`control::Control`]), and a
//! line in the catalogue.
//!
//! Where the papers are silent it follows the simulator of HPCC's authors, on which that of Pyrrha's authors is based,
//! so that results can be compared. `docs/schemes/rdma.md` gives the reason of every default.
//!
//! Deliberately absent: verbs, connections and memory registration (a message is an RDMA write that begins at once);
//! atomics and reads; several messages on one queue pair; end-to-end credits; a rate control's answer to loss (DCQCN,
//! TIMELY and HPCC have none). A sender gives up only where `retry_cnt` says so.

use std::sync::Arc;

use node::packet::flags;
use node::telemetry::{BASE_BYTES, HOP_BYTES, HOPS_MAX};
use node::{Balancing, Cx, Endpoint, EndpointParams, FlowState, Input, Packet, PollAt, Telemetry};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use units::{Bytes, Duration, FlowId, Problem};

use contract::name_or_table;
use contract::{
    About, Capabilities, Compared, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer, headers_of,
};
use control::Algorithm;
use header::Header;
use receiver::{Order, Receiver};
use sender::{Sender, Timeout};
pub use turns::Turns;

pub mod control;
pub mod dcqcn;
pub mod header;
pub mod hpcc;
pub mod line_rate;
pub mod timely;

mod outstanding;
mod receiver;
mod sender;
mod turns;

/// Configuration of RDMA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, bound = "A: Algorithm")]
#[schemars(bound = "A: Algorithm", rename = "Rdma_{A}")]
pub struct Config<A> {
    /// How much of a message may be in flight. Default: one bandwidth-delay product, in proportion to the rate.
    pub window: Window,
    /// How losses are recovered. Default: `go_back_n`.
    pub recovery: Recovery,
    /// Priority class of data. Default: 3.
    pub class: u8,
    /// Priority class of acknowledgements and congestion notifications. Default: 0.
    pub ack_class: u8,
    /// Priority class of congestion notifications in packets of their own. Default: that of acknowledgements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_class: Option<u8>,
    /// Size of an acknowledgement on the wire, with all that it carries. Default: the headers of a data packet, and
    /// telemetry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_bytes: Option<Bytes>,
    /// The order in which a NIC serves its queue pairs. Default: `in_line`.
    pub turns: Turns,
    /// Settings of the rate control.
    pub control: A,
}

/// How much of a message may be sent and not acknowledged. A packet is sent while less than that is outstanding, so up
/// to one packet more may be in flight. The bandwidth-delay product is the rate of the host's link times the longest
/// unloaded round trip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Window {
    /// The whole message.
    Unlimited,
    /// This much at any rate (with one product: IRN's BDP-FC).
    Fixed {
        /// Bandwidth-delay products.
        bdps: f64,
    },
    /// This much at line rate, and proportionally less at lower rates.
    Variable {
        /// Bandwidth-delay products.
        bdps: f64,
    },
}

/// Loss recovery: a name (`"irn"`, all defaults) or a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Everything from the first missing packet on is sent again; packets that arrive out of order are discarded.
    GoBackN(GoBackN),
    /// Only missing packets are sent again.
    Irn(Irn),
}

/// RoCE's loss recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GoBackN {
    /// Least time between two negative acknowledgements of the same missing packet. Default: 500us, or a round
    /// trip of full packets, if that is longer.
    #[schemars(extend("x-least" = "100ns", "x-zero" = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nack_interval: Option<Duration>,
    /// Silence after which everything outstanding is sent again. Default: 16ms, or as long as a round trip may take.
    #[schemars(extend("x-least" = "100ns"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// The same as InfiniBand's verbs have it: 4.096 us times 2 to the power of this, 1 to 31. Default: `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_timeout: Option<u8>,
    /// How often a message may time out without any progress and be sent again, 0 to 7; then it fails (`retry_cnt` of
    /// InfiniBand's verbs). Default: without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_cnt: Option<u8>,
    /// Timeouts that grow while nothing arrives (NVIDIA's adaptive retransmission), instead of a single one. Default:
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adaptive: Vec<TimeoutRange>,
}

/// Timeouts of adaptive retransmission: `least`, twice that, and so on up to `most`, each for `retries` times. Then
/// comes the next range, and after the last the message fails. All that is new to the sender begins the first range
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeoutRange {
    /// The first timeout.
    #[schemars(extend("x-least" = "100ns"))]
    pub least: Duration,
    /// The longest that a timeout may be.
    #[schemars(extend("x-least" = "100ns"))]
    pub most: Duration,
    /// How often each is used, 1 to 255. Default: 1.
    #[serde(default = "once")]
    pub retries: u8,
}

fn once() -> u8 {
    1
}

/// A unit of `ack_timeout`.
const ACK_TIMEOUT_UNIT: Duration = Duration::from_ns(4_096);

/// IRN's loss recovery (Mittal et al., section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Irn {
    /// Timeout while few packets are in flight. Default: 100us, or what corresponds to `rto_high`.
    #[schemars(extend("x-least" = "100ns"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_low: Option<Duration>,
    /// Timeout while more packets are in flight. Default: 320us, or as long as a round trip may take.
    #[schemars(extend("x-least" = "100ns"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_high: Option<Duration>,
    /// Number of packets that count as few (N). Default: 3.
    pub few_packets: u64,
    /// A packet counts as lost when one more than this many positions later has arrived. Use more than 0 with
    /// adaptive balancing. Default: 0.
    pub reordering_packets: u64,
}

impl GoBackN {
    /// NACK interval and timeout on a network, at least those of HPCC's authors. A packet that is sent again after a
    /// NACK takes a round trip until another NACK can be right; what it waits for in queues came before.
    fn on(&self, network: &NetworkView) -> (Duration, Duration) {
        let interval = || network.busy_rtt().max(Duration::from_us(500));
        (self.nack_interval.unwrap_or_else(interval), network.timer(self.set(), Duration::from_ms(16)))
    }

    /// The timeout that the scenario sets.
    fn set(&self) -> Option<Duration> {
        let by_exponent = self.ack_timeout.map(|exponent| ACK_TIMEOUT_UNIT * (1 << exponent));
        self.adaptive.first().map(|range| range.least).or(self.timeout).or(by_exponent)
    }

    /// The timeouts one after the other, of which the last holds for ever; and how many there may be.
    fn in_turn(&self, timeout: Duration) -> (Arc<[Duration]>, Option<u32>) {
        let of_range = |range: TimeoutRange| {
            let values = std::iter::successors(Some(range.least), |last| Some(*last * 2));
            let values = values.take_while(|value| *value <= range.most).collect::<Vec<_>>();
            values.into_iter().flat_map(move |value| std::iter::repeat_n(value, usize::from(range.retries)))
        };
        let grown: Arc<[Duration]> = self.adaptive.iter().copied().flat_map(of_range).collect();
        match grown.len() {
            0 => (Arc::new([timeout]), self.retry_cnt.map(u32::from)),
            // The first wait is no retry.
            several => (grown, Some(self.retry_cnt.map_or(several as u32 - 1, u32::from))),
        }
    }

    fn check(&self) -> Result<(), Problem> {
        if let Some(exponent) = self.ack_timeout.filter(|exponent| !(1..=31).contains(exponent)) {
            let message = format!("{exponent} is not between 1 and 31; 14 is 67ms, the default of many libraries");
            return Err(Problem::new("ack_timeout", message));
        }
        if let Some(retries) = self.retry_cnt.filter(|retries| *retries > 7) {
            return Err(Problem::new(
                "retry_cnt",
                format!("{retries} is not between 0 and 7; leave it out for no end"),
            ));
        }
        let said = [self.timeout.is_some(), self.ack_timeout.is_some(), !self.adaptive.is_empty()];
        if said.iter().filter(|said| **said).count() > 1 {
            return Err(Problem::new("timeout", "timeout, ack_timeout and adaptive say the same; keep one of them"));
        }
        if self.adaptive.len() > 4 {
            return Err(Problem::new("adaptive", "has more than 4 ranges; NICs have 4 at most"));
        }
        for (index, range) in self.adaptive.iter().enumerate() {
            let key = |rest: &str| format!("adaptive[{index}].{rest}");
            if range.most < range.least {
                return Err(Problem::new(key("most"), format!("{} is below least, {}", range.most, range.least)));
            }
            if range.retries == 0 {
                return Err(Problem::new(key("retries"), "0 is no retry; write at least 1"));
            }
            let before = index.checked_sub(1).map(|before| self.adaptive[before].least);
            if before.is_some_and(|before| before >= range.least) {
                return Err(Problem::new(key("least"), "is not above that of the range before; sort the ranges"));
            }
        }
        match self.set() {
            Some(timeout) if timeout < Duration::from_us(1) => {
                let key = if self.adaptive.is_empty() { "timeout" } else { "adaptive[0].least" };
                Err(Problem::new(key, shorter_than_a_round_trip(timeout)))
            }
            _ => Ok(()),
        }
    }
}

fn shorter_than_a_round_trip(timeout: Duration) -> String {
    format!("{timeout} is shorter than a round trip, and every packet would time out; write at least 1us")
}

impl Irn {
    /// Both timeouts on a network, the low one first: at least the paper's. Section 4.1 has the high one as a round
    /// trip with one buffer full, and in its network the low one has room for 5/16 of that.
    fn on(self, network: &NetworkView) -> (Duration, Duration) {
        let few = network.busy_rtt() + network.wait / 16 * 5;
        let high = network.timer(self.rto_high, Duration::from_us(320));
        let low = self.rto_low.unwrap_or_else(|| few.max(Duration::from_us(100)).min(high));
        (low, high.max(low))
    }
}

impl Default for Irn {
    fn default() -> Irn {
        Irn { rto_low: None, rto_high: None, few_packets: 3, reordering_packets: 0 }
    }
}

impl<A: Algorithm> Default for Config<A> {
    fn default() -> Self {
        Config {
            window: Window::Variable { bdps: 1.0 },
            recovery: Recovery::GoBackN(GoBackN::default()),
            class: 3,
            ack_class: 0,
            cnp_class: None,
            ack_bytes: None,
            turns: Turns::default(),
            control: A::default(),
        }
    }
}

impl<A: Algorithm> Config<A> {
    fn cnp_class(&self) -> u8 {
        self.cnp_class.unwrap_or(self.ack_class)
    }

    /// Bytes of telemetry in a data packet, and how many of them are not in its MTU.
    fn telemetry_bytes(&self, site: &EndpointParams) -> (u16, u16) {
        let bytes = if A::TELEMETRY { telemetry_bytes(site) } else { 0 };
        (bytes, if self.control.telemetry_beyond_mtu() { bytes } else { 0 })
    }
}

impl<A: Algorithm> Scheme for Config<A> {
    fn about(&self) -> About {
        A::ABOUT
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { compared: Compared::With("pfc"), ..Capabilities::of_hosts(Family::Lossless) }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        if let Window::Fixed { bdps } | Window::Variable { bdps } = self.window
            && !(bdps > 0.0 && bdps <= 1e6)
        {
            let message = format!("{bdps} is not above 0 and at most 1e6; for no window write \"unlimited\"");
            return Err(Problem::new("window.bdps", message));
        }
        self.recovery.check().map_err(|problem| problem.under("recovery"))?;
        for (key, class) in [("class", self.class), ("ack_class", self.ack_class), ("cnp_class", self.cnp_class())] {
            if class > 7 {
                return Err(Problem::new(key, format!("{class} is not one of 0 to 7")));
            }
        }
        if let Some(bytes) = self.ack_bytes
            && !(20..=1_500).contains(&bytes.get())
        {
            return Err(Problem::new("ack_bytes", format!("{bytes} is not between 20B and 1500B")));
        }
        self.control.check().map_err(|problem| problem.under("control"))
    }

    fn check_on(&self, network: &NetworkView) -> Result<(), Problem> {
        let site = &network.site;
        let (telemetry, beyond_mtu) = self.telemetry_bytes(site);
        let [mtu, header, telemetry, beyond_mtu] =
            [site.mtu_bytes, site.header_bytes, telemetry, beyond_mtu].map(u32::from);
        if mtu + beyond_mtu > header + telemetry {
            return Ok(());
        }
        let message = format!(
            "a data packet has {header}B of headers and {telemetry}B of telemetry, and host.mtu is {mtu}B; set \
             host.mtu to {}B at least",
            header + telemetry + 1
        );
        Err(Problem::new("", message))
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        match &self.recovery {
            Recovery::GoBackN(own) => {
                let (interval, timeout) = own.on(network);
                vec![
                    Timer::new(
                        "recovery.go_back_n.timeout",
                        own.set(),
                        timeout,
                        "sends all that is not acknowledged again",
                    ),
                    Timer::new(
                        "recovery.go_back_n.nack_interval",
                        own.nack_interval,
                        interval,
                        "asks for the same packet, and all after it, again",
                    ),
                ]
            }
            Recovery::Irn(own) => {
                let (low, high) = own.on(network);
                let then = "sends the first packet that is not acknowledged again";
                vec![
                    Timer::new("recovery.irn.rto_low", own.rto_low, low, then),
                    Timer::new("recovery.irn.rto_high", own.rto_high, high, then),
                ]
            }
        }
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        let (telemetry_bytes, beyond_mtu) = self.telemetry_bytes(site);
        let header_bytes = site.header_bytes + telemetry_bytes;
        let mss = u64::from((site.mtu_bytes + beyond_mtu).saturating_sub(header_bytes).max(1));
        let (order, timeout) = match &self.recovery {
            Recovery::GoBackN(own) => {
                let (nack_interval, timeout) = own.on(network);
                let (waits, retries) = own.in_turn(timeout);
                (Order::Only { nack_interval }, Timeout { waits, low: timeout, few: 0, retries })
            }
            Recovery::Irn(own) => {
                let (low, high) = own.on(network);
                (Order::Any, Timeout { waits: Arc::new([high]), low, few: own.few_packets, retries: None })
            }
        };
        let selective = match &self.recovery {
            Recovery::GoBackN(_) => None,
            Recovery::Irn(irn) => Some(irn.reordering_packets),
        };
        let sender = sender::Settings {
            window: self.window,
            turns: self.turns,
            timeout,
            selective,
            mss,
            header_bytes,
            class: self.class,
        };
        let receiver = receiver::Settings {
            order,
            cnp: self.control.cnp(),
            class: self.ack_class,
            cnp_class: self.cnp_class(),
            ack_bytes: self.ack_bytes.map_or(header_bytes, |bytes| bytes.get() as u16),
        };
        Box::new(Rdma {
            class: self.class,
            ack_class: self.ack_class,
            cnp_class: self.cnp_class(),
            sender: Sender::new(self.control.clone(), sender, site.clone()),
            receiver: Receiver::new(receiver, site.clone(), mss),
            gathered: Telemetry::default(),
        })
    }

    fn requirements(&self, site: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements { signal: self.control.signal(site), ..SwitchRequirements::only(Balancing::Ecmp) }
    }
}

impl Recovery {
    const NAMES: &[&str] = &["go_back_n", "irn"];

    fn named(name: &str) -> Option<Recovery> {
        match name {
            "go_back_n" => Some(Recovery::GoBackN(GoBackN::default())),
            "irn" => Some(Recovery::Irn(Irn::default())),
            _ => None,
        }
    }

    fn check(&self) -> Result<(), Problem> {
        let least = |key: &str, timeout: Option<Duration>| match timeout {
            Some(timeout) if timeout < Duration::from_us(1) => {
                Err(Problem::new(key, shorter_than_a_round_trip(timeout)))
            }
            _ => Ok(()),
        };
        match self {
            Recovery::GoBackN(own) => own.check().map_err(|problem| problem.under("go_back_n")),
            &Recovery::Irn(Irn { rto_low, rto_high, .. }) => {
                if let (Some(low), Some(high)) = (rto_low, rto_high)
                    && high < low
                {
                    return Err(Problem::new("irn.rto_high", format!("{high} is below rto_low, {low}")));
                }
                least("irn.rto_low", rto_low)?;
                least("irn.rto_high", rto_high)
            }
        }
    }
}

/// What the derived reader of the table form reads.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RecoveryTable {
    GoBackN(GoBackN),
    Irn(Irn),
}

impl From<RecoveryTable> for Recovery {
    fn from(table: RecoveryTable) -> Recovery {
        match table {
            RecoveryTable::GoBackN(settings) => Recovery::GoBackN(settings),
            RecoveryTable::Irn(settings) => Recovery::Irn(settings),
        }
    }
}

impl<'de> Deserialize<'de> for Recovery {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Recovery, D::Error> {
        name_or_table::<D, Recovery, RecoveryTable>(
            deserializer,
            "a recovery's name",
            Recovery::NAMES,
            Recovery::named,
            (),
        )
    }
}

impl JsonSchema for Recovery {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Recovery".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let table = generator.subschema_for::<RecoveryTable>();
        schemars::json_schema!({ "anyOf": [{ "enum": Recovery::NAMES }, table] })
    }
}

/// Room for the telemetry of the longest path on each data packet and acknowledgement: at least five hops, as HPCC's
/// simulator reserves on every fabric.
fn telemetry_bytes(site: &EndpointParams) -> u16 {
    let longest = site.data_rtts.last().map_or(0, |of| usize::from(of.0));
    BASE_BYTES + HOP_BYTES * longest.clamp(5, HOPS_MAX) as u16
}

#[derive(node::State)]
struct Rdma<A: Algorithm> {
    class: u8,
    ack_class: u8,
    cnp_class: u8,
    sender: Sender<A>,
    receiver: Receiver,
    /// Telemetry of the packet that arrives next, if it is flagged for it.
    #[state(built("it is of the packet that is handled"))]
    gathered: Telemetry,
}

impl<A: Algorithm> Endpoint for Rdma<A> {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(cx.now, message),
            Input::Packet(packet) => {
                let telemetry = packet.has(flags::TELEMETRY).then_some(&self.gathered);
                match packet.header() {
                    Header::Data(data) => self.receiver.receive(cx, packet, data, telemetry),
                    answer => self.sender.receive(cx, packet.flow, answer, telemetry),
                }
            }
            Input::Deadline => self.sender.wake(cx),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if self.receiver.notifies()
            && cx.gate.open(self.cnp_class)
            && let Some(notification) = self.receiver.poll_notification()
        {
            return Some(notification);
        }
        if cx.gate.open(self.ack_class)
            && let Some(answer) = self.receiver.poll_transmit()
        {
            return Some(answer);
        }
        if cx.gate.open(self.class) { self.sender.poll_transmit(cx) } else { None }
    }

    fn gathered(&mut self, telemetry: &Telemetry) {
        self.gathered = *telemetry;
    }

    fn carries(&mut self, packet: &Packet) -> Telemetry {
        if packet.payload_bytes > 0 { Telemetry::default() } else { self.receiver.carries(packet) }
    }

    fn poll_at(&self) -> PollAt {
        self.sender.deadline().into()
    }

    fn came_again(&mut self, flow: FlowId) {
        self.receiver.came_again(flow);
    }

    fn state(&self, flow: FlowId, say: &mut FlowState) {
        self.sender.state(flow, say);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (sent, received) = (&self.sender.counts, &self.receiver.counts);
        vec![
            ("retransmissions", sent.retransmissions),
            ("recoveries", sent.recoveries),
            ("timeouts", sent.timeouts),
            ("given_up", sent.given_up),
            ("acks", received.acks),
            ("nacks", received.nacks),
            ("cnps", received.cnps),
            ("out_of_order", received.out_of_order),
            ("duplicates", received.duplicates),
            ("trimmed", received.trimmed),
            ("malformed", sent.malformed + received.malformed),
        ]
    }
}
