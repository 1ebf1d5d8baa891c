//! Harmony's part of a switch: reservations of virtual links (sections 3.1 and 4).
//!
//! A rsvp travels from the receiver to the sender and reserves virtual links for data, which travel the other way. For
//! each port, the switch keeps a list of the reservations of the *incoming* link, on which the data arrive. Only rsvps
//! that leave by this port reserve it, so that the switch knows them all. A list has at most as many entries as the
//! link has virtual links. It serves as both UplinkQ and DlinkCounter of Figure 3. The last link of a path, to the
//! receiver, needs no list, since the receiver's slots limit its use.
//!
//! Figure 3 has a FIFO of free virtual links and a counter. We keep a list of reservations for two reasons. A FIFO
//! gives the next free virtual link, where section 3.1 draws one uniformly. And neither FIFO nor counter tells *whose*
//! a virtual link is: a duplicate packet would free the virtual link of another message, and the loss of a packet that
//! frees one would leave it reserved forever. The paper says only that "a small constant amount of state" prevents the
//! latter, which the technical report describes. The cost of the list is K entries a port, where a counter is one
//! number.
//!
//! A reservation is identified by its receiver and by a number that this receiver gave it. So a packet that arrives
//! twice reserves or frees only once. A reservation whose complete or reject was lost expires (soft state, as in RSVP,
//! RFC 2205); expired ones are removed when a rsvp looks for a free virtual link. If a link goes down its reservations
//! stay until then: the link may come up again before the senders notice.
//!
//! Decided here: a rsvp draws uniformly from all free virtual links of the ports on shortest paths, so that a port with
//! two free ones is twice as likely as a port with one ("uniformly randomly chooses a free outgoing virtual link"). A
//! rsvp is refused once it has passed as many switches as the longest shortest path of the fabric without failures:
//! paths around a failure may be longer, and the bounds would not hold there. For the same reason a rsvp does not leave
//! by a port if its data could then reach their next link later than that link's bound assumes (`Bounds::lateness`).
//! This happens where a path around a failure in a fat-tree goes down and up again.

use node::packet::flags;
use node::{AgentCx, Packet, SwitchAgent, Walk};
use units::{FlowId, HostId, PortId, Time};

use super::bounds::{Bounds, PORTS_MAX, PortLateness, SWITCHES_MAX};
use super::header::{Rejected, Rsvp, Slot, slot_name, visit_missing};
use super::{Header, SIGNALS, SLOTS_MAX};

/// Harmony's part of a switch.
#[derive(node::State)]
pub struct SwitchPart {
    #[state(built("settings"))]
    bounds: Bounds,
    hosts: u32,
    /// By port, how late data can be. None if data may go from every port to every other.
    #[state(built("settings"))]
    lateness: Option<Vec<PortLateness>>,
    /// By port: the reservations of the incoming link.
    #[state(each(given(&self.bounds)))]
    ports: Vec<Reservations>,
    counts: Counts,
}

#[derive(Default, node::State)]
#[state(counts)]
struct Counts {
    rsvps: u64,
    refused: u64,
    #[state(same)]
    reclaimed: u64,
    malformed: u64,
}

/// The reservations of one link.
#[derive(Default, node::State)]
#[state(given(Bounds), first(self.held.sort_unstable_by_key(|held| (held.receiver, held.id % SLOTS_MAX, held.id))))]
struct Reservations {
    /// Number of its virtual links.
    links: u32,
    held: Vec<Reservation>,
    /// No reservation expires before this time.
    #[state(anew(self.held.iter().map(|held| held.until).min().unwrap_or(Time::MAX)))]
    oldest: Time,
}

#[derive(node::State)]
#[state(given(Bounds), last(self.visit_hold(walk, given)))]
struct Reservation {
    receiver: HostId,
    #[state(turn_at(self.receiver.0, slot_name(self.id)))]
    id: u32,
    #[state(skip("`visit_hold` visits it"))]
    until: Time,
    /// What its rsvp says: of which flow, whether it is additional, the first byte that is missing, and how many.
    #[state(flow)]
    flow: FlowId,
    additional: bool,
    #[state(skip("`visit_hold` visits it"))]
    offset: u64,
    #[state(skip("`visit_hold` visits it"))]
    missing: u64,
}

