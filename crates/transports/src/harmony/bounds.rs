//! What Harmony guarantees on a given network (Theorem 3.1 for links of unequal rates), and what hosts and switches
//! derive from that: by when a packet must have arrived, and how long a reservation can last.
//!
//! **Why queues are bounded.** A packet waits for a link only while its reservation holds one of the link's n virtual
//! links: data follow the rsvp, and the complete that frees the virtual link follows the last data in the same queue.
//! So at any time the packets that wait for a link belong to at most n reservations. Packets of one reservation leave
//! their source at least a period P = p/(B/K) apart, and a small packet so much later that it never catches up with the
//! one before. Below, a packet's *emission* at a link is when it would begin to leave by that link if it had waited
//! nowhere, q = p/R is its transmission time on a link of rate R, and n q <= P.
//!
//! **In turn** ([`Service::RoundRobin`]): *a packet begins to leave the i-th switch at most i (n - 1) q after its
//! emission*, Theorem 3.1's bound, and so waits at most #H (n - 1) q in all switches together. Proof: of the packets of
//! its reservation up to this one, let m be the last that arrived when none of them was queued. From m's arrival until
//! m begins to leave, each of the at most n - 1 other reservations has at most one turn, since after it the reservation
//! is behind m. The same holds between any two consecutive packets of the reservation from m on. So the l-th packet
//! after m begins to leave at most (n - 1) q + l n q <= (n - 1) q + l P after m's arrival. By induction m arrived at
//! most (i - 1)(n - 1) q after its emission, which was l P or more before that of the l-th packet. The sum
//! is i (n - 1) q. Of the packets that wait at one time, the one served last begins to leave within i (n - 1) q, so
//! that at most i (n - 1) packets wait. Reservations that take a virtual link meanwhile change nothing, since they are
//! served behind these.
//!
//! **In the order of arrival** ([`Service::Fifo`]) the longest wait W for a link follows from J, the longest time that
//! packets can have waited before they arrive there:
//!
//! W = (n - 1) q + max((n - 1) q ⌈J/P⌉, J), and J grows by W at each switch.
//!
//! With n q = P that is 2^(i-1) (n - 1) q at the i-th switch, and (2^#H - 1)(n - 1) q in all together. Proof: let N(t)
//! be the transmission time of the packets in flight, which are emitted by t and not yet sent by this link. A packet
//! that arrives at t waits at most N(t) - q. Let A be the reservations with packets in flight at t (at most n), and c
//! the last packet of any other reservation that the link sent, which arrived at y and was sent by θ.
//!
//! 1. *y <= t - P, or no such c, and the link was busy since t - P.* All packets that it has sent since then were in
//!    flight at t - P or belong to A. A reservation emits one packet within P: N(t) <= N(t - P) + n q - P <= N(t - P).
//! 2. *y > t - P.* The packets in flight at t follow c, so that they were emitted after y - J. The reservations that
//!    had emitted packets by θ are n - 1 at most, for c's held a virtual link until then; each has at most 1 + ⌈J/P⌉
//!    packets. The others, which took a virtual link that c's or another had freed, have one each:
//!    N(t) <= n q + (n - 1) q ⌈J/P⌉.
//! 3. *No such c since the link was last idle, at τ > t - P.* All packets in flight were emitted after τ - J, and t - τ
//!    of them has been sent: N(t) <= n q (1 + (t - τ + J)/P) - (t - τ) <= n q + J.
//!
//! Case 2 is where virtual links are freed and reserved again. Where J is not a multiple of n - 1 packets it adds up to
//! K - 1 packets, and the search of [`adversary`] finds cases for small K in which it does.
//!
//! **What else is in the queue.** First, a packet of a lower class whose transmission has begun. Second, rsvps and
//! completes. A complete that waits for a link belongs to a slot that holds a virtual link of it; a rsvp to a slot that
//! holds one of the opposite direction; and the receiver's complete to a slot that has just held one of the opposite
//! direction. Of each there are at most n at a time. In the order of arrival they are added where they can wait, and
//! their rate is assumed to be within `control_share`; the paper neglects them ("tiny packets"). In turn the credit of
//! [`service`](super::service) enforces that rate: completes use a turn of their slot, and while X bytes of data leave,
//! the others take at most their burst and X c/(1 - c) bytes, where c is `control_share`.
//!
//! **The position of a link.** J of a link is the largest J + W of the links that can directly precede it on a shortest
//! path, or 0 if none can (`position`). Links have n and q of their own. This assumes shortest paths: around a failure
//! a rsvp is refused if its data could arrive at a link later than the link's J. Where links precede each other in
//! cycles, as in a torus, J is unbounded, and *nothing is proven for the order of arrival*. The audit then checks the
//! bound that each link would have as the last one of the longest path. In turn a packet's wait does not depend on how
//! late others are, so that positions do not matter.
//!
//! [`adversary`]: super::adversary

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fabric::Fabric;
use node::EndpointParams;
use units::{Duration, HostId, LinkId, PerByte, Rate};

