//! R2C2's agent in a node's switch: broadcasts go down their trees, and a node that loses one tells its source (section
//! 3.2).
//!
//! Data are forwarded by their own routes (section 3.5), which any switch does; only routes that are too long for
//! [`Packet::label`] are handled here.

use std::sync::Arc;

use fabric::{Fabric, Routes};
use node::packet::flags;
use node::{AgentCx, Packet, SwitchAgent};
use units::{HostId, PortId};

use super::header::{Batch, FlowState};
use super::network::{Network, Networks};
use super::{BROADCAST_BYTES, Header, route};

#[derive(node::State)]
pub(super) struct SwitchPart {
    fabric: Arc<Fabric>,
    networks: Arc<Networks>,
    network: Arc<Network>,
    counts: Counts,
}

#[derive(Default, node::State)]
#[state(counts)]
struct Counts {
    copies: u64,
    copied_bytes: u64,
    dropped: u64,
    malformed: u64,
}

impl SwitchPart {
    pub fn new(fabric: Arc<Fabric>, networks: Arc<Networks>, network: Arc<Network>) -> SwitchPart {
        SwitchPart { fabric, networks, network, counts: Counts::default() }
    }

    /// Forwards a broadcast: a copy to each child in its tree, and one to each host here except for its source.
    fn spread(&mut self, cx: &mut AgentCx<'_>, packet: &Packet, tree: u8) -> Option<PortId> {
        let children = self.network.children(packet.src, tree, cx.switch);
        self.counts.copies += children.len() as u64;
        self.counts.copied_bytes += children.len() as u64 * u64::from(packet.wire_bytes);
        let hosts = self.network.hosts_of(cx.switch).iter().filter(|host| host.0 != packet.src).map(|host| host.1);
        let mut ports = children.iter().copied().chain(hosts);
        // The original packet goes last.
        let last = ports.next()?;
        for port in ports {
            cx.send(port, *packet);
        }
        Some(last)
    }
}

impl SwitchAgent for SwitchPart {
    fn handle(&mut self, cx: &mut AgentCx<'_>, _: PortId, packet: &mut Packet) -> Option<PortId> {
        let out = match packet.header() {
            Header::Announce(FlowState { tree, .. })
            | Header::Finish(FlowState { tree, .. })
            | Header::Assign(Batch { tree, .. })
                if packet.src.0 < self.fabric.hosts =>
            {
                return self.spread(cx, packet, tree);
            }
            Header::Data(data) if packet.hops < data.rlen => route::port(data.route, packet.hops),
            _ => None,
        };
        let out = out.filter(|out| out.index() < cx.ports.len());
        self.counts.malformed += u64::from(out.is_none());
        out
    }

    fn lost(&mut self, cx: &mut AgentCx<'_>, port: PortId, packet: &Packet) {
        let report_of = match packet.header() {
            Header::Announce(state) | Header::Finish(state) => Header::Dropped(state),
            Header::Assign(batch) => Header::DroppedAssign(batch),
            _ => return,
        };
        // A dead link loses every copy until routes change, and then everything is announced again (section 3.2): only
        // overflow is reported.
        if !cx.ports[port.index()].is_up() {
            return;
        }
        self.counts.dropped += 1;
        // If the report is lost too, nobody is told: a flow that is not announced again in time is forgotten.
        let to: HostId = packet.src;
        let up = |port: &&PortId| cx.ports[port.index()].is_up();
        let Some(&out) = cx.routes.next(cx.switch, to).iter().find(up) else { return };
        let mut report = *packet;
        report.set_header(report_of);
        report.flags = 0;
        report.hops = 0;
        report.wire_bytes = BROADCAST_BYTES;
        // The announced flow's destination is in its header; the field now holds the way back.
        report.dst = to;
        cx.send(out, report);
    }

    fn set_routes(&mut self, _: &mut AgentCx<'_>, routes: &Arc<Routes>) {
        self.network = self.networks.of(&self.fabric, routes);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("broadcast_copies", self.counts.copies),
            ("broadcast_copied_bytes", self.counts.copied_bytes),
            ("broadcasts_dropped", self.counts.dropped),
            ("switch_malformed", self.counts.malformed),
        ]
    }
}

/// Marks a packet as a broadcast.
pub(super) fn broadcast(packet: &mut Packet) {
    packet.flags = flags::ROUTER_ALERT;
}
