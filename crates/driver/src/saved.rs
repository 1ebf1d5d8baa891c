//! The state of a part of a network, written down and read back: see [`units::saved`].
//!
//! It is read over a part that was built from the same scenario and cut alike. Changes of the fabric that have happened
//! are applied first, so that whatever stands behind an `Arc`, such as routes, is what it was; all values are then read
//! over. A part is saved between two events, when no packet is in its carrier.

use node::packet::flags;
use node::saved::{Damaged, Loader, Saver, Tree};
use node::{Saved, State};
use run::Plan;
use units::{FlowId, LinkId};

use crate::links::TIMELINE;
use crate::{Carrier, Driver, Pipe, Probe};

/// Stands before each group of values: a file that goes wrong is noticed there.
const GROUP: u64 = 0x5C;

impl<C: Carrier, P: Probe + State> Driver<C, P> {
    /// Writes its state.
    pub fn save(&self, to: &mut Saver) {
        debug_assert!(self.tied.is_empty() && self.log.is_none(), "it is saved between two events");
        to.number(self.timeline.changes.len() as u64);
        (self.timeline.interval, self.timeline.sample_at, self.timeline.samples).save(to);
        (TIMELINE..self.sources()).for_each(|source| self.links.agenda.get(source).save(to));
        to.number(GROUP);
        self.links.pool.save(to);
        self.came.save(to);
        to.number(GROUP);
        self.links.pipes.save(to);
        self.links.outlets.save(to);
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

    /// Reads it over a part in which nothing has happened.
    ///
    /// # Errors
    /// If these bytes are not those of such a part.
    pub fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        let changes = from.number()? as usize;
        if changes > self.timeline.changes.len() {
            return Err(from.damaged("more changes of the fabric are to come than the scenario has"));
        }
        while self.timeline.changes.len() > changes {
            let (at, change) = self.timeline.changes.pop().expect("there are more");
            self.announce(at, &change);
            self.apply(at, change);
        }
        let timeline = Saved::make(from)?;
        (self.timeline.interval, self.timeline.sample_at, self.timeline.samples) = timeline;
        for source in TIMELINE..self.sources() {
            let at = Saved::make(from)?;
            self.links.agenda.set(source, at);
        }
        group(from, "the agenda")?;
        self.links.pool.load(from)?;
        self.came.load(from)?;
        group(from, "the packets")?;
        same_length(from, self.links.pipes.len(), "links")?;
        self.links.pipes.load(from)?;
        same_length(from, self.links.outlets.len(), "links")?;
        self.links.outlets.load(from)?;
        group(from, "the links")?;
        same_length(from, self.switches.len(), "switches")?;
        self.switches.load(from)?;
        group(from, "the switches")?;
        same_length(from, self.hosts.len(), "hosts")?;
        self.hosts.load(from)?;
        group(from, "the hosts")?;
        self.pulse.load(from)?;
        self.probe.load(from)?;
        let counts = Saved::make(from)?;
        (self.packet_hops, self.delivered_bytes, self.events, self.watches_launches) = counts;
        group(from, "the counters")
    }
}

impl<C: Carrier, P: Probe> Driver<C, P> {
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
        let on = |pipe: &Pipe<C::Receiver>| {
            let packets = pipe.packets.iter(pool).filter(|&id| pool.get(id).packet.flow == flow).count();
            std::iter::repeat_n(LinkId(pipe.link), packets)
        };
        self.links.pipes.iter().flat_map(on).collect()
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
