//! What a transport is: what it says of itself, and the parts that it has in hosts and switches.

use std::marker::PhantomData;

use node::layout::Layout;
use node::walk::{HeaderWalk, visit_header};
use node::wire::{Malformed, Reader, Writer};
use node::{Agreement, Endpoint, EndpointParams, Header, Packet, QueueDiscipline, SwitchAgent};
use units::{Bytes, Duration, Problem, Rate, SwitchId};

use crate::{About, Guarantee, NetworkView, SwitchRequirements};

/// A transport. Each transport's `Config` implements this.
///
/// There are two checks, since they are asked at two times. [`Scheme::check`] checks the settings alone: the reader of
/// a scenario calls it before there is a network. [`Scheme::check_on`] is of the network that a plan has worked out. A
/// host's part is always built for a network; a scene without one has [`NetworkView::star`].
pub trait Scheme {
    /// Title, source and summary, for `clearway schemes`.
    fn about(&self) -> About;

    /// What it has and does with these settings. It is declared, so that the scheme need not be built to find out.
    fn capabilities(&self) -> Capabilities;

    /// How its packets travel as bytes.
    fn headers(&self) -> &'static dyn HeaderFormat;

    /// Checks what the types of the configuration can't express. Keys of errors are relative to the scheme's table.
    fn check(&self) -> Result<(), Problem>;

    /// Settings that have no effect beside its others: for each, its key and what gives it one. They are no errors.
    fn advice(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// Checks that the network suits the scheme. Keys of errors are relative to the scheme's table.
    fn check_on(&self, _network: &NetworkView) -> Result<(), Problem> {
        Ok(())
    }

    /// The scheme's endpoint in the host at `site`.
    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint>;

    /// What the scheme asks of switches. A setting of the scenario takes precedence.
    fn requirements(&self, site: &EndpointParams) -> SwitchRequirements;

    /// Bytes of headers in its data packets, if its paper states them. `None` uses the scenario's `host.header`.
    fn header_bytes(&self) -> Option<u16> {
        None
    }

    /// The highest rate of a message, if it is below the rate of the host's link.
    fn rate_max(&self) -> Option<Rate> {
        None
    }

    /// What it sends beside the data, for the estimate before a run. Default: an acknowledgement a packet.
    fn control_packets(&self) -> ControlPackets {
        ControlPackets::ACKS
    }

    /// Its timers on this network that retransmit, or give up, when no answer comes. A plan warns if one of them is
    /// shorter than the network's round trips.
    fn timers(&self, _network: &NetworkView) -> Vec<Timer> {
        Vec::new()
    }

    /// The queue that keeps a link busy when its single flow's window is cut at a loss, if that is how it learns of
    /// congestion. A plan warns if a port has less room.
    fn queue_needed(&self, _site: &EndpointParams) -> Option<Bytes> {
        None
    }

    /// The setting that would end a livelock of its packets, as a finding says it: "departures = [\"backoff\"] repeats
    /// them less and less often". By default the shortest of its timers that the scenario has set below
    /// [`NetworkView::loaded_rtt`].
    fn when_stuck(&self, network: &NetworkView) -> Option<String> {
        let short = |timer: &Timer| timer.set && timer.after < network.loaded_rtt();
        let shortest = self.timers(network).into_iter().filter(short).min_by_key(|timer| timer.after)?;
        let Timer { key, after, then, .. } = shortest;
        Some(format!(
            "after {key} = \"{after}\" without an answer it {then}, and a round trip with full buffers takes {}: leave \
             the key out",
            network.loaded_rtt()
        ))
    }

    /// Its part of a switch: all switches have one if [`Capabilities::has_agent`], and none otherwise.
    fn agent(&self, _network: &NetworkView, _switch: SwitchId) -> Option<Box<dyn SwitchAgent>> {
        None
    }

    /// Queues of its own that it brings to a switch, in the place of a flow control's: all switches have them if
    /// [`Capabilities::brings_queueing`], and none otherwise.
    fn queueing(&self, _network: &NetworkView, _switch: SwitchId) -> Option<Box<dyn QueueDiscipline>> {
        None
    }

    /// The bounds that the scheme guarantees for its packets, if [`Capabilities::guarantees`]. The audit checks them.
    fn guarantee(&self, _network: &NetworkView) -> Option<Guarantee> {
        None
    }
}

/// A timer of a transport, on a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Its key as a scenario writes it, relative to the scheme's table: `recovery.irn.rto_low`.
    pub key: &'static str,
    /// How long it runs, before any backoff.
    pub after: Duration,
    /// Whether the scenario sets it. Otherwise it follows from the network.
    pub set: bool,
    /// The action when it runs out, as the end of the sentence "after 16ms without an answer it ...": "sends all that
    /// is not acknowledged again".
    pub then: &'static str,
}

impl Timer {
    /// A timer that is `set` by the scenario, or `derived` from the network.
    pub fn new(key: &'static str, set: Option<Duration>, derived: Duration, then: &'static str) -> Timer {
        Timer { key, after: set.unwrap_or(derived), set: set.is_some(), then }
    }
}

/// What a transport sends beside the data on a network without much loss: counted from its messages, or measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlPackets {
    /// For each data packet, over as many links.
    pub per_packet: f64,
    /// For each message, over as many links.
    pub per_message: f64,
    /// For each message, to every other node over one link each.
    pub broadcasts: f64,
}

impl ControlPackets {
    /// None.
    pub const NONE: ControlPackets = ControlPackets { per_packet: 0.0, per_message: 0.0, broadcasts: 0.0 };
    /// An acknowledgement for each data packet.
    pub const ACKS: ControlPackets = ControlPackets { per_packet: 1.0, ..ControlPackets::NONE };
}

