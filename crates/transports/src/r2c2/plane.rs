//! A node's control plane: announcements of its flows, and the rates that follow from what it has heard (sections 3.2
//! and 3.3).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use fabric::Routing;
use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId, Rate, Time};

use super::header::{Batch, FlowState};
use super::network::Calculator;
use super::selection::assignments::{self, Assignment, Batches};
use super::switch::broadcast;
use super::view::{Key, Params, View};
use super::{Allocation, BROADCAST_BYTES, Config, Control, Header, UNLIMITED, travel, wire};

#[derive(node::State)]
#[state(unsaved_if(self.config.adapt.is_some(), "in R2C2 with adapt, nodes share chosen routes"))]
#[state(first(walk.refuse_if(self.config.adapt.is_some(), "R2C2 selects routes (adapt)")))]
#[state(first(
    walk.refuse_if(
        self.config.control != Control::Decentralised,
        "R2C2 has a controller, whose packets belong to no flow",
    )
))]
pub(super) struct Plane {
    #[state(built("settings"))]
    pub site: EndpointParams,
    pub config: Arc<Config>,
    /// How often flows are announced, and how long a sender waits for an answer at first.
    pub refresh: Duration,
    /// How long an announcement may be under way.
    pub loaded_rtt: Duration,
    pub patience: Duration,
    /// By traffic class: its settings, if not the defaults.
    #[state(built("settings"))]
    pub allocations: Vec<Option<Allocation>>,
    pub calculator: Arc<Calculator>,
    #[state(given(&(self.site.host, self.silent())))]
    pub view: View,
    /// Control packets to send.
    pub control: VecDeque<Packet>,
    #[state(count)]
    pub broadcasts: u64,
    /// Contents of assignment packets, of all nodes.
    pub batches: Arc<Batches>,
    /// This node's batches: the number of the next, and those that may have to be sent again.
    pub batch_next: u32,
    pub batches_open: BTreeSet<u32>,
    /// Control bytes times the links between switches that they crossed, without copies of broadcasts.
    #[state(count)]
    pub unicast_bytes: u64,
}

/// The content of a broadcast besides its kind.
#[derive(Clone, Copy)]
pub(super) struct News {
    pub flow: FlowId,
    pub key: Key,
    pub params: Params,
    pub version: u8,
    pub tree: u8,
}

impl Plane {
    /// A flow's settings by class, and the rate at which it is produced.
    pub fn params(&self, class: u16) -> (Params, Option<Rate>) {
        let routing = self.config.routing;
        let plain = Params { weight: 1, priority: 0, demand_kbps: UNLIMITED, routing };
        match self.allocations.get(usize::from(class)).and_then(Option::as_ref) {
            None => (plain, None),
            Some(&Allocation { weight, priority, produced_at, routing: own, .. }) => {
                (Params { weight, priority, routing: own.unwrap_or(routing), ..plain }, produced_at)
            }
        }
    }

    /// Forgets flows of other nodes that have not been announced for [`Plane::silent`], and those that `gone` selects.
    pub fn forget(&mut self, now: Time, gone: impl Fn(&Key) -> bool) {
        self.view.forget(self.site.host, now, self.silent(), gone);
    }

    /// A flow of another node is forgotten when it has not been announced for this time: an announcement that waited in
    /// full buffers must have come.
    fn silent(&self) -> Duration {
        (self.refresh * 7 / 2).max(self.refresh + self.loaded_rtt)
    }

    /// Message bytes in a full data packet with Figure 6's header.
    pub fn payload_max(&self) -> u16 {
        self.site.mtu_bytes - wire::DATA_BYTES as u16
    }

    /// Wait after this many tries: doubled each time, up to a factor of 16.
    pub fn patience(&self, tries: u8) -> Duration {
        self.patience * (1 << tries.min(4))
    }

