//! TCP: reliable delivery of messages by a window, with a selectable congestion control.
//!
//! Common to all congestion controls: SACK-based loss recovery (RFC 6675) with limited transmit (RFC 3042) and rescue
//! retransmission, the retransmission timeout of RFC 6298 with Karn's rule, delayed acknowledgements (RFC 1122, RFC
//! 5681) and congestion marks (RFC 3168, RFC 8257) where asked for. A congestion control adds one file: its settings
//! ([`control::Algorithm`]), its window ([`control::Control`]), and a line in the catalogue.
//!
//! Each message is a flow that begins in slow start on an existing connection, as between services that keep
//! connections open; with `handshake` it opens one. Data goes one way, so a packet is either data or an
//! acknowledgement. The NIC pulls: flows that may send take turns by packet, acknowledgements go first.
//!
//! Settings, off by default: RACK and tail loss probes (RFC 8985), without which a lost tail and a lost retransmission
//! wait for the timeout; proportional rate reduction (RFC 9937), without which a flow in recovery pauses for half a
//! round trip.
//!
//! Deliberately absent: F-RTO and the undoing of spurious reductions; timestamps (RTTs come from sending times kept by
//! the sender); a receive window (applications take all at once), FIN, resets and negotiation of options (all hosts of
//! a scenario have the same). A sender never gives up. `docs/schemes/tcp.md` gives the reason of every default.

use node::{Balancing, Cx, Endpoint, EndpointParams, FlowState, Input, Packet, PollAt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, FlowId, Problem};

use contract::{
    About, Capabilities, CongestionSignal, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer,
    headers_of,
};
use control::{Algorithm, Ecn, Start};
use header::{Header, WINDOW_SEGMENTS};
use plb::Plb;
use receiver::Receiver;
use rtt::Bounds;
use sender::Sender;

pub mod bbr;
pub mod control;
pub mod cubic;
pub mod custom;
pub mod dctcp;
pub mod header;
pub mod illinois;
pub mod linux;
pub mod newreno;
pub mod plb;
pub mod slow_start;
pub mod swift;

mod prr;
mod rack;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

/// Configuration of TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, bound = "A: Algorithm")]
#[schemars(bound = "A: Algorithm", rename = "Tcp_{A}")]
pub struct Config<A> {
    /// Initial window, in segments (RFC 6928). Default: 10.
    pub initial_window: u16,
    /// Whether each message opens a connection first, which costs a round trip. Default: false.
    pub handshake: bool,
    /// Delayed acknowledgements. Default: none, each packet is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<DelayedAck>,
    /// Minimum retransmission timeout. Default: 1ms.
    #[schemars(extend("x-least" = "100ns"))]
    pub rto_min: Duration,
    /// Least time that the timeout adds to the smoothed round trip, beside four times its variance, and that a tail
    /// loss probe allows for the acknowledgement of a single packet. Linux's `tcp_rto_min` bounds these and not the
    /// sum. Default: 0, and 200ms with `linux`.
    pub rto_variance_min: Duration,
    /// Maximum retransmission timeout. Default: 60s.
    #[schemars(extend("x-least" = "100ns"))]
    pub rto_max: Duration,
    /// Granularity of the clock that measures round trips: RFC 6298's G. Default: 1us.
    pub clock_granularity: Duration,
    /// How many later segments must have arrived before one counts as lost (RFC 6675's DupThresh). More than 3 for
    /// switches that choose a path for each packet: so many may overtake a segment. A loss among a message's last ones
    /// then waits for the timeout. Default: 3.
    pub reordering: u32,
    /// Losses are found by time (RACK, RFC 8985), lost retransmissions too, instead of by `reordering`. Default: false.
    pub rack: bool,
    /// After two round trips without an acknowledgement a segment probes for a lost tail (TLP, RFC 8985 section 7).
    /// Only with `rack`. Default: false.
    pub tail_loss_probe: bool,
    /// In a recovery as much leaves as arrives, in the proportion by which the window shrinks (PRR, RFC 9937). Not for
    /// controls that pace. Default: false.
    pub prr: bool,
    /// Priority class of data. Default: 1.
    pub class: u8,
    /// Priority class of acknowledgements. Default: that of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_class: Option<u8>,
    /// Protective load balancing (PLB): a flow that meets congestion repeatedly changes its path by its flow label.
    /// Only for congestion controls that learn which packets were marked (`dctcp`), with ECMP in switches. Default:
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plb: Option<Plb>,
    /// Settings of the congestion control.
    pub control: A,
}

