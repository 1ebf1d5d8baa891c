//! A switch's part: identifying congestion roots (section 4.1), matching packets (4.2) and isolating them (4.3).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use fabric::Routes;
use node::link::{ALL_CLASSES, Cause, Dequeued, Held, LinkCx, QueueDiscipline, QueueView};
use node::packet::CLASSES;
use node::pool::{PacketId, Slot};
use node::{Packet, Port};
use units::{NodeId, PortId, SwitchId};

use super::egress::{Claim, Egress, Entry};
use super::frame::{Frame, RootId};
use super::state::{Change, State};
use super::upstream::{PortSet, Upstream};
use super::{Config, Departure, Departures};
use node::onward_path::Downstream;

/// Pyrrha in a switch.
#[derive(node::State)]
pub struct SwitchPart {
    #[state(built("settings"))]
    config: Config,
    #[state(built("settings"))]
    departures: Departures,
    /// Whether pauses of isolation queues go by ingress.
    by_ingress: bool,
    /// Whether each neighbour has limits of its own.
    own_limits: bool,
    /// Whether isolation queues hand on together.
    together: bool,
    /// Classes whose packets are isolated.
    isolated: u8,
    id: SwitchId,
    #[state(built("settings"))]
    node: NodeId,
    switches: u32,
    #[state(built("settings"))]
    downstream: Downstream,
    ports: Vec<Egress>,
    /// Whether a port leads to a host.
    to_host: Vec<bool>,
    /// By root and ingress port: how many queues here pause that ingress in the name of the root. Packets to a root's
    /// destinations may take several ports, so the first queue pauses the neighbour and the last one resumes it.
    holding: BTreeMap<(RootId, PortId), u32>,
    #[state(built("it is of the packet that is handled"))]
    path: Vec<RootId>,
    counts: Counts,
}

#[derive(Debug, Default, node::State)]
#[state(counts)]
struct Counts {
    pauses: u64,
    resumes: u64,
    merges: u64,
    nominations: u64,
    abdications: u64,
    secessions: u64,
    ignored: u64,
}

/// A port's place in the fabric, and its parameters.
pub(super) struct PortParams {
    pub id: SwitchId,
    pub node: NodeId,
    pub switches: u32,
    pub downstream: Downstream,
    pub ports: Vec<Egress>,
    pub to_host: Vec<bool>,
}