use super::position::Precedence;
use super::{Config, Service};
use contract::NetworkView;

/// Switches that a source route can name, one byte each.
pub const SWITCHES_MAX: u32 = 8;
/// Ports that a byte can name.
pub const PORTS_MAX: usize = 256;

/// The bounds of one network under one configuration.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// #H: switches on the longest of all shortest paths.
    pub switches: u32,
    /// B: the rate of the slowest host's link.
    pub access_rate: Rate,
    /// The rate of a slot: B/K, less its share of what is reserved for control packets.
    pub slot_rate: Rate,
    /// The longest that a data packet waits in all switches together.
    pub wait: Duration,
    service: Service,
    /// The longest that a data packet waits in all switches before the last one.
    before: Duration,
    /// In the order of arrival, by link: how late packets can arrive there at most. None where nothing is proven.
    late: Option<Arc<[Duration]>>,
    control_share: f64,
    /// The longest time that a link takes to send the bytes of one round (`round_bytes`).
    round: Duration,
    /// The slowest link.
    slowest: Rate,
    k: u32,
    packet_bytes: u64,
    header_bytes: u64,
    data_rtt: Duration,
    control_rtt: Duration,
    delta_admission: Duration,
    attempts: u64,
    per_byte: PerByte,
    /// The longest round trip with a full buffer, in which other packets than data may wait as well.
    loaded_rtt: Duration,
}

/// The parts that all nodes of a run share.
#[derive(Default)]
struct Known {
    precedence: OnceLock<Option<Precedence>>,
    bounds: Mutex<Vec<(Config, EndpointParams, Bounds)>>,
}

impl Bounds {
    /// The bounds of a network.
    pub fn new(config: &Config, network: &NetworkView) -> Bounds {
        let known = network.common.get::<Known>();
        let mut all = known.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = |(of, site, _): &&(Config, EndpointParams, Bounds)| (of, site) == (config, &network.site);
        if let Some((.., bounds)) = all.iter().find(asked) {
            return bounds.clone();
        }
        let (fabric, site) = (&*network.fabric, &network.site);
        let hosts = (0..fabric.hosts).map(|host| fabric.host_rate(HostId(host)));
        let access = hosts.min().unwrap_or(site.nic_rate);
        let queues = fabric.links.iter().filter(|link| fabric.as_switch(link.from).is_some()).map(|link| link.rate);
        let mut rates: Vec<Rate> = queues.collect();
        rates.sort_unstable();
        rates.dedup();
        let loaded_rtt = network.loaded_rtt();
        let bounds = Bounds { loaded_rtt, ..Bounds::among(config, site, access, &rates) };
        let precedence = match config.service {
            Service::Fifo => known.precedence.get_or_init(|| Precedence::new(fabric)).as_ref(),
            Service::RoundRobin => None,
        };
        let bounds = precedence.map_or(bounds.clone(), |precedence| bounds.placed(fabric, precedence));
        all.push((config.clone(), site.clone(), bounds.clone()));
        bounds
    }