impl Reservation {
    /// Goes over how long it is held: the longer, the more is missing of its message.
    fn visit_hold(&mut self, walk: &mut Walk, bounds: &Bounds) {
        if self.additional {
            let mut passed = self.until - bounds.hold(self.missing);
            walk.time(&mut passed);
            visit_missing(walk, &mut self.offset, &mut self.missing);
            self.until = passed + bounds.hold(self.missing);
        } else {
            walk.same((self.offset, self.missing));
            walk.time(&mut self.until);
        }
    }
}

impl Reservations {
    /// Number of free virtual links, after dropping expired reservations.
    fn free(&mut self, now: Time, counts: &mut Counts) -> u32 {
        if self.oldest < now {
            let before = self.held.len();
            self.held.retain(|held| held.until >= now);
            self.oldest = self.held.iter().map(|held| held.until).min().unwrap_or(Time::MAX);
            counts.reclaimed += (before - self.held.len()) as u64;
        }
        self.links.saturating_sub(self.held.len() as u32)
    }

    fn find(&self, receiver: HostId, id: u32) -> Option<usize> {
        self.held.iter().position(|held| held.receiver == receiver && held.id == id)
    }

    fn take(&mut self, reservation: Reservation) {
        debug_assert!(self.held.len() < self.links as usize, "only free ones are taken");
        self.oldest = self.oldest.min(reservation.until);
        self.held.push(reservation);
    }

    fn give_back(&mut self, receiver: HostId, id: u32) {
        if let Some(index) = self.find(receiver, id) {
            self.held.swap_remove(index);
        }
    }
}

impl SwitchPart {
    /// A switch's part in a network with this many hosts.
    pub fn new(bounds: Bounds, hosts: u32) -> SwitchPart {
        SwitchPart { bounds, hosts, lateness: None, ports: Vec::new(), counts: Counts::default() }
    }

    /// Restricts the ports by which data may leave, given the port at which they arrive.
    pub(super) fn with_lateness(self, lateness: Option<Vec<PortLateness>>) -> SwitchPart {
        SwitchPart { lateness, ..self }
    }

    /// By port: the number of virtual links reserved at `now`, and in total. Empty before the first packet.
    pub fn held(&self, now: Time) -> impl Iterator<Item = (u32, u32)> + '_ {
        let held = move |port: &Reservations| port.held.iter().filter(|held| held.until >= now).count() as u32;
        self.ports.iter().map(move |port| (held(port), port.links))
    }

    /// Forwards a rsvp towards the sender by a free virtual link, or returns it to the receiver as a reject.
    fn reserve(&mut self, cx: &mut AgentCx<'_>, in_port: PortId, packet: &mut Packet, rsvp: Rsvp) -> Option<PortId> {
        let (receiver, sender) = (packet.src, packet.dst);
        let hops = u32::from(packet.hops);
        if hops >= SWITCHES_MAX || in_port.index() >= PORTS_MAX.min(cx.ports.len()) || sender.0 >= self.hosts {
            self.counts.malformed += 1;
            return None;
        }
        self.counts.rsvps += 1;
        let here = packet.label << 8 | u64::from(in_port.0);
        let id = rsvp.reservation.id;
        let out = if hops < self.bounds.switches { self.choose(cx, in_port, receiver, sender, id) } else { None };
        let Some(out) = out else {
            return Some(self.refuse(cx, in_port, here, packet, rsvp));
        };
        let port = &mut self.ports[out.index()];
        if port.find(receiver, id).is_none() {
            port.take(Reservation {
                receiver,
                id,
                until: cx.now.saturating_add(self.bounds.hold(rsvp.missing)),
                flow: packet.flow,
                additional: rsvp.slot == Slot::Additional,
                offset: rsvp.offset,
                missing: rsvp.missing,
            });
        }
        // The label is the route of the data, which pass this switch before those that the rsvp has passed. `back` is
        // the route of the rsvp itself, for the receiver's complete.
        packet.label = here;
        packet.set_header(Header::Rsvp(Rsvp { back: rsvp.back | u64::from(out.0) << (8 * hops), ..rsvp }));
        Some(out)
    }

    /// A port with a free virtual link; a duplicate rsvp gets the same port.
    fn choose(
        &mut self,
        cx: &mut AgentCx<'_>,
        in_port: PortId,
        receiver: HostId,
        sender: HostId,
        id: u32,
    ) -> Option<PortId> {
        let (ports, routes, lateness) = (cx.ports, cx.routes, self.lateness.as_deref());
        // Data travel against the rsvp: they arrive at `port` and leave by `in_port`.
        let may_turn =
            |port: PortId| lateness.is_none_or(|of| of[port.index()].arriving <= of[in_port.index()].leaving);
        let candidates = || {
            let next = routes.next(cx.switch, sender).iter().copied();
            next.filter(|&port| port.index() < PORTS_MAX && ports[port.index()].is_up() && may_turn(port))
        };
        let (mut free, mut ports) = (0, 0);
        for port in candidates() {
            ports += 1;
            let reservations = &mut self.ports[port.index()];
            if reservations.find(receiver, id).is_some() {
                return Some(port);
            }
            free += u64::from(reservations.free(cx.now, &mut self.counts));
        }
        if free == 0 {
            return None;
        }
        // Which of the virtual links of one port it is makes no difference.
        let mut chosen = if ports == 1 {
            cx.random.draw_idly();
            0
        } else {
            cx.random.below(free)
        };
        candidates().find(|port| {
            let free = u64::from(self.ports[port.index()].free(cx.now, &mut self.counts));
            let here = chosen < free;
            chosen = chosen.saturating_sub(free);
            here
        })
    }

    /// Turns the rsvp into a reject that returns the way it came, and tells the sender too (section 3.1).
    fn refuse(&mut self, cx: &mut AgentCx<'_>, in_port: PortId, route: u64, packet: &mut Packet, rsvp: Rsvp) -> PortId {
        self.counts.refused += 1;
        packet.class = SIGNALS;
        packet.hops = 0;
        tell(cx, *packet, rsvp);
        // A switch's refusal is never final for the receiver, which may try again.
        let what = if cx.routes.home(packet.dst) == cx.switch { Rejected::Full } else { Rejected::Slot };
        packet.set_header(Header::Reject { reservation: rsvp.reservation, what });
        std::mem::swap(&mut packet.src, &mut packet.dst);
        packet.label = route;
        in_port
    }

    /// Frees the virtual link of a reservation, if it is still reserved. `data_in` is the port at which its data
    /// arrived.
    fn release(&mut self, data_in: PortId, receiver: HostId, id: u32) {
        if let Some(port) = self.ports.get_mut(data_in.index()) {
            port.give_back(receiver, id);
        }
    }
}