    /// A flow of this node has started, has changed, or still exists. The node's own view has it at once.
    pub fn announce(&mut self, now: Time, news: News) {
        self.view.hear(news.key, news.params, news.version, now);
        self.say(Header::Announce, news);
    }

    /// A flow of this node has finished.
    pub fn finish(&mut self, news: News) {
        self.view.finish(news.key, news.version);
        self.say(Header::Finish, news);
    }

    fn say(&mut self, what: fn(FlowState) -> Header, News { flow, key, params, version, tree }: News) {
        let Params { weight, priority, demand_kbps, routing } = params;
        let Key { dst, number, .. } = key;
        let rp = routing.code();
        let header = what(FlowState { dst, number, version, weight, priority, demand_kbps, tree, rp });
        let mut packet = self.packet(flow, dst, header, BROADCAST_BYTES);
        match self.config.control {
            Control::Decentralised => broadcast(&mut packet),
            Control::Centralised { controller } if HostId(controller) == self.site.host => return,
            Control::Centralised { controller } => packet.dst = HostId(controller),
        }
        self.broadcasts += 1;
        self.control.push_back(packet);
    }

    /// Flows change their protocols: tells all nodes, with up to 300 flows in a packet (section 3.4).
    pub fn assign(&mut self, changed: &[(Key, Routing)], tree: u8) {
        let assignment = |&(key, routing): &(Key, Routing)| {
            self.view.assign(key, routing);
            Some(Assignment { flow: key.identifier()?, protocol: routing.code() })
        };
        let said: Vec<Assignment> = changed.iter().filter_map(assignment).collect();
        for bytes in assignments::pack(&said, usize::from(self.site.mtu_bytes)) {
            let number = self.batch_next;
            self.batch_next = self.batch_next.wrapping_add(1);
            self.batches_open.insert(number);
            let header = Header::Assign(Batch { number, tree });
            // A broadcast has no destination; a host other than its sender stands for all.
            let dst = HostId(u32::from(self.site.host.0 == 0));
            let mut packet = self.packet(FlowId(0), dst, header, bytes.len() as u16);
            broadcast(&mut packet);
            self.batches.put((self.site.transport, self.site.host, number), bytes);
            self.broadcasts += 1;
            self.control.push_back(packet);
        }
    }

    /// The content of a batch of assignments, if it exists.
    pub fn assigned(&self, by: HostId, number: u32) -> Option<Vec<(Key, Routing)>> {
        let bytes = self.batches.get((self.site.transport, by, number))?;
        let one = |of: Assignment| Some((Key::identified(of.flow), Routing::from_code(of.protocol)?));
        assignments::parse(&bytes).ok()?.into_iter().map(one).collect()
    }

    /// A node has dropped this node's assignments: those that still hold are sent again over another tree, once,
    /// however many nodes have dropped them. Returns whether anything was sent.
    pub fn assign_again(&mut self, Batch { number, tree }: Batch) -> bool {
        if !self.batches_open.remove(&number) {
            return false;
        }
        let Some(mut said) = self.assigned(self.site.host, number) else { return false };
        // Another node may have chosen otherwise since, and flows have ended.
        said.retain(|&(key, routing)| self.view.get(key).is_some_and(|known| known.params.routing == routing));
        self.assign(&said, tree.wrapping_add(1) % self.config.trees);
        !said.is_empty()
    }

    /// A packet that follows the switches' tables.
    pub fn packet(&self, flow: FlowId, dst: HostId, header: Header, wire_bytes: u16) -> Packet {
        let mut packet = self.site.control_packet(flow, dst, header);
        packet.wire_bytes = wire_bytes;
        packet.class = self.config.class;
        packet
    }

    /// The same with the size of control packets, queued for sending.
    pub fn send(&mut self, flow: FlowId, dst: HostId, header: Header) {
        let packet = self.packet(flow, dst, header, self.site.header_bytes.max(travel::OWN_BYTES as u16));
        self.control.push_back(packet);
    }
}