    /// The bounds of a network all of whose links are as fast as this host's.
    pub fn uniform(config: &Config, site: &EndpointParams) -> Bounds {
        Bounds::among(config, site, site.nic_rate, &[site.nic_rate])
    }

    /// The bounds that hold if every link is the last one of the longest path.
    fn among(config: &Config, site: &EndpointParams, access_rate: Rate, queues: &[Rate]) -> Bounds {
        let k = u32::from(config.slots);
        let share = (1.0 - config.control_share) / f64::from(k.max(1));
        // At least one bit a second: a rate of 0 would have no period.
        let slot_rate = access_rate.mul_f64(share).max(Rate::from_bps(1));
        let switches = site.data_rtts.iter().map(|of| u32::from(of.0)).max().unwrap_or(1).max(1);
        let bounds = Bounds {
            switches,
            access_rate,
            slot_rate,
            wait: Duration::ZERO,
            service: config.service,
            before: Duration::ZERO,
            late: None,
            round: Duration::ZERO,
            control_share: config.control_share,
            slowest: access_rate,
            k,
            packet_bytes: u64::from(site.mtu_bytes),
            header_bytes: u64::from(site.header_bytes),
            data_rtt: site.data_rtt,
            control_rtt: site.control_rtt,
            delta_admission: config.delta_admission,
            attempts: u64::from(config.attempts),
            per_byte: slot_rate.per_byte(),
            loaded_rtt: Duration::ZERO,
        };
        let slowest = queues.iter().copied().min().unwrap_or(access_rate).min(access_rate);
        let (mut before, mut wait) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..switches {
            let here = queues.iter().map(|&rate| bounds.wait_at(rate, wait)).max().unwrap_or(Duration::ZERO);
            (before, wait) = (wait, sum(wait, here));
        }
        let round = queues.iter().map(|&rate| rate.transmit(bounds.round_bytes(rate))).max().unwrap_or(Duration::ZERO);
        Bounds { before, wait, round: round.min(LONGEST), slowest: slowest.max(Rate::from_bps(1)), ..bounds }
    }

    /// The bounds with each link at its position.
    fn placed(self, fabric: &Fabric, precedence: &Precedence) -> Bounds {
        let late = precedence.lateness(|rate, before| self.wait_at(rate, before));
        let behind = (0..fabric.links.len())
            .map(LinkId::from)
            .filter(|&link| fabric.as_switch(fabric.link(link).from).is_some());
        let behind =
            behind.map(|link| sum(late[link.index()], self.wait_at(fabric.link(link).rate, late[link.index()])));
        let (before, wait) = (late.iter().copied().max(), behind.max());
        let (before, wait) = (before.unwrap_or(Duration::ZERO), wait.unwrap_or(Duration::ZERO));
        Bounds { before, wait, late: Some(late.into()), ..self }
    }

    /// Whether the bounds on queues and waits are proven: in turn always, in the order of arrival where links do not
    /// precede each other in cycles.
    pub fn are_proven(&self) -> bool {
        self.service == Service::RoundRobin || self.late.is_some()
    }

    /// How late packets can arrive at a link at most.
    fn before(&self, link: LinkId) -> Duration {
        self.late.as_ref().map_or(self.before, |late| late[link.index()])
    }

