//! The state of a part of a network, written down and read back: see [`units::saved`].
//!
//! It is read over a part that was built from the same scenario and cut alike. Changes of the fabric that have happened
//! are applied first, so that whatever stands behind an `Arc`, such as routes, is what it was; all values are then read
//! over. A part is saved between two events, when no packet is in its carrier.
//!
//! A *fork* is read over a part of another scenario, which is the same up to that time ([`Fork`]). All that comes later
//! is that scenario's: changes of the fabric, the noise of links that were never noisy, messages that still have to
//! start.

use node::packet::flags;
use node::saved::{Damaged, Loader, Saver, Tree};
use node::{Saved, State};
use run::{Plan, Starts};
use units::{FlowId, LinkId, Time};

use crate::links::TIMELINE;
use crate::{Carrier, Driver, LinkRx, Probe};

/// The plans of a run that was saved and of one that goes on from there otherwise.
#[derive(Clone, Copy)]
pub struct Fork<'a> {
    /// Of the run that was saved.
    pub before: &'a Plan,
    /// Of the run that goes on. Up to then it is the same.
    pub after: &'a Plan,
    /// Where other messages start from then on: the number of those that have started or could have, which are the
    /// first of all. All others are the second plan's.
    pub started: Option<usize>,
}

/// Stands before each group of values: a file that goes wrong is noticed there.
const GROUP: u64 = 0x5C;

impl<C: Carrier, P: Probe + State> Driver<C, P> {
    /// Writes its state.
    pub fn save(&self, to: &mut Saver) {
        debug_assert!(self.tied.is_empty() && self.log.is_none(), "it is saved between two events");
        (self.timeline.interval, self.timeline.sample_at, self.timeline.samples).save(to);
        (TIMELINE + 1..self.sources()).for_each(|source| self.links.agenda.get(source).save(to));
        to.number(GROUP);
        self.links.pool.save(to);
        self.came.save(to);
        to.number(GROUP);
        self.links.link_rxs.save(to);
        for noise in self.links.link_rxs.iter().map(|link_rx| link_rx.noise.as_ref().filter(|of| of.begun)) {
            noise.is_some().save(to);
            noise.iter().for_each(|of| of.save(to));
        }
        self.links.link_txs.save(to);
        to.number(GROUP);
        self.switches.save(to);
        to.number(GROUP);
        self.hosts.save(to);
        to.number(GROUP);
        self.pulse.save(to);
        self.probe.save(to);
        (self.packet_hops, self.delivered_bytes, self.events, self.watches_launches).save(to);
        to.number(GROUP);
    }

