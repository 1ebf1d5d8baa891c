//! How entities share a network: what each asks for and where, and what a mechanism that grants it can do.
//!
//! The terms are Augmented Queue's (section 4.1). A tenant asks for a share of a link in one pipeline of a switch, and
//! packets carry the ids of the grants. A mechanism works in switches ([`SharingScheme::switch_part`]), between a
//! host's endpoints and its NIC ([`SharingScheme::shaper`]), or in neither.

use std::num::NonZeroU32;

use node::layout::Layout;
use node::wire::{Malformed, Reader, Writer};
use node::{EndpointParams, Packet, Shaper, Stages};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, LinkId, PortId, Problem, Rate, Stream, Time};

use crate::{About, CongestionSignal, SwitchRequirements};

/// A sharing mechanism. Each mechanism's `Config` implements this.
pub trait SharingScheme {
    /// Title, source and summary.
    fn about(&self) -> About;

    /// Checks what the types of the configuration can't express. Keys of errors are relative to the mechanism's table.
    fn check(&self) -> Result<(), Problem>;

    /// Settings that have no effect beside its others: for each, its key and what gives it one. They are no errors.
    fn advice(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// What it does with requests in switches, if anything: then packets carry tags.
    fn tagging(&self) -> Option<Tagging> {
        None
    }

    /// Whether it limits the rates of hosts, by the bandwidth of the requests that they send or receive for.
    fn limits_hosts(&self) -> bool {
        false
    }

    /// What its own packets ask of switches, if it sends any.
    fn requirements(&self) -> Option<SwitchRequirements> {
        None
    }

    /// Appends the header of one of its own packets as it travels.
    fn emit_header(&self, _packet: &Packet, _to: &mut Writer<'_>) {}

    /// How these stand on a wire, for readers of captures.
    fn layout(&self) -> Layout {
        Layout { messages: &[] }
    }

    /// What one of its own packets says, in the words of its paper.
    fn says(&self, _packet: &Packet) -> String {
        String::new()
    }

    /// Reads the header of one of its own packets back. Any input may come from a socket: no panic.
    fn parse_header(&self, _from: &mut Reader<'_>, _packet: &mut Packet) -> Result<(), Malformed> {
        Err(Malformed { what: "limiters' packet: there are none" })
    }

    /// The rate limiter of the host at `site`, which was granted `_hose`; `None` if there is no limiter. Its own
    /// packets carry `site.transport`.
    fn shaper(&self, _site: &EndpointParams, _hose: Hose) -> Option<Box<dyn Shaper>> {
        None
    }

    /// The longest that a packet waits in that limiter.
    fn longest_wait(&self, _site: &EndpointParams, _hose: Hose) -> Duration {
        Duration::ZERO
    }

    /// Its part of a switch, with all requests to that switch; `None` if switches take no part.
    fn switch_part(&self, _asked: SwitchShares) -> Result<Option<Box<dyn Stages>>, SwitchError> {
        Ok(None)
    }

    /// Settings that can hardly work for the lowest and the highest rate on a link, although they run. Keys are
    /// relative to its table.
    fn warnings(&self, _link: &SharedLink, _least: Rate, _most: Rate) -> Vec<Problem> {
        Vec::new()
    }

    /// The same, for the signal to which the congestion control of one request reacts. The key is relative to the
    /// entity's table.
    fn signal_warning(&self, _link: &SharedLink, _rate: Rate, _signal: CongestionSignal) -> Option<Problem> {
        None
    }
}

/// What a mechanism in switches does with requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tagging {
    /// The share of all packets without a tag, on each link with a request. Without it, they take what they can.
    pub untagged: Option<Share>,
    /// Whether an entity may have what others leave idle.
    pub work_conserving: bool,
    /// The part of each link that is not granted to anybody, at least 0 and below 1.
    pub headroom: f64,
}

/// The pipeline of a switch that enforces a request (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Limits what an entity sends, to all output ports.
    Ingress,
    /// Limits what it receives, from all input ports.
    Egress,
}

impl Position {
    /// As scenarios and messages write it.
    pub const fn name(self) -> &'static str {
        match self {
            Position::Ingress => "ingress",
            Position::Egress => "egress",
        }
    }
}