impl SwitchPart {
    pub(super) fn new(config: &Config, place: PortParams) -> SwitchPart {
        let PortParams { id, node, switches, downstream, ports, to_host } = place;
        SwitchPart {
            isolated: config.mask(),
            config: config.clone(),
            departures: config.departures,
            by_ingress: config.departures.has(Departure::PauseByIngress),
            own_limits: config.departures.has(Departure::LimitsByIngress),
            together: config.departures.has(Departure::HandOnTogether),
            id,
            node,
            switches,
            downstream,
            ports,
            to_host,
            holding: BTreeMap::new(),
            path: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn own_root(&self, port: PortId, class: u8) -> RootId {
        RootId { node: self.id.0, port: port.0 as u16, class }
    }

    /// Finds the roots that a packet which leaves by `out` may meet, nearest first, its destination last.
    fn find_path(&mut self, out: PortId, packet: &Packet) {
        self.path.clear();
        let class = packet.class;
        let hops = self.downstream.onward(self.node, out, packet).filter(|hop| hop.distance > 0);
        self.path.extend(hops.map(|hop| RootId { node: hop.switch.0, port: hop.port.0 as u16, class }));
        self.path.push(RootId { node: self.switches + packet.dst.0, port: 0, class });
    }

    /// Puts a packet into its next queue. `after` is the isolation queue that it comes from, if it was in one.
    fn place(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId, after: Option<u16>) -> u32 {
        let slot = *cx.pool.get(id);
        let isolated = self.isolated >> slot.packet.class & 1 == 1;
        let mut queue = None;
        if isolated && !self.ports[out.index()].table.is_empty() {
            self.find_path(out, &slot.packet);
            queue = self.ports[out.index()].queue_for(self.config.tiers, &self.path, after);
        }
        let ingress = PortId(u32::from(slot.transit.in_port));
        match queue {
            Some(queue) => {
                if after.is_none() {
                    cx.ports[out.index()].hold(cx.now, cx.pool, id);
                }
                self.ports[out.index()].push(cx.pool, queue, id);
                self.press(cx, out, queue, ingress);
                if self.ports[out.index()].merging_bytes(slot.packet.class) > 0 {
                    self.watch_output(cx, out, slot.packet.class, ingress);
                }
                self.ports[out.index()].queues[usize::from(queue)].bytes
            }
            None => {
                cx.pool.get_mut(id).transit.queue = after.map_or(0, |queue| queue + 1);
                let port = &mut cx.ports[out.index()];
                match after {
                    None => port.push(cx.now, cx.pool, id),
                    Some(_) => port.push_held(cx.pool, id),
                }
                if isolated {
                    let Packet { class, wire_bytes, .. } = slot.packet;
                    self.ports[out.index()].count_output(class, slot.transit.in_port, i64::from(wire_bytes));
                    self.watch_output(cx, out, class, ingress);
                }
                cx.ports[out.index()].class_bytes(slot.packet.class)
            }
        }
    }

    /// A packet has joined the output queue of a class: the port may nominate itself, and a root pauses the sender of
    /// the packet.
    fn watch_output(&mut self, cx: &mut LinkCx<'_>, out: PortId, class: u8, ingress: PortId) {
        if self.is_even(out, class) {
            return;
        }
        let root = self.own_root(out, class);
        let port = &mut self.ports[out.index()];
        let Some(place) = port.outputs.iter().position(|output| output.class == class) else { return };
        let output = &port.outputs[place];
        let own = port.limits_of(ingress).pause;
        let pause = if self.own_limits { own } else { port.output_limits(output).pause.max(own) };
        let bytes = output.bytes + port.merging_bytes(class);
        let nominates = output.claim.is_none() && port.nominates && bytes > output.nomination_bytes(pause);
        let output = &mut port.outputs[place];
        if nominates {
            output.claim = Some(Claim::default());
            output.floor_bytes = None;
            self.counts.nominations += 1;
        }
        if let Some(claim) = &mut output.claim
            && bytes > pause
            && claim.upstream.hold(cx, ingress)
        {
            self.pause(cx, ingress, root, 1);
        }
    }

    /// Whether a port leads up and is not above twice the mean of the ports that do, if that keeps it from being a
    /// root.
    fn is_even(&self, out: PortId, class: u8) -> bool {
        if !self.departures.has(Departure::UplinksAboveMean) || !self.ports[out.index()].up {
            return false;
        }
        let bytes = |port: &Egress| port.output(class).map_or(0, |output| u64::from(output.bytes));
        let up = || self.ports.iter().filter(|port| port.up);
        let sum: u64 = up().map(bytes).sum();
        bytes(&self.ports[out.index()]) * up().count() as u64 <= 2 * sum
    }

    /// Bytes that arrived by `ingress` and wait in isolation queues of a root, over all ports.
    fn ingress_bytes(&self, root: RootId, ingress: PortId) -> u32 {
        self.ports.iter().map(|port| port.ingress_bytes(root, ingress)).sum()
    }

    /// A packet has joined an isolation queue. If the queue is too long it pauses the sender of the packet.
    fn press(&mut self, cx: &mut LinkCx<'_>, out: PortId, queue: u16, ingress: PortId) {
        let port = &self.ports[out.index()];
        let bytes = port.queues[usize::from(queue)].bytes;
        if !self.by_ingress && bytes <= port.limits_between().0.pause {
            return;
        }
        for index in 0.. {
            let port = &self.ports[out.index()];
            let Some(root) = port.queues[usize::from(queue)].roots().nth(index) else { break };
            // A shared queue pauses only in the name of those of its roots that the packet passes.
            if !self.path.contains(&root) || !port.presses(queue, root) {
                continue;
            }
            let own = self.by_ingress || self.own_limits;
            let limits = if own { port.limits_of(ingress) } else { port.queue_limits(queue, root) };
            let waiting = if self.by_ingress { self.ingress_bytes(root, ingress) } else { bytes };
            if waiting <= limits.pause {
                continue;
            }
            let entry = self.ports[out.index()].entry(root).expect("a queue's roots are in the table");
            let distance = entry.distance;
            // A false root pauses no neighbour.
            if entry.state != State::SoftMerging && entry.upstream.hold(cx, ingress) {
                self.pause(cx, ingress, root, distance.saturating_add(1));
            }
        }
    }

    /// One more queue or claim pauses what arrives by `ingress` in the name of `root`.
    fn pause(&mut self, cx: &mut LinkCx<'_>, ingress: PortId, root: RootId, distance: u8) {
        let count = self.holding.entry((root, ingress)).or_default();
        *count += 1;
        if *count == 1 {
            self.counts.pauses += 1;
            cx.send(ingress, Frame::Pause { root, distance });
        }
    }

    /// One queue or claim less does so.
    fn resume(&mut self, cx: &mut LinkCx<'_>, ingress: PortId, root: RootId) {
        let Some(count) = self.holding.get_mut(&(root, ingress)) else { return };
        *count -= 1;
        if *count == 0 {
            self.holding.remove(&(root, ingress));
            self.counts.resumes += 1;
            cx.send(ingress, Frame::Resume { root });
            // A NIC sends no frames: its queue for the root counts as unassigned once it has resumed.
            if self.to_host[ingress.index()] {
                self.orphan(ingress, root);
            }
        }
    }

    /// The node at the other end of `ingress` no longer has a queue for a root.
    fn orphan(&mut self, ingress: PortId, root: RootId) {
        if root.node == self.id.0 {
            if let Some(claim) = self.ports[usize::from(root.port)].claim(root.class) {
                claim.upstream.children.remove(ingress);
            }
            return;
        }
        for entry in self.ports.iter_mut().filter_map(|port| port.entry(root)) {
            entry.upstream.children.remove(ingress);
        }
    }

    /// The output queue of a root has become shorter: it may RESUME and in the end secede.
    fn relax_output(&mut self, cx: &mut LinkCx<'_>, out: PortId, class: u8) {
        let root = self.own_root(out, class);
        let port = &self.ports[out.index()];
        let Some(output) = port.output(class) else { return };
        let Some(claim) = &output.claim else { return };
        let bytes = output.bytes + port.merging_bytes(class);
        let short = bytes <= port.output_limits(output).resume;
        let goes: PortSet = match self.own_limits {
            true => claim.upstream.held.iter().filter(|&ingress| bytes <= port.limits_of(ingress).resume).collect(),
            false if short => claim.upstream.held.clone(),
            false => return,
        };
        for ingress in goes.iter() {
            if let Some(claim) = self.ports[out.index()].claim(class) {
                claim.upstream.held.remove(ingress);
            }
            self.resume(cx, ingress, root);
        }
        let leaf = self.ports[out.index()].claim(class).is_some_and(|claim| claim.upstream.children.is_empty());
        if short && leaf {
            self.take_claim(out, class);
            self.counts.secessions += 1;
        }
    }

    fn take_claim(&mut self, out: PortId, class: u8) -> Option<Claim> {
        self.ports[out.index()].outputs.iter_mut().find(|output| output.class == class)?.claim.take()
    }

    /// The queues of a root at a port have become shorter: they may RESUME, and in the end the root leaves the table.
    fn relax(&mut self, cx: &mut LinkCx<'_>, out: PortId, root: RootId) {
        let port = &mut self.ports[out.index()];
        let Some(entry) = port.entry(root) else { return };
        if entry.upstream.held.is_empty() {
            return self.clear(cx, out, root);
        }
        let held = entry.upstream.held.clone();
        let port = &self.ports[out.index()];
        let goes: PortSet = if self.by_ingress {
            let short = |ingress: &PortId| self.ingress_bytes(root, *ingress) <= port.limits_of(*ingress).resume;
            held.iter().filter(short).collect()
        } else if self.own_limits {
            held.iter().filter(|ingress| !port.is_long(root, Some(*ingress))).collect()
        } else if port.is_long(root, None) {
            PortSet::default()
        } else {
            held
        };
        if goes.is_empty() {
            return self.clear(cx, out, root);
        }
        for ingress in goes.iter() {
            self.ports[out.index()].entry(root).expect("just seen").upstream.held.remove(ingress);
            self.resume(cx, ingress, root);
        }
        // The host that has resumed may have been the last child that other ports waited for.
        self.clear_all(cx, root);
    }

    /// The state of a root has changed at a port, and with it perhaps in whose name queues pause.
    fn relax_all(&mut self, cx: &mut LinkCx<'_>, out: PortId) {
        let roots: Vec<RootId> = self.ports[out.index()].table.iter().map(|entry| entry.root).collect();
        roots.into_iter().for_each(|root| self.relax(cx, out, root));
    }

    /// Unassigns the queues of a root at a port, if they are empty and Figure 6 allows it.
    fn clear(&mut self, cx: &mut LinkCx<'_>, out: PortId, root: RootId) {
        let port = &mut self.ports[out.index()];
        if port.root_bytes(root) > 0 {
            return;
        }
        let Some(entry) = port.entry(root) else { return };
        if entry.foretold || entry.state.after(Change::Clear) != State::Unassigned {
            return;
        }
        // Nothing will be held here for the root, so those that a MERGE has told of it need not expect a PAUSE. Nor
        // does this queue wait for them: a MERGE goes up the tree of the false root, and where several roots merge into
        // one, a switch may come to be upstream of itself, so that each would wait for the next.
        let merged = std::mem::take(&mut entry.upstream.merged);
        for child in merged.iter().filter(|child| !self.holding.contains_key(&(root, *child))) {
            entry.upstream.children.remove(child);
        }
        self.dismiss(cx, root, merged);
        let Some(entry) = self.ports[out.index()].entry(root) else { return };
        let leaf = entry.state == State::SoftMerging || entry.upstream.children.is_empty();
        if leaf {
            for ingress in entry.upstream.held.drain() {
                self.resume(cx, ingress, root);
            }
            self.ports[out.index()].remove(root);
            cx.send(out, Frame::Unassigned { root });
        }
    }

    /// Number of roots that ports claim to be or have in their tables.
    fn roots_left(&self) -> u64 {
        let claims = |port: &Egress| port.outputs.iter().filter(|output| output.claim.is_some()).count();
        self.ports.iter().map(|port| (claims(port) + port.table.len()) as u64).sum()
    }

    fn clear_all(&mut self, cx: &mut LinkCx<'_>, root: RootId) {
        for out in (0..self.ports.len()).map(PortId::from) {
            self.clear(cx, out, root);
        }
    }

    /// Tells the children of a root's tree that it merges into that of another root, which is known here by port
    /// `out`. They know the new root from then on, and become children of its queue (section 4.1).
    fn merge(&mut self, cx: &mut LinkCx<'_>, out: PortId, mut children: PortSet, old: RootId, new: RootId) {
        self.holding.retain(|(root, _), _| *root != old);
        let mut known = self.ports[out.index()].entry(new);
        let distance = known.as_ref().map_or(0, |entry| entry.distance).saturating_add(1);
        for child in children.drain() {
            self.counts.merges += 1;
            cx.send(child, Frame::Merge { old, new, distance });
            match &mut known {
                _ if self.to_host[child.index()] => {}
                Some(entry) => {
                    entry.upstream.children.insert(child);
                    entry.upstream.merged.insert(child);
                }
                // The new root is this switch's own, by a loop of routes: it waits for no answer.
                None if self.holding.contains_key(&(new, child)) => {}
                None => cx.send(child, Frame::Resume { root: new }),
            }
        }
    }

    /// Tells these children, which know a root from a MERGE alone, to forget it, unless another queue here holds them.
    fn dismiss(&mut self, cx: &mut LinkCx<'_>, root: RootId, mut merged: PortSet) {
        for child in merged.drain().filter(|child| !self.holding.contains_key(&(root, *child))) {
            cx.send(child, Frame::Resume { root });
        }
    }

    fn hear_pause(&mut self, cx: &mut LinkCx<'_>, out: PortId, root: RootId, distance: u8) {
        if root.node == self.id.0 {
            self.counts.ignored += 1; // a routing loop (section 4.5)
            return;
        }
        let own = self.own_root(out, root.class);
        let port = &mut self.ports[out.index()];
        if let Some(entry) = port.entry(root) {
            entry.state = entry.state.after(Change::Pause);
            entry.foretold = false;
            port.settle_root(root);
            return self.relax_all(cx, out);
        }
        if let Some(mut entry) = port.give_up_foretold() {
            self.dismiss(cx, entry.root, std::mem::take(&mut entry.upstream.merged));
        }
        let port = &mut self.ports[out.index()];
        port.add(self.config.tiers, root, distance, false);
        // A root that is new here explains the congestion of this port. A known root does not: traffic through it is
        // isolated already.
        let merges = self.config.merging && !(port.up && self.departures.has(Departure::MergeAtDownPorts));
        let Some(output) = port.outputs.iter_mut().find(|output| output.class == root.class) else { return };
        if !merges {
            output.claim.iter_mut().for_each(|claim| claim.is_false = true);
        } else if let Some(claim) = output.claim.take() {
            port.set_floor(root.class);
            self.counts.abdications += 1;
            self.merge(cx, out, claim.upstream.children, own, root);
        }
    }

    fn hear(&mut self, cx: &mut LinkCx<'_>, port: PortId, frame: Frame) {
        if let Frame::Pause { root, .. } | Frame::Resume { root } = frame
            && root.class == ALL_CLASSES
        {
            let isolated = self.isolated;
            for class in (0..CLASSES as u8).filter(|class| isolated >> class & 1 == 1) {
                let root = RootId { class, ..root };
                match frame {
                    Frame::Pause { distance, .. } => self.hear_pause(cx, port, root, distance),
                    _ => self.hear_resume(cx, port, root),
                }
            }
            return;
        }
        match frame {
            Frame::Pause { root, distance } => self.hear_pause(cx, port, root, distance),
            Frame::Resume { root } => self.hear_resume(cx, port, root),
            Frame::Merge { old, new, distance } => self.hear_merge(cx, port, old, new, distance),
            Frame::Unassigned { root } => self.hear_unassigned(cx, port, root),
        }
    }

    fn hear_resume(&mut self, cx: &mut LinkCx<'_>, out: PortId, root: RootId) {
        let Some(entry) = self.ports[out.index()].entry(root) else {
            // Nothing is held here for the root. Without an answer the sender of the RESUME would wait for this port
            // for ever.
            return cx.send(out, Frame::Unassigned { root });
        };
        entry.state = entry.state.after(Change::Resume);
        entry.foretold = false;
        self.reopen(cx, out, root);
    }

    /// The queue of `old` drains, and what it held and passes `new` will be held for that root alone. So `new` gets its
    /// queue now, before packets of the old queue reach the switch that holds them, and a later PAUSE for it is no news
    /// that would end a claim of this port. If no queue is free it waits for the PAUSE: sharing one now would hold what
    /// need not wait.
    fn hear_merge(&mut self, cx: &mut LinkCx<'_>, out: PortId, old: RootId, new: RootId, distance: u8) {
        let egress = &mut self.ports[out.index()];
        if new.node == self.id.0 {
            self.counts.ignored += 1; // a routing loop (section 4.5)
        } else if egress.entry(new).is_none() && egress.has_free_queue() {
            egress.add(self.config.tiers, new, distance, true);
        }
        let Some(entry) = self.ports[out.index()].entry(old) else { return };
        entry.state = entry.state.after(Change::Merge);
        entry.foretold = false;
        let mut children = PortSet::default();
        for entry in self.ports.iter_mut().filter_map(|egress| egress.entry(old)) {
            children.add(&std::mem::take(&mut entry.upstream).children);
        }
        self.merge(cx, out, children, old, new);
        self.ports[out.index()].set_floor(old.class);
        self.reopen(cx, out, old);
    }

    /// A root lets its queues at a port go on.
    fn reopen(&mut self, cx: &mut LinkCx<'_>, out: PortId, root: RootId) {
        self.ports[out.index()].settle_root(root);
        self.relax_all(cx, out);
        cx.port_ready(out);
    }

    /// Whether the neighbour at `ingress` knows a root from a MERGE alone.
    fn has_merged(&mut self, root: RootId, ingress: PortId) -> bool {
        self.ports.iter_mut().filter_map(|port| port.entry(root)).any(|entry| entry.upstream.merged.has(ingress))
    }

    /// An upstream node no longer has a queue for the root.
    fn hear_unassigned(&mut self, cx: &mut LinkCx<'_>, ingress: PortId, root: RootId) {
        // The message was sent before the node heard a PAUSE or a MERGE that is in flight, so it does not count.
        if self.holding.contains_key(&(root, ingress)) || self.has_merged(root, ingress) {
            return;
        }
        self.orphan(ingress, root);
        if root.node == self.id.0 {
            return self.relax_output(cx, PortId(u32::from(root.port)), root.class);
        }
        self.clear_all(cx, root);
    }

    fn left_output(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) {
        let Slot { packet: Packet { class, wire_bytes, .. }, transit } = *cx.pool.get(id);
        if self.isolated >> class & 1 == 1 {
            self.ports[out.index()].count_output(class, transit.in_port, -i64::from(wire_bytes));
            self.relax_output(cx, out, class);
        }
    }

    /// The next isolation queue hands a packet on, unless it is the output queue's turn. A more urgent class goes first
    /// wherever it waits.
    fn hand_on_in_turn(&mut self, cx: &mut LinkCx<'_>, out: PortId) {
        loop {
            let port = &cx.ports[out.index()];
            let output = port.most_urgent();
            let urgency = |class: u8| port.urgency(class);
            let egress = &mut self.ports[out.index()];
            let Some((class, in_turn)) = egress.next_class(urgency) else { return };
            let isolated_first = match output.map(|output| urgency(output).cmp(&urgency(class))) {
                Some(Ordering::Less) => false,
                Some(Ordering::Greater) => true,
                equal => egress.isolated_first(equal.is_none(), in_turn),
            };
            if !isolated_first {
                return;
            }
            let before = egress.output_bytes();
            // The packet may have moved on to the queue of a farther root.
            if !self.hand_on(cx, out, Some(class)) || self.ports[out.index()].output_bytes() > before {
                return;
            }
        }
    }

    /// All open isolation queues hand a packet on, once in each packet time.
    fn hand_on_together(&mut self, cx: &mut LinkCx<'_>, out: PortId) {
        while self.ports[out.index()].has_turn() {
            let output_empty = !cx.ports[out.index()].has_sendable();
            for _ in 0..self.ports[out.index()].hand_on(cx.now, output_empty) {
                self.hand_on(cx, out, None);
            }
            // The packets may have moved on to queues of farther roots, with nothing to send yet.
            if !output_empty || cx.ports[out.index()].has_sendable() {
                return;
            }
        }
    }

    /// The isolation queue whose turn it is, of a class or of all, hands its first packet on. False if none may.
    fn hand_on(&mut self, cx: &mut LinkCx<'_>, out: PortId, class: Option<u8>) -> bool {
        let port = &cx.ports[out.index()];
        let urgency = |class: u8| port.urgency(class);
        let of = class.map(|class| (class, &urgency as &dyn Fn(u8) -> u8));
        let Some((queue, id)) = self.ports[out.index()].pop_turn(cx.pool, of) else { return false };
        self.place(cx, out, id, Some(queue));
        self.left_queue(cx, out, queue);
        true
    }

    /// A packet has left an isolation queue.
    fn left_queue(&mut self, cx: &mut LinkCx<'_>, out: PortId, queue: u16) {
        let port = &self.ports[out.index()];
        if !self.by_ingress && port.queues[usize::from(queue)].bytes > port.limits_between().1.resume {
            return; // too long to resume any neighbour
        }
        // When a root leaves the table, shared queues may change for other roots too.
        let mut roots = std::mem::take(&mut self.path);
        roots.clear();
        roots.extend(self.ports[out.index()].queues[usize::from(queue)].roots());
        for &root in &roots {
            self.relax(cx, out, root);
            if self.by_ingress {
                // Other ports count the bytes that this one held.
                let others = (0..self.ports.len()).map(PortId::from).filter(|port| *port != out);
                others.for_each(|port| self.relax(cx, port, root));
            }
        }
        self.path = roots;
    }
}

impl QueueDiscipline for SwitchPart {
    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        self.place(cx, out, id, None)
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        if self.together {
            self.hand_on_together(cx, out);
        } else {
            self.hand_on_in_turn(cx, out);
        }
        let id = cx.ports[out.index()].take_next(cx.pool)?;
        self.left_output(cx, out, id);
        // A packet that came through an isolation queue reports that queue's length to telemetry (section 6.2.2).
        let slot = cx.pool.get(id);
        let left_bytes = match slot.transit.queue.checked_sub(1) {
            Some(queue) => self.ports[out.index()].queues[usize::from(queue)].bytes,
            None => cx.ports[out.index()].class_bytes(slot.packet.class),
        };
        Some(Dequeued { id, left_bytes })
    }

    fn ready(&self, ports: &[Port], out: PortId) -> bool {
        ports[out.index()].has_sendable() || self.ports[out.index()].has_turn()
    }

    fn frame(&mut self, cx: &mut LinkCx<'_>, port: PortId, frame: &Packet) {
        self.hear(cx, port, frame.header());
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        if let Some(id) = cx.ports[port.index()].drain(cx.pool) {
            self.left_output(cx, port, id);
            return Some(id);
        }
        let egress = &mut self.ports[port.index()];
        let id = (0..egress.queues.len() as u16).find_map(|queue| egress.pop(cx.pool, queue))?;
        cx.ports[port.index()].release(cx.pool, id);
        Some(id)
    }

    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId> {
        let id = cx.ports[port.index()].push_out(class, cx.pool)?;
        self.left_output(cx, port, id);
        Some(id)
    }

    fn set_up(&mut self, cx: &mut LinkCx<'_>, port: PortId, _: bool) {
        // As an egress: its own root and the roots behind it no longer pause anyone (appendix A).
        for class in self.ports[port.index()].outputs.iter().map(|output| output.class).collect::<Vec<_>>() {
            if let Some(mut claim) = self.take_claim(port, class) {
                let own = self.own_root(port, class);
                claim.upstream.held.drain().for_each(|ingress| self.resume(cx, ingress, own));
            }
        }
        let roots: Vec<RootId> = self.ports[port.index()].table.iter().map(|entry| entry.root).collect();
        for root in roots {
            let entry = self.ports[port.index()].entry(root).expect("just listed");
            let Upstream { mut held, merged, .. } = std::mem::take(&mut entry.upstream);
            for ingress in held.drain() {
                self.resume(cx, ingress, root);
            }
            self.dismiss(cx, root, merged);
            self.ports[port.index()].remove(root);
        }
        // As an ingress: the other end has heard nothing.
        self.ports.iter_mut().flat_map(Egress::upstreams).for_each(|upstream| upstream.forget(port));
        self.holding.retain(|(_, ingress), _| *ingress != port);
        for out in (0..self.ports.len()).map(PortId::from) {
            for class in self.ports[out.index()].outputs.iter().map(|output| output.class).collect::<Vec<_>>() {
                self.relax_output(cx, out, class);
            }
            let roots: Vec<RootId> = self.ports[out.index()].table.iter().map(|entry| entry.root).collect();
            // The packets lost with the link may have paused a neighbour, if bytes are counted over all ports.
            roots.into_iter().for_each(|root| self.relax(cx, out, root));
        }
        cx.port_ready(port);
    }

    /// Packets that wait follow the old tables and new ones follow the new tables. While both are present, two queues
    /// of one root may wait for each other through their neighbours, and a root may hold packets that do not pass it.
    /// So all congestion trees end at once, waiting packets join the output queues, and ports that are roots under the
    /// new tables nominate themselves again.
    ///
    /// A host that is a root (section 4.4) has heard nothing and would not say so again. Whatever leaves by its port
    /// goes to it under any tables, so there its queue stays as it is; only the tree above ends.
    fn set_routes(&mut self, cx: &mut LinkCx<'_>, routes: &Arc<Routes>) {
        self.downstream.set_routes(routes.clone());
        for (root, ingress) in std::mem::take(&mut self.holding).into_keys() {
            self.counts.resumes += 1;
            cx.send(ingress, Frame::Resume { root });
        }
        for out in (0..self.ports.len()).map(PortId::from) {
            let merged = |entry: &mut Entry| (entry.root, std::mem::take(&mut entry.upstream.merged));
            let merged: Vec<_> = self.ports[out.index()].table.iter_mut().map(merged).collect();
            merged.into_iter().for_each(|(root, merged)| self.dismiss(cx, root, merged));
        }
        for (out, port) in self.ports.iter_mut().enumerate() {
            port.outputs.iter_mut().for_each(|output| output.claim = None);
            if self.to_host[out] {
                port.table.iter_mut().for_each(|entry| entry.upstream = Upstream::default());
                continue;
            }
            while let Some(id) = port.pop_last_to_first(cx.pool) {
                let slot = cx.pool.get_mut(id);
                slot.transit.queue = 0;
                port.count_output(slot.packet.class, slot.transit.in_port, i64::from(slot.packet.wire_bytes));
                cx.ports[out].push_held(cx.pool, id);
            }
            while let Some(entry) = port.table.first() {
                port.remove(entry.root);
            }
            cx.port_ready(PortId::from(out));
        }
        for out in (0..self.ports.len()).map(PortId::from) {
            self.relax_all(cx, out);
        }
    }

    fn queues_max(&self, port: PortId) -> u32 {
        self.ports[port.index()].queues_max
    }

    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        let (own, egress) = (&ports[port.index()], &self.ports[port.index()]);
        // A root stays one until it secedes, even while its queue is empty.
        let is_root = |class: u8| {
            let claim = egress.output(class).and_then(|output| output.claim.as_ref());
            claim.is_some_and(|claim| !claim.is_false)
        };
        for class in (0..CLASSES as u8).filter(|class| own.class_bytes(*class) > 0 || is_root(*class)) {
            let root = is_root(class);
            let cause = if root { self.own_root(port, class).cause() } else { Cause::Class(class) };
            let (bytes, packets) = (own.class_bytes(class), own.class_packets(class));
            see(QueueView { cause, paused: false, root, bytes, packets });
        }
        for (number, queue) in (0u32..).zip(&egress.queues) {
            let shut = |root: &RootId| egress.table.iter().any(|entry| entry.root == *root && !entry.state.open());
            let shut = queue.roots().find(shut);
            let Some(root) = shut.or_else(|| queue.roots().next()) else { continue };
            let cause = if queue.is_shared() { Cause::Queue(number) } else { root.cause() };
            let paused = shut.is_some();
            see(QueueView { cause, paused, root: false, bytes: queue.bytes, packets: queue.packets });
        }
    }