    /// By port of a switch: how late data that arrive there can be, and how late data that leave there may be without
    /// breaking the bounds. Data that can be later than a port allows must not leave by it. None in turn, where
    /// lateness does not matter, and where nothing is proven.
    pub(super) fn lateness(&self, fabric: &Fabric, ports: &[LinkId]) -> Option<Vec<PortLateness>> {
        let late = self.late.as_ref()?;
        let of = |&out: &LinkId| {
            let (into, link) = (Fabric::reverse(out), fabric.link(out));
            let before = late[into.index()];
            let from_host = fabric.as_host(link.to).is_some();
            let arriving = if from_host { Duration::ZERO } else { sum(before, self.wait_at(link.rate, before)) };
            PortLateness { arriving, leaving: late[out.index()] }
        };
        Some(ports.iter().map(of).collect())
    }

    /// The longest that a data packet waits for a link of this rate, if earlier switches have held it up by at most
    /// this long.
    fn wait_at(&self, rate: Rate, before: Duration) -> Duration {
        let others = u64::from(self.virtual_links(rate).saturating_sub(1)).saturating_mul(self.packet_bytes);
        let wait = match self.service {
            Service::RoundRobin => {
                let control = (others as f64 * self.control_per_data()) as u64 + 1 + self.control_burst_bytes(rate);
                rate.transmit(others.saturating_add(self.packet_bytes).saturating_add(control))
            }
            Service::Fifo => {
                let own = others.saturating_add(self.packet_bytes).saturating_add(self.control_bytes(rate));
                sum(rate.transmit(own), bunched(rate.transmit(others), before, self.period(self.packet_bytes)))
            }
        };
        wait.min(LONGEST)
    }

    /// Virtual links of a link of this rate, and slots of a host with such a link: its rate over B/K, rounded down. So
    /// a faster link in the core has more, an oversubscribed one fewer (section 5.2).
    pub fn virtual_links(&self, rate: Rate) -> u32 {
        let links = u128::from(rate.bps()) * u128::from(self.k) / u128::from(self.access_rate.bps().max(1));
        u32::try_from(links).unwrap_or(u32::MAX)
    }

    /// The most bytes of the first class that can wait for a link of this rate: what it sends before the packet that is
    /// served last, and that packet.
    pub fn queue_bytes(&self, link: LinkId, rate: Rate) -> u64 {
        let late = self.before(link);
        let before = match self.service {
            Service::RoundRobin => sum(late, self.wait_at(rate, late)),
            Service::Fifo => self.wait_at(rate, late),
        };
        rate.bytes_in(before).saturating_add(self.packet_bytes)
    }

    /// The least buffer that a switch has for a link of this rate. In the order of arrival the proven bound doubles
    /// from switch to switch, so that on long paths it exceeds common buffers, and only an adversary's traffic comes
    /// near it. The least buffer is then that of Theorem 3.1: one *round*, and for each switch before this one what the
    /// link sends in the longest round of any link.
    pub fn room_bytes(&self, link: LinkId, rate: Rate) -> u64 {
        let proven = self.queue_bytes(link, rate);
        if self.service == Service::RoundRobin {
            return proven;
        }
        let before = self.round.ps().saturating_mul(u64::from(self.switches) - 1).min(LONGEST.ps());
        self.round_bytes(rate).saturating_add(rate.bytes_in(Duration::from_ps(before))).min(proven)
    }

    /// Bytes of one *round* of a link of this rate: a packet of each of its n virtual links, one of a lower class, and
    /// control packets.
    fn round_bytes(&self, rate: Rate) -> u64 {
        (u64::from(self.virtual_links(rate)) + 1) * self.packet_bytes + self.control_bytes(rate)
    }

    /// The longest packet.
    pub fn packet_bytes(&self) -> u64 {
        self.packet_bytes
    }

    /// Bytes of control packets of the first class for each byte of data, if data use all of their share of the link.
    pub fn control_per_data(&self) -> f64 {
        self.control_share / (1.0 - self.control_share)
    }

    /// Bytes of rsvps and of receivers' completes that can wait for a link of this rate at once.
    pub fn control_burst_bytes(&self, rate: Rate) -> u64 {
        2 * u64::from(self.virtual_links(rate)) * self.header_bytes
    }

