//! A host's part: it holds the flows that pass paused roots (section 4.4, "cooperation on end-hosts").

use std::sync::Arc;

use fabric::Routes;
use node::link::{ALL_CLASSES, Cause, frame_packet};
use node::{NicControl, Packet};
use units::{FlowId, HostId, NodeId, PortId, Time};

use super::frame::{Frame, RootId};
use node::onward_path::Downstream;

/// Pyrrha in a NIC that obeys PAUSE, RESUME and MERGE for each flow.
///
/// It has no queues: endpoints ask before they send. So a root that has resumed or merged is forgotten at once.
#[derive(node::State)]
pub(super) struct NicPart {
    pub host: HostId,
    /// Its port of the host.
    pub port: PortId,
    /// Classes whose packets are held.
    pub classes: u8,
    pub switches: u32,
    #[state(built("settings"))]
    pub downstream: Downstream,
    /// Paused roots, sorted.
    pub paused: Vec<RootId>,
    #[state(turn("epoch"))]
    pub epoch: u32,
    /// Bytes of waiting intake at which the host nominates itself as a root, and at which it resumes (section 4.4).
    pub pause_bytes: u64,
    pub resume_bytes: u64,
    pub is_root: bool,
}

impl NicControl for NicPart {
    fn frame(&mut self, _: Time, frame: &Packet) {
        match frame.header() {
            Frame::Pause { root, .. } => {
                if let Err(place) = self.paused.binary_search(&root) {
                    self.paused.insert(place, root);
                }
            }
            Frame::Resume { root } | Frame::Merge { old: root, .. } => {
                self.paused.retain(|paused| *paused != root);
                self.epoch += 1;
            }
            Frame::Unassigned { .. } => {}
        }
    }

    fn reset(&mut self, _: bool) {
        self.paused.clear();
        self.epoch += 1;
        self.is_root = false;
    }

    /// The root is the host, named by its first port whichever link packets arrive by.
    fn intake(&mut self, _: Time, bytes: u64) -> Option<Packet> {
        let root = RootId { node: self.switches + self.host.0, port: 0, class: ALL_CLASSES };
        if !self.is_root && bytes > self.pause_bytes {
            self.is_root = true;
            return Some(frame_packet(Frame::Pause { root, distance: 1 }));
        }
        let resumes = self.is_root && bytes <= self.resume_bytes;
        self.is_root &= !resumes;
        resumes.then(|| frame_packet(Frame::Resume { root }))
    }

    fn holds(&self) -> bool {
        !self.paused.is_empty()
    }

    fn held_classes(&self) -> u8 {
        self.classes
    }

    fn lets(&self, transport: u8, flow: FlowId, dst: HostId, class: u8, label: u32) -> bool {
        if self.paused.is_empty() {
            return true;
        }
        let mut packet = Packet::bare(flow, self.host, dst);
        packet.transport = transport;
        if label != 0 {
            packet.set_flow_label(label);
        }
        let paused = |node, port| self.paused.binary_search(&RootId { node, port, class }).is_ok();
        let mut hops = self.downstream.onward(NodeId(self.host.0), self.port, &packet);
        !(paused(self.switches + dst.0, 0) || hops.any(|hop| paused(hop.switch.0, hop.port.0 as u16)))
    }

    fn epoch(&self) -> u32 {
        self.epoch
    }

    fn causes(&self, see: &mut dyn FnMut(Cause)) {
        self.paused.iter().for_each(|root| see(root.cause()));
    }

    fn set_routes(&mut self, routes: &Arc<Routes>) {
        self.downstream.set_routes(routes.clone());
        self.epoch += 1;
    }
}