/// When an acknowledgement may be delayed (RFC 5681 section 4.2). One that reports a loss, fills a hole, ends a message
/// or reports a change of marks (RFC 8257 section 3.2) is never delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DelayedAck {
    /// Packets for each acknowledgement. Default: 2.
    pub packets: u32,
    /// Longest delay of the first of them. Default: 200us.
    #[schemars(extend("x-least" = "100ns"))]
    pub timeout: Duration,
}

impl Default for DelayedAck {
    /// Two packets, as in RFC 5681, and a time well below the sender's minimum timeout.
    fn default() -> DelayedAck {
        DelayedAck { packets: 2, timeout: Duration::from_us(200) }
    }
}

impl<A: Algorithm> Default for Config<A> {
    fn default() -> Self {
        A::stack(Config {
            initial_window: 10,
            handshake: false,
            delayed_ack: None,
            rto_min: Duration::from_ms(1),
            rto_variance_min: Duration::ZERO,
            rto_max: Duration::from_ms(60_000),
            clock_granularity: Duration::from_us(1),
            reordering: scoreboard::DUP_THRESH,
            rack: false,
            tail_loss_probe: false,
            prr: false,
            class: 1,
            ack_class: None,
            plb: None,
            control: A::default(),
        })
    }
}

impl<A> Config<A> {
    fn bounds(&self) -> Bounds {
        Bounds {
            min: self.rto_min,
            max: self.rto_max,
            granularity: self.clock_granularity,
            variance_min: self.rto_variance_min,
        }
    }
}