    /// Bytes of rsvps, and of senders' and receivers' completes, that can wait for a link of this rate.
    fn control_bytes(&self, rate: Rate) -> u64 {
        3 * u64::from(self.virtual_links(rate)) * self.header_bytes
    }

    /// The time from a packet's departure until its slot may send the next one.
    pub fn period(&self, wire_bytes: u64) -> Duration {
        self.per_byte.transmit(wire_bytes as u32)
    }

    /// The extra delay of a packet that is smaller than the one before it in its slot. Each link on the path transmits
    /// it in less time, so that it catches up with the one before, and two packets of a slot must nowhere arrive less
    /// than a period apart.
    pub fn catch_up(&self, before: u64, bytes: u64) -> Duration {
        let gained = self.slowest.transmit(before.saturating_sub(bytes)).ps();
        Duration::from_ps(gained.saturating_mul(u64::from(self.switches)).min(LONGEST.ps()))
    }

    /// How long a packet that is due may wait in its own host, whose link has this rate: for one packet of each other
    /// slot, one of another transport, and control packets. A sender that could not send for longer, since its own link
    /// was down, sends no more in that slot, so that no packet leaves after [`Bounds::hold`].
    pub fn slip(&self, nic: Rate) -> Duration {
        let slots = u64::from(self.virtual_links(nic));
        nic.transmit((slots + 1) * self.packet_bytes + self.control_bytes(nic)).min(LONGEST)
    }

    /// How much later data can arrive than a control packet that left after them.
    pub fn drained(&self) -> Duration {
        self.wait + self.data_rtt.saturating_sub(self.control_rtt)
    }

    /// At a receiver: the longest time from a rsvp's departure to the arrival of the slot's first data, complete or
    /// reject, for a sender whose link has rate B. The sender's slot may have sent a packet of another message just
    /// before.
    pub fn first_data(&self) -> Duration {
        self.round_trip()
            + self.period(self.packet_bytes)
            + self.catch_up(self.packet_bytes, 0)
            + self.slip(self.access_rate)
    }

    /// At a receiver: the longest time from one packet of a slot to the next, for such a sender. The first may have
    /// waited nowhere, and the next as long as possible.
    pub fn next_data(&self) -> Duration {
        self.at_host() + self.wait
    }

    /// At a sender: the time from its request's departure to a rsvp or a reject. The receiver may send its last rsvp
    /// just before the end of delta_admission, and a refusal of that takes a round trip. Requests and rejects have no
    /// virtual links, so that their delay is not bounded: this assumes that they wait as long as data can. A request
    /// that is sent again without need does no harm.
    pub fn answer(&self) -> Duration {
        self.delta_admission + self.control_rtt * 2 + self.wait * 4
    }

    /// At a sender: how long its request waits for an answer, if it has asked so often. As delays of requests are not
    /// bounded, it asks again after twice the time, as RSVP does (RFC 2961, section 5.3), and the last time it waits
    /// for as long as packets may wait in a full buffer: bursts of small messages fill it with requests.
    pub fn answer_to(&self, tries: u8) -> Duration {
        let (shortest, longest) = (self.answer(), self.longest_answer());
        if u64::from(tries) >= self.attempts {
            return longest;
        }
        let times = 1u64.checked_shl(u32::from(tries.saturating_sub(1))).unwrap_or(u64::MAX);
        Duration::from_ps(shortest.ps().saturating_mul(times)).min(longest)
    }

    fn longest_answer(&self) -> Duration {
        self.answer().max(sum(self.delta_admission, self.loaded_rtt))
    }

    /// At a sender: the longest time from the last data's departure to the receiver's complete.
    pub fn completion(&self) -> Duration {
        self.round_trip() + self.slip(self.access_rate)
    }