    /// Reads it over a part in which nothing has happened. All events before `now` had happened when it was saved.
    ///
    /// # Errors
    /// If these bytes are not those of such a part.
    pub fn load(&mut self, from: &mut Loader<'_>, now: Time, fork: Option<Fork<'_>>) -> Result<(), Damaged> {
        while let Some((at, change)) = self.timeline.changes.pop_if(|change| change.0 < now) {
            self.announce(at, &change);
            self.apply(at, change);
        }
        let timeline = Saved::make(from)?;
        (self.timeline.interval, self.timeline.sample_at, self.timeline.samples) = timeline;
        self.links.agenda.set(TIMELINE, self.timeline.next_at());
        for source in TIMELINE + 1..self.sources() {
            let at = Saved::make(from)?;
            self.links.agenda.set(source, at);
        }
        group(from, "the agenda")?;
        self.links.pool.load(from)?;
        self.came.load(from)?;
        group(from, "the packets")?;
        same_length(from, self.links.link_rxs.len(), "links")?;
        self.links.link_rxs.load(from)?;
        for link_rx in &mut self.links.link_rxs {
            match (bool::make(from)?, &mut link_rx.noise) {
                (false, _) => {}
                (true, Some(noise)) => noise.load(from)?,
                (true, None) => return Err(from.damaged("a link is noisy that never is")),
            }
        }
        same_length(from, self.links.link_txs.len(), "links")?;
        self.links.link_txs.load(from)?;
        group(from, "the links")?;
        same_length(from, self.switches.len(), "switches")?;
        self.switches.load(from)?;
        group(from, "the switches")?;
        same_length(from, self.hosts.len(), "hosts")?;
        let starts = fork.and_then(|fork| fork.started);
        let starts = starts.map(|started| (started, self.hosts.iter_mut().map(|of| of.host.take_starts()).collect()));
        self.hosts.load(from)?;
        if let Some((started, starts)) = starts {
            self.start_otherwise(started, starts);
        }
        group(from, "the hosts")?;
        match fork {
            None => self.pulse.load(from)?,
            Some(fork) => self.pulse.load_fork(from, fork, self.hosts.len())?,
        }
        self.probe.load(from)?;
        let counts = Saved::make(from)?;
        (self.packet_hops, self.delivered_bytes, self.events, self.watches_launches) = counts;
        group(from, "the counters")
    }
}

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// From now on hosts start these messages in place of those that are still to start, but for the first `started`.
    fn start_otherwise(&mut self, started: usize, starts: Vec<Starts>) {
        for (index, starts) in starts.into_iter().enumerate() {
            let deadline = self.deadline(index);
            let (host, pending) = (&mut self.hosts[index].host, self.links.agenda.get(deadline));
            let was_a_start = host.starts_at() == pending;
            host.replace_starts(started, starts);
            // A deadline that has moved since it was noted stays where it is, as it does in a run.
            let next = host.next_at();
            self.links.agenda.set(deadline, if was_a_start { next } else { pending.min(next) });
        }
    }

    /// The packets of this part as a person sees them, by slot, with the slot behind each.
    pub fn drawn_packets(&self, plan: &Plan) -> Vec<(u32, Tree)> {
        self.links.pool.drawn(|slot| {
            let packet = &slot.packet;
            let transport = plan.transports.get(usize::from(packet.transport));
            let says = match transport.filter(|_| !packet.has(flags::LINK_FRAME)) {
                Some(transport) => transport.says(packet),
                None if packet.has(flags::LINK_FRAME) => plan.scenario.flow_control.says(packet),
                None => String::new(),
            };
            let fields = [
                ("flow", Tree::Number(packet.flow.0.into())),
                ("from", Tree::Number(packet.src.0.into())),
                ("to", Tree::Number(packet.dst.0.into())),
                ("wire_bytes", Tree::Number(packet.wire_bytes.into())),
                ("payload_bytes", Tree::Number(packet.payload_bytes.into())),
                ("class", Tree::Number(packet.class.into())),
                ("says", Tree::Text(says)),
            ];
            Tree::Fields(fields.map(|(name, value)| (name.to_owned(), value)).into())
        })
    }

    /// The links on which packets of a flow are in flight, once for each packet.
    pub fn in_flight(&self, flow: FlowId) -> Vec<LinkId> {
        let pool = &self.links.pool;
        let on = |link_rx: &LinkRx<C::Receiver>| {
            let packets = link_rx.packets.iter(pool).filter(|&id| pool.get(id).packet.flow == flow).count();
            std::iter::repeat_n(LinkId(link_rx.link), packets)
        };
        self.links.link_rxs.iter().flat_map(on).collect()
    }
}

/// A group of values ends.
fn group(from: &mut Loader<'_>, what: &str) -> Result<(), Damaged> {
    if from.number()? == GROUP { Ok(()) } else { Err(from.damaged(&format!("{what} are those of another network"))) }
}

/// As many follow as there are.
fn same_length(from: &mut Loader<'_>, length: usize, what: &str) -> Result<(), Damaged> {
    let place = from.place();
    if from.count()? != length {
        return Err(from.damaged(&format!("the {what} are those of another network")));
    }
    from.back_to(place);
    Ok(())
}