/// The place where a request is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, node::Saved)]
pub struct Place {
    /// The shared link.
    pub link: LinkId,
    /// The pipeline.
    pub position: Position,
}

/// How much bandwidth a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Share {
    /// This rate, always.
    Absolute(Rate),
    /// A weight: a share in proportion to the other weights on the link.
    Weight(u32),
}

impl Share {
    /// Its weight; an absolute share has none.
    pub fn weight(self) -> u64 {
        match self {
            Share::Absolute(_) => 0,
            Share::Weight(weight) => u64::from(weight),
        }
    }
}

/// A tenant's request.
#[derive(Clone, Copy, Debug, PartialEq, node::Saved)]
pub struct Request {
    /// How much bandwidth.
    pub share: Share,
    /// The signal that the tenant's congestion control reacts to.
    pub feedback: CongestionSignal,
    /// Whether the threshold of a marking step is derived from the granted rate, whatever `feedback` says.
    pub derive_threshold: bool,
    /// Whether it never exceeds its share, even where capacity is unused.
    pub capped: bool,
    /// Where it is enforced.
    pub place: Place,
}

impl Request {
    /// A request with default settings.
    pub fn new(share: Share, feedback: CongestionSignal, place: Place) -> Request {
        Request { share, feedback, derive_threshold: false, capped: false, place }
    }
}

/// The id of an AQ, unique in a network and never reused. In a packet, 0 stands for "no AQ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, node::Saved)]
pub struct AqId(pub NonZeroU32);

impl AqId {
    /// The id that a packet carries; `None` for the default value 0 (section 4.1).
    pub const fn from_tag(tag: u32) -> Option<AqId> {
        match NonZeroU32::new(tag) {
            Some(id) => Some(AqId(id)),
            None => None,
        }
    }

    /// As the packet carries it.
    pub const fn tag(self) -> u32 {
        self.0.get()
    }
}

/// The AQ ids of a network. Each is given out once (section 4.1), so that a late packet of a released AQ belongs to no
/// other AQ.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    given: u32,
}

impl Ids {
    /// A new id; `None` after 2^32 - 1 ids.
    pub fn next_id(&mut self) -> Option<AqId> {
        self.given = self.given.checked_add(1)?;
        AqId::from_tag(self.given)
    }
}

/// A tenant's message to a switch.
#[derive(Clone, Copy, Debug, PartialEq, node::Saved)]
pub enum Step {
    /// It asks for a share.
    Request(AqId, Request),
    /// It gives one back.
    Release(AqId),
}

/// All that is asked of one switch in a run.
#[derive(Clone, Debug)]
pub struct SwitchShares {
    /// The links of which anything is asked, each once a pipeline.
    pub links: Vec<SharedLink>,
    /// What tenants will say, in order of time.
    pub steps: Vec<(Time, Step)>,
    /// The AQs of packets without a tag, by the port that these leave by. Their requests are among the steps.
    pub untagged: Vec<(PortId, Position, AqId)>,
    /// Random stream of this switch.
    pub random: Stream,
}

/// A link that entities share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLink {
    /// Which, and in which pipeline.
    pub place: Place,
    /// What all may have together.
    pub capacity: Rate,
    /// What its physical queue holds.
    pub queue: Bytes,
    /// Whether the switch that enforces requests has that queue. That of a link out of a host is in the host.
    pub sees_queue: bool,
    /// The longest round trip of the network while it is empty.
    pub rtt: Duration,
    /// A full packet, on the wire.
    pub mtu: Bytes,
}

/// Why a switch can't grant a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// A setting that makes no sense; keys are relative to the mechanism's table.
    #[error("{0}")]
    Setting(Problem),
    /// A request that would be declined, and why.
    #[error("AQ {} is declined: {}", .0.tag(), .1)]
    Declined(AqId, String),
}

/// The bandwidth that a host was granted out of it and into it; none without a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hose {
    /// To all others together; above zero.
    pub outbound: Option<Rate>,
    /// From all others together; above zero.
    pub inbound: Option<Rate>,
}

/// `whole` times `part` / `parts`, rounded down; nothing of no parts.
pub fn portion(whole: u64, part: u64, parts: u128) -> u64 {
    (u128::from(whole) * u128::from(part) / parts.max(1)) as u64
}
