//! RDMA over Ethernet (RoCEv2) as packet simulators know it: a queue pair a message, sent by rate and window.
//!
//! What is common to all: the NIC takes turns among the queue pairs that may send, by packet, each at its own rate;
//! acknowledgements go first and in a class of their own, so that what pauses data does not pause them; a window of one
//! bandwidth-delay product that shrinks with the rate, which HPCC's authors (SIGCOMM 2019) brought in and give to every control;
//! loss recovery by going back (RoCE) or selectively (IRN: Mittal et al., SIGCOMM 2018, section 3). A rate control is one file
//! more: its settings ([`control::Algorithm`]), a queue pair's rate ([`control::Control`]), and a line in the catalogue.
//!
//! Where the papers are silent it does what the simulator of HPCC's authors does, from which Pyrrha's authors have theirs, so that
//! results can be laid beside each other; `docs/schemes/rdma.md` gives every default with its reason.
//!
//! Deliberately absent: verbs, connections and memory registration (a message is an RDMA write that begins at once); atomics
//! and reads; several messages on one queue pair; end-to-end credits; a rate control's answer to loss (DCQCN, TIMELY and HPCC have
//! none). A sender never gives up.

use node::packet::flags;
use node::telemetry::{BASE_BYTES, HOP_BYTES, HOPS_MAX};
use node::{Balancing, Cx, Endpoint, Input, Packet, PollAt, Site, Telemetry};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use units::{Bytes, Duration, Problem};

use contract::name_or_table;
use contract::{About, Compared, Family, HeaderFormat, Nature, NetworkView, Scheme, SwitchRequirements, headers_of};
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

/// What a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, bound = "A: Algorithm")]
#[schemars(bound = "A: Algorithm", rename = "Rdma_{A}")]
pub struct Config<A> {
    /// How much of a message may be on its way.
    pub window: Window,
    /// What happens about losses.
    pub recovery: Recovery,
    /// Priority class of data.
    pub class: u8,
    /// Priority class of acknowledgements and congestion notifications.
    pub ack_class: u8,
    /// Bytes of an answer on the wire, with all that it carries. Without it, the headers of a data packet, and telemetry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_bytes: Option<Bytes>,
    /// Whose turn it is among the queue pairs of a NIC.
    pub turns: Turns,
    /// The rate control's own settings.
    pub control: A,
}

/// How much of a message may have been sent and not been acknowledged. A packet goes while less than that has, so that a packet
/// more may be on its way. The bandwidth-delay product is that of the host's link and the longest unloaded round trip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Window {
    /// All of it.
    Unlimited,
    /// So much at any rate (IRN's BDP-FC with one product).
    Fixed {
        /// Bandwidth-delay products.
        bdps: f64,
    },
    /// So much at line rate, and at a lower rate proportionally less.
    Variable {
        /// Bandwidth-delay products.
        bdps: f64,
    },
}

/// What happens about losses: a name (`"irn"`, all defaults) or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// All is sent again from the first packet that is missing; what comes out of order is discarded.
    GoBackN(GoBackN),
    /// What is missing is sent again.
    Irn(Irn),
}

/// RoCE's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GoBackN {
    /// Least time between two negative acknowledgements for the same missing packet.
    pub nack_interval: Duration,
    /// How long nothing may be heard before all that is outstanding is sent again.
    pub timeout: Duration,
}

/// IRN's loss recovery (Mittal et al., section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Irn {
    /// How long nothing may be heard while few packets are in flight.
    pub rto_low: Duration,
    /// How long nothing may be heard while more are.
    pub rto_high: Duration,
    /// How many are few (N).
    pub few_packets: u64,
    /// A packet is taken for lost when one that is later by more than so many has arrived: with adaptive balancing more than 0.
    pub reordering_packets: u64,
}

impl Default for GoBackN {
    fn default() -> GoBackN {
        GoBackN { nack_interval: Duration::from_us(500), timeout: Duration::from_ms(16) }
    }
}

impl Default for Irn {
    fn default() -> Irn {
        let (rto_low, rto_high) = (Duration::from_us(100), Duration::from_us(320));
        Irn { rto_low, rto_high, few_packets: 3, reordering_packets: 0 }
    }
}