    /// At a sender: the longest time from the arrival of a rsvp for this many bytes to the receiver's complete (section
    /// 3.3), if nothing fails and the message has one slot throughout. Each packet leaves at most a slip after it is
    /// due, and the next is due a period after that.
    pub fn message_delay(&self, bytes: u64) -> Duration {
        let packets = bytes.div_ceil(self.packet_bytes.saturating_sub(self.header_bytes).max(1));
        let each = sum(self.period(self.packet_bytes), self.slip(self.access_rate));
        let sending = Duration::from_ps(each.ps().saturating_mul(packets));
        // The slot may have sent another message's packet just before.
        let first = sum(self.period(self.packet_bytes), self.catch_up(self.packet_bytes, 0));
        sum(sum(first, sending), self.completion())
    }

    /// The time in which a slot sends this many bytes of a message in full packets.
    pub fn sends(&self, bytes: u64) -> Duration {
        let packets = bytes.div_ceil(self.packet_bytes.saturating_sub(self.header_bytes).max(1));
        Duration::from_ps(self.period(self.packet_bytes).ps().saturating_mul(packets).min(LONGEST.ps()))
    }

    /// At a receiver: the time from a failure to the request that answers it, if neither is lost. Neither has a virtual
    /// link: as for [`answer`](Bounds::answer), this assumes that they wait as long as data can.
    pub fn reaction(&self) -> Duration {
        self.control_rtt + self.wait * 2
    }

    /// At a receiver: how long its sender may still send requests for a message that has ended or failed here.
    pub fn patience(&self) -> Duration {
        let each = sum(self.longest_answer(), self.completion());
        Duration::from_ps(each.ps().saturating_mul(self.attempts).min(LONGEST.ps()))
    }

    /// The longest time for which a sender can use a reservation of this many bytes, from the departure of its rsvp at
    /// the receiver or its passage at a switch. If neither complete nor reject has arrived by then, it was lost. Each
    /// packet leaves at most a slip after it is due; the wait in switches counts once, for the last packet.
    pub fn hold(&self, bytes: u64) -> Duration {
        let packets = bytes / self.packet_bytes.saturating_sub(self.header_bytes).max(1) + 1;
        let sending = self.at_host().ps().saturating_mul(packets);
        Duration::from_ps(self.first_data().ps().saturating_add(sending).min(LONGEST.ps()))
    }

    /// At a sender: the longest time from one packet's departure to the next of its slot.
    fn at_host(&self) -> Duration {
        self.period(self.packet_bytes) + self.catch_up(self.packet_bytes, 0) + self.slip(self.access_rate)
    }

    fn round_trip(&self) -> Duration {
        self.data_rtt + self.wait * 2
    }
}

/// Later than the end of any run, and early enough that a sum of several such times does not overflow.
const LONGEST: Duration = Duration::from_ps(u64::MAX / 1024);

/// In the order of arrival, the part of a wait that comes from earlier waits, which bring packets of a reservation
/// closer together: max((n - 1) q ⌈J/P⌉, J), where `others` is (n - 1) q.
fn bunched(others: Duration, late: Duration, period: Duration) -> Duration {
    let packets = late.ps().div_ceil(period.ps().max(1));
    Duration::from_ps(others.ps().saturating_mul(packets)).max(late).min(LONGEST)
}

fn sum(a: Duration, b: Duration) -> Duration {
    Duration::from_ps(a.ps().saturating_add(b.ps())).min(LONGEST)
}

/// By link, a value that depends on its rate.
pub fn by_link(fabric: &Fabric, of: impl Fn(LinkId, Rate) -> u64) -> Vec<u64> {
    (0..fabric.links.len()).map(LinkId::from).map(|link| of(link, fabric.link(link).rate)).collect()
}

/// How late data can be at a port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortLateness {
    /// Of data that arrive there.
    pub arriving: Duration,
    /// Of data that leave there. The bound on the port's queue assumes no more.
    pub leaving: Duration,
}

#[cfg(test)]
mod tests;