impl<A: Algorithm> Scheme for Config<A> {
    fn about(&self) -> About {
        A::ABOUT
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_hosts(Family::Reactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        if self.initial_window == 0 {
            return Err(Problem::new("initial_window", "at 0 nothing would be sent; write at least 1"));
        }
        if self.rto_min == Duration::ZERO || self.rto_min > self.rto_max {
            let message = format!("{} is not above 0 and at most rto_max, {}", self.rto_min, self.rto_max);
            return Err(Problem::new("rto_min", message));
        }
        if self.rto_variance_min > self.rto_max {
            let message = format!("{} is above rto_max, {}", self.rto_variance_min, self.rto_max);
            return Err(Problem::new("rto_variance_min", message));
        }
        if !(1..=WINDOW_SEGMENTS).contains(&u64::from(self.reordering)) {
            let message = format!("{} is not from 1 to 65535, the largest window", self.reordering);
            return Err(Problem::new("reordering", message));
        }
        for (key, class) in [("class", Some(self.class)), ("ack_class", self.ack_class)] {
            if let Some(class) = class.filter(|&class| class > 7) {
                return Err(Problem::new(key, format!("{class} is not one of 0 to 7")));
            }
        }
        if let Some(delay) = self.delayed_ack {
            if delay.packets < 2 {
                let message = format!("{} delays nothing; write at least 2, or leave delayed_ack out", delay.packets);
                return Err(Problem::new("delayed_ack.packets", message));
            }
            if delay.timeout >= self.rto_min {
                let message = format!(
                    "{} is not below rto_min, {}: the sender would time out on packets that have arrived",
                    delay.timeout, self.rto_min
                );
                return Err(Problem::new("delayed_ack.timeout", message));
            }
        }
        if self.tail_loss_probe && !self.rack {
            return Err(Problem::new(
                "tail_loss_probe",
                "its acknowledgement tells of losses by time; set rack = true",
            ));
        }
        if let Some(plb) = &self.plb {
            plb.check().map_err(|problem| problem.under("plb"))?;
            if self.control.ecn() != Ecn::Proportional {
                let message = "needs the share of marked bytes, which this congestion control does not measure; leave \
                               it out, or choose dctcp";
                return Err(Problem::new("plb", message));
            }
        }
        self.control.check().map_err(|problem| problem.under("control"))
    }

    fn check_on(&self, _: &NetworkView) -> Result<(), Problem> {
        self.control.check_on().map_err(|problem| problem.under("control"))
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        let bounds = self.bounds();
        let first = rtt::Rtt::new(network.site.data_rtt).timeout(&bounds);
        let then = "takes the first segment that is not acknowledged for lost";
        vec![Timer { key: "rto_max", after: first, set: first == self.rto_max, then }]
    }

    fn endpoint(&self, site: &EndpointParams, _: &NetworkView) -> Box<dyn Endpoint> {
        let sender = sender::Settings {
            start: Start::at(site, self.initial_window),
            handshake: self.handshake,
            rto: self.bounds(),
            class: self.class,
            plb: self.plb,
            reordering: self.reordering,
            prr: self.prr,
            rack: self.rack,
            tail_loss_probe: self
                .tail_loss_probe
                .then(|| self.delayed_ack.map_or(Duration::ZERO, |delay| delay.timeout.max(self.rto_variance_min))),
        };
        let receiver = receiver::Settings {
            ecn: self.control.ecn(),
            delayed_ack: self.delayed_ack,
            ack_class: self.ack_class.unwrap_or(self.class),
        };
        Box::new(Tcp {
            class: self.class,
            ack_class: receiver.ack_class,
            sender: Sender::new(self.control.at_host(), sender, site.clone()),
            receiver: Receiver::new(receiver, site.clone()),
        })
    }

    fn queue_needed(&self, site: &EndpointParams) -> Option<Bytes> {
        let by_loss = self.control.signal(site) == CongestionSignal::Drop;
        self.control.queue_needed(site).filter(|_| by_loss)
    }

    fn requirements(&self, site: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements {
            signal: self.control.signal(site),
            flow_labels: self.plb.is_some(),
            ..SwitchRequirements::only(Balancing::Ecmp)
        }
    }
}

#[derive(node::State)]
struct Tcp<A: Algorithm> {
    class: u8,
    ack_class: u8,
    sender: Sender<A>,
    receiver: Receiver,
}

impl<A: Algorithm> Endpoint for Tcp<A> {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(cx, message),
            Input::Packet(packet) => match packet.header() {
                Header::Data(data) => self.receiver.receive(cx, packet, data),
                Header::Ack(ack) => self.sender.receive(cx, packet, &ack),
                Header::Syn { .. } => self.receiver.grant(packet),
                Header::SynAck => self.sender.granted(cx, packet),
            },
            Input::Deadline => {
                self.sender.wake(cx);
                self.receiver.wake(cx.now);
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if cx.gate.open(self.ack_class)
            && let Some(ack) = self.receiver.poll_transmit()
        {
            return Some(ack);
        }
        if cx.gate.open(self.class) { self.sender.poll_transmit(cx) } else { None }
    }

    fn poll_at(&self) -> PollAt {
        self.sender.deadline().into_iter().chain(self.receiver.deadline()).min().into()
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
            ("fast_retransmissions", sent.fast_retransmissions),
            ("timeout_retransmissions", sent.timeout_retransmissions),
            ("syn_retransmissions", sent.syn_retransmissions),
            ("recoveries", sent.recoveries),
            ("timeouts", sent.timeouts),
            ("tail_loss_probes", sent.tail_loss_probes),
            ("ecn_reductions", sent.ecn_reductions),
            ("path_changes", sent.path_changes),
            ("acks", received.acks),
            ("duplicates", received.duplicates),
            ("trimmed", received.trimmed),
            ("malformed", sent.malformed + received.malformed),
        ]
    }
}