impl<A: Algorithm> Default for Config<A> {
    fn default() -> Self {
        Config {
            window: Window::Variable { bdps: 1.0 },
            recovery: Recovery::GoBackN(GoBackN::default()),
            class: 3,
            ack_class: 0,
            ack_bytes: None,
            turns: Turns::default(),
            control: A::default(),
        }
    }
}

impl<A: Algorithm> Scheme for Config<A> {
    fn about(&self) -> About {
        A::ABOUT
    }

    fn nature(&self) -> Nature {
        Nature { compared: Compared::With("pfc"), ..Nature::of_hosts(Family::Lossless) }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        if let Window::Fixed { bdps } | Window::Variable { bdps } = self.window
            && !(bdps > 0.0 && bdps <= 1e6)
        {
            let message = format!("{bdps} is not above 0 and at most 1e6; \"unlimited\" is no window");
            return Err(Problem::new("window.bdps", message));
        }
        self.recovery.check().map_err(|problem| problem.under("recovery"))?;
        for (key, class) in [("class", self.class), ("ack_class", self.ack_class)] {
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

    fn endpoint(&self, site: &Site, _: &NetworkView) -> Box<dyn Endpoint> {
        let telemetry_bytes = if A::TELEMETRY { telemetry_bytes(site) } else { 0 };
        let header_bytes = site.header_bytes + telemetry_bytes;
        let beyond_mtu = if self.control.telemetry_beyond_mtu() { telemetry_bytes } else { 0 };
        let mss = u64::from((site.mtu_bytes + beyond_mtu).saturating_sub(header_bytes).max(1));
        let (order, timeout) = match self.recovery {
            Recovery::GoBackN(GoBackN { nack_interval, timeout }) => {
                (Order::Only { nack_interval }, Timeout { high: timeout, low: timeout, few: 0 })
            }
            Recovery::Irn(Irn { rto_low: low, rto_high: high, few_packets: few, .. }) => {
                (Order::Any, Timeout { high, low, few })
            }
        };
        let selective = match self.recovery {
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
            ack_bytes: self.ack_bytes.map_or(header_bytes, |bytes| bytes.get() as u16),
            remember: Duration::from_ps(timeout.high.ps().saturating_mul(2)),
        };
        Box::new(Rdma {
            class: self.class,
            ack_class: self.ack_class,
            sender: Sender::new(self.control.clone(), sender, site.clone()),
            receiver: Receiver::new(receiver, site.clone(), mss),
            gathered: Telemetry::default(),
        })
    }

    fn requirements(&self, site: &Site) -> SwitchRequirements {
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
        let least = |key: &str, timeout: Duration| {
            let message = || format!("{timeout} would time out on what is on its way; write at least 1us");
            if timeout < Duration::from_us(1) { Err(Problem::new(key, message())) } else { Ok(()) }
        };
        match *self {
            Recovery::GoBackN(GoBackN { timeout, .. }) => least("go_back_n.timeout", timeout),
            Recovery::Irn(Irn { rto_low, rto_high, .. }) => {
                if rto_high < rto_low {
                    let message = format!("{rto_high} is below rto_low, {rto_low}");
                    return Err(Problem::new("irn.rto_high", message));
                }
                least("irn.rto_low", rto_low)
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
        name_or_table::<D, Recovery, RecoveryTable>(deserializer, "a recovery's name", Recovery::NAMES, Recovery::named)
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

/// Room for what a packet gathers on the longest path, on each data packet and each answer: five hops at least, as HPCC's simulator
/// reserves on every fabric.
fn telemetry_bytes(site: &Site) -> u16 {
    let longest = site.data_rtts.last().map_or(0, |of| usize::from(of.0));
    BASE_BYTES + HOP_BYTES * longest.clamp(5, HOPS_MAX) as u16
}

struct Rdma<A: Algorithm> {
    class: u8,
    ack_class: u8,
    sender: Sender<A>,
    receiver: Receiver,
    /// What the packet that comes in next brings, if it is flagged for that.
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
            Input::Deadline => self.sender.wake(cx.now),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
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

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (sent, received) = (&self.sender.counts, &self.receiver.counts);
        vec![
            ("retransmissions", sent.retransmissions),
            ("recoveries", sent.recoveries),
            ("timeouts", sent.timeouts),
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