/// What a transport has and does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How its senders learn what the network can carry.
    pub family: Family,
    /// How `clearway compare --all` runs it.
    pub compared: Compared,
    /// What may become of a message that it does not deliver.
    pub undelivered: Undelivered,
    /// Whether it has a part in every switch ([`Scheme::agent`]).
    pub has_agent: bool,
    /// Whether it brings queues of its own to switches ([`Scheme::queueing`]).
    pub brings_queueing: bool,
    /// Whether it guarantees anything of queues and waits ([`Scheme::guarantee`]).
    pub guarantees: bool,
}

impl Capabilities {
    /// A transport without a part in switches that delivers every message, and is compared with its defaults.
    pub const fn of_hosts(family: Family) -> Capabilities {
        Capabilities {
            family,
            compared: Compared::Alone,
            undelivered: Undelivered::Never,
            has_agent: false,
            brings_queueing: false,
            guarantees: false,
        }
    }

    /// Whether it may end a message that it has not delivered, so that an application may submit it again.
    pub fn gives_up(&self) -> bool {
        self.undelivered != Undelivered::Never
    }
}

/// How the senders of a scheme learn what the network can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Before they send: by a match, a token, a grant, a reservation, a rate worked out.
    Proactive,
    /// After they have sent: by loss, marks or delay; or not at all.
    Reactive,
    /// By the link: neighbours hold each other back, so that nothing is lost.
    Lossless,
}

impl Family {
    /// As `clearway schemes` and the comparison call it.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Proactive => "proactive",
            Family::Reactive => "reactive",
            Family::Lossless => "lossless",
        }
    }
}

/// How `clearway compare --all` runs a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Not as an entry of its own: it would do nothing there, or other entries already use it.
    No,
    /// As it is.
    Alone,
    /// A transport over the flow control of this name, or a flow control beneath the transport of this name.
    With(&'static str),
}

/// What a transport does with a message that it cannot deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// The sender never stops trying.
    Never,
    /// The sender gives it up after a long wait.
    GivenUp,
    /// The network may reject it at once because it has no room. The sender may give it up too.
    Rejected,
}

/// How a scheme's packets travel as bytes. It is [`Header`] as a trait object, for code that learns only at run time
/// which scheme a packet belongs to.
pub trait HeaderFormat {
    /// Appends the packet's header as it travels. The content follows it.
    fn emit(&self, packet: &Packet, content: &[u8], to: &mut Writer<'_>);

    /// Reads a header from a wire into `packet`, and leaves its content to be read. Any input may come from a socket:
    /// no panic.
    fn parse(&self, from: &mut Reader<'_>, packet: &mut Packet) -> Result<(), Malformed>;

    /// A link has inverted these bits of a packet. Returns whether the packet travels on, with its header changed
    /// accordingly.
    fn damage(&self, packet: &mut Packet, bits: &[u32]) -> bool;

    /// The layout of these headers as data, for readers of captures.
    fn layout(&self) -> Layout;

    /// Where in its message a data packet's payload begins, in bytes.
    fn payload_offset(&self, packet: &Packet) -> u64;

    /// Whether it is a message by which nodes agree on who may send.
    fn agreement(&self, packet: &Packet) -> Option<Agreement>;

    /// How a walk over the state of a run goes over these headers.
    fn visit(&self) -> HeaderWalk;

    /// What its header says, in the words of the scheme: "Token class 2, phase 7, packet 3".
    fn says(&self, packet: &Packet) -> String;
}

struct Of<H>(PhantomData<fn() -> H>);

impl<H: Header + 'static> HeaderFormat for Of<H> {
    fn emit(&self, packet: &Packet, content: &[u8], to: &mut Writer<'_>) {
        H::emit_with(packet, content, to);
    }

    fn parse(&self, from: &mut Reader<'_>, packet: &mut Packet) -> Result<(), Malformed> {
        H::parse_with(from, packet)
    }

    fn damage(&self, packet: &mut Packet, bits: &[u32]) -> bool {
        H::damage(packet, bits)
    }

    fn layout(&self) -> Layout {
        H::LAYOUT
    }

    fn payload_offset(&self, packet: &Packet) -> u64 {
        packet.header::<H>().payload_offset()
    }

    fn agreement(&self, packet: &Packet) -> Option<Agreement> {
        packet.header::<H>().agreement()
    }

    fn visit(&self) -> HeaderWalk {
        visit_header::<H>
    }

    fn says(&self, packet: &Packet) -> String {
        in_words(&format!("{:?}", packet.header::<H>()))
    }
}

/// A header's `Debug` form as people read it: without the names of types and all brackets but those of lists.
fn in_words(debug: &str) -> String {
    let mut spaced = String::with_capacity(2 * debug.len());
    for sign in debug.chars() {
        match sign {
            '(' | ')' | '{' | '}' | '[' | ']' => spaced.extend([' ', sign, ' ']),
            _ => spaced.push(sign),
        }
    }
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = String::with_capacity(debug.len());
    for (index, token) in tokens.iter().enumerate() {
        // The first is the message's own name.
        let is_type = index > 0 && matches!(tokens.get(index + 1), Some(&("{" | "(")));
        match token.trim_end_matches(':') {
            "," => words.push(','),
            "]" => words.push(']'),
            "(" | ")" | "{" | "}" => {}
            _ if is_type => {}
            word => {
                words.push_str(if words.is_empty() || words.ends_with('[') { "" } else { " " });
                words.push_str(word);
            }
        }
    }
    words
}

/// The form of packets with headers of type `H`.
pub fn headers_of<H: Header + 'static>() -> &'static dyn HeaderFormat {
    &Of::<H>(PhantomData)
}

#[cfg(test)]
mod tests;