    fn about(&self, frame: &Packet) -> Option<Cause> {
        match frame.header() {
            Frame::Pause { root, .. } | Frame::Resume { root } | Frame::Merge { old: root, .. } => Some(root.cause()),
            Frame::Unassigned { .. } => None,
        }
    }

    fn held(&self, port: PortId, see: &mut dyn FnMut(Held)) {
        let egress = &self.ports[port.index()];
        for queue in egress.queues.iter().filter(|queue| queue.bytes > 0) {
            for root in egress.holders(queue) {
                see(Held { root: root.cause(), shared: queue.is_shared(), packets: queue.packets });
            }
        }
    }

    fn presses(&self, port: PortId, root: Cause, ingress: PortId, see: &mut dyn FnMut(Cause)) {
        let Cause::Root { node, port: of, class } = root else { return };
        let egress = &self.ports[port.index()];
        let queues = (0u16..).zip(&egress.queues).filter(|(_, queue)| queue.serves(RootId { node, port: of, class }));
        for (number, queue) in queues {
            let told = |root: &RootId| egress.presses(number, *root) && self.holding.contains_key(&(*root, ingress));
            queue.roots().filter(told).for_each(|root| see(root.cause()));
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("pyrrha_abdications", self.counts.abdications),
            ("pyrrha_ignored_pauses", self.counts.ignored),
            ("pyrrha_merges", self.counts.merges),
            ("pyrrha_nominations", self.counts.nominations),
            ("pyrrha_pauses", self.counts.pauses),
            ("pyrrha_resumes", self.counts.resumes),
            ("pyrrha_roots_left", self.roots_left()),
            ("pyrrha_secessions", self.counts.secessions),
        ]
    }
}