/// Tells the sender that its message's rsvp was refused.
fn tell(cx: &mut AgentCx<'_>, mut packet: Packet, rsvp: Rsvp) {
    let candidates = cx.routes.next(cx.switch, packet.dst);
    let working = || candidates.iter().filter(|port| cx.ports[port.index()].is_up());
    let choice = cx.random.below(working().count().max(1) as u64) as usize;
    if let Some(&out) = working().nth(choice) {
        // Whether the slot is additional makes no difference to the sender.
        let conclusive = rsvp.slot == Slot::Main { conclusive: true };
        packet.set_header(Header::Refusal { attempt: rsvp.reservation.attempt, conclusive });
        packet.flags = 0;
        packet.label = 0;
        cx.send(out, packet);
    }
}

impl SwitchAgent for SwitchPart {
    fn handle(&mut self, cx: &mut AgentCx<'_>, in_port: PortId, packet: &mut Packet) -> Option<PortId> {
        if self.ports.is_empty() {
            let links = cx.ports.iter().map(|port| self.bounds.virtual_links(port.rate()));
            let fresh = |links| Reservations { links, held: Vec::new(), oldest: Time::MAX };
            self.ports = links.map(fresh).collect();
        }
        let header: Header = packet.header();
        if let Header::Rsvp(rsvp) = header {
            return self.reserve(cx, in_port, packet, rsvp);
        }
        let out = packet.label.checked_shr(8 * u32::from(packet.hops)).map(|ports| PortId(ports as u32 & 0xFF));
        let out = out.filter(|out| packet.has(flags::SOURCE_ROUTED) && out.index() < cx.ports.len());
        match (header, out) {
            (Header::Complete { reservation, .. } | Header::Reject { reservation, .. }, Some(_)) => {
                self.release(in_port, packet.dst, reservation.id);
            }
            // It travels against the data, which arrive where it leaves.
            (Header::Failure(reservation), Some(out)) => self.release(out, packet.src, reservation.id),
            _ => {
                self.counts.malformed += 1;
                return None;
            }
        }
        out
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("switch_rsvps", self.counts.rsvps),
            ("switch_refused", self.counts.refused),
            ("switch_reclaimed", self.counts.reclaimed),
            ("switch_malformed", self.counts.malformed),
            ("switch_held_at_end", self.ports.iter().map(|port| port.held.len() as u64).sum()),
        ]
    }
}

#[cfg(test)]
mod tests;
