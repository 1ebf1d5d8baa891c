//! BFC in a switch.

use fabric::Tier;
use node::link::{Cause, Dequeued, LinkCx, QueueDiscipline, QueueView};
use node::pool::{PacketId, Slot};
use node::{Packet, Port, Walk};
use units::{Duration, PortId, SwitchId};

use super::assignment::Assignment;
use super::pauses::Pauses;
use super::{Config, Departure, Queues};
use crate::by_flow::ByFlow;
use crate::queue_frame::{Frame, Name};
use contract::link_control::{LinkView, Shares};
use node::flow_queues::{FlowQueues, Order, Taken, push_control};

#[derive(node::State)]
#[state(last(self.visit_ports(walk)))]
pub struct SwitchPart {
    #[state(built("settings"))]
    name: Name,
    #[state(built("settings"))]
    shares: Shares,
    /// By port: how long a flow keeps its queue, in time. It counts round trips of the incoming or outgoing link,
    /// whichever is longer, since a pause must find the flow in the queue that it left from.
    sticky: Vec<Duration>,
    #[state(skip("`visit_ports` visits them"))]
    ports: Vec<Egress>,
    pauses: Pauses,
}

#[derive(node::State)]
#[state(given([Duration]))]
struct Egress {
    queues: FlowQueues,
    flows: Flows,
}

/// The assignment of flows to queues.
#[derive(node::State)]
#[state(given([Duration]))]
enum Flows {
    Physical(Assignment),
    Ideal(ByFlow<()>),
}

impl SwitchPart {
    pub fn new(config: &Config, view: &LinkView<'_>, switch: SwitchId) -> SwitchPart {
        let node = view.fabric.switch_node(switch);
        let count = view.fabric.ports[node.index()].len();
        let sticky = |port| (view.round_trip(node, PortId::from(port)).ps() as f64 * config.sticky) as u64;
        let flows = || match config.queues {
            Queues::Physical(queues) => Flows::Physical(Assignment::new(queues, config.departures)),
            Queues::Ideal => Flows::Ideal(ByFlow::default()),
        };
        let order = if config.departures.has(Departure::LowestFirst) { Order::LowestFirst } else { Order::InTurn };
        let egress = |_| Egress { queues: FlowQueues::new(view.mtu_bytes, order), flows: flows() };
        let to_host = |port: usize| view.fabric.link(view.fabric.ports[node.index()][port]).tier == Tier::ToHost;
        let by_flow = |port| config.departures.has(Departure::HostsByFlow) && to_host(port);
        SwitchPart {
            name: config.name(),
            shares: view.shares(switch),
            sticky: (0..count).map(|port| Duration::from_ps(sticky(port))).collect(),
            ports: (0..count).map(egress).collect(),
            pauses: Pauses::new(config.name(), (0..count).map(by_flow).collect()),
        }
    }

    fn vfid(&self, packet: &Packet) -> u16 {
        match self.name {
            Name::Flow => 0,
            Name::Number { vfids } => Name::vfid(vfids, packet.flow, packet.src, packet.dst),
        }
    }

    /// A packet has been dequeued.
    fn left(&mut self, cx: &mut LinkCx<'_>, out: PortId, taken: &Taken) {
        let Some(queue) = taken.slot else { return };
        self.pauses.left(cx, taken.id);
        let vfid = self.vfid(&cx.pool.get(taken.id).packet);
        let Egress { queues, flows } = &mut self.ports[out.index()];
        match flows {
            Flows::Physical(assignment) => {
                assignment.left(cx.now, vfid, queue, taken.left_bytes == 0);
                cx.pool.get_mut(taken.id).transit.queue = queue as u16;
            }
            Flows::Ideal(flows) => flows.tidy(queues, queue),
        }
    }

    fn visit_ports(&mut self, walk: &mut Walk) {
        for (egress, own) in self.ports.iter_mut().zip(&self.sticky) {
            let mut sticky: Vec<Duration> = self.sticky.iter().map(|of| *of.max(own)).collect();
            sticky.sort_unstable();
            sticky.dedup();
            node::State::visit(egress, walk, &sticky[..]);
        }
    }
}

impl QueueDiscipline for SwitchPart {
    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        if let Some(bytes) = push_control(cx, out, id) {
            return bytes;
        }
        let slot = cx.pool.get(id);
        let (flow, into) = (slot.packet.flow, PortId(u32::from(slot.transit.in_port)));
        let vfid = self.vfid(&slot.packet);
        let Egress { queues, flows } = &mut self.ports[out.index()];
        let queue = match flows {
            Flows::Physical(assignment) => {
                let sticky = self.sticky[into.index()].max(self.sticky[out.index()]);
                assignment.assign(cx.now, vfid, sticky, cx.random)
            }
            Flows::Ideal(flows) => flows.slot(flow),
        };
        let bytes = queues.push(cx, out, queue, id);
        if u64::from(bytes) * u64::from(queues.ready().max(1)) > self.shares.bytes(into, out) {
            self.pauses.count(cx, id);
        }
        bytes
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let taken = self.ports[out.index()].queues.take_next(&mut cx.ports[out.index()], cx.pool)?;
        self.left(cx, out, &taken);
        Some(Dequeued { id: taken.id, left_bytes: taken.left_bytes })
    }

    fn ready(&self, ports: &[Port], out: PortId) -> bool {
        self.ports[out.index()].queues.has_sendable(&ports[out.index()])
    }

    fn frame(&mut self, cx: &mut LinkCx<'_>, port: PortId, frame: &Packet) {
        let frame: Frame = frame.header();
        let Egress { queues, flows } = &mut self.ports[port.index()];
        match flows {
            Flows::Physical(assignment) => {
                if assignment.set_paused(frame.queue, frame.pause) {
                    queues.set_paused(cx, port, frame.queue, frame.pause);
                }
            }
            Flows::Ideal(flows) => flows.frame(queues, cx, port, frame),
        }
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        let taken = self.ports[port.index()].queues.drain(&mut cx.ports[port.index()], cx.pool)?;
        self.left(cx, port, &taken);
        Some(taken.id)
    }

    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId> {
        let taken = self.ports[port.index()].queues.push_out(&mut cx.ports[port.index()], cx.pool, class)?;
        self.left(cx, port, &taken);
        Some(taken.id)
    }

    fn set_up(&mut self, cx: &mut LinkCx<'_>, port: PortId, _: bool) {
        self.pauses.link_changed(port);
        let Egress { queues, flows } = &mut self.ports[port.index()];
        match flows {
            Flows::Physical(assignment) => {
                assignment.resume_all();
                queues.resume_all(cx, port);
            }
            Flows::Ideal(flows) => flows.link_changed(queues, cx, port),
        }
    }

    fn queues_max(&self, port: PortId) -> u32 {
        self.ports[port.index()].queues.used_max()
    }

    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        let Egress { queues, flows } = &self.ports[port.index()];
        let cause = |slot| match flows {
            Flows::Physical(_) => Cause::Queue(slot),
            Flows::Ideal(flows) => flows.cause(slot),
        };
        queues.show(&ports[port.index()], cause, see);
    }

    fn holds_back(&self, slot: &Slot, _: Cause) -> Option<Cause> {
        self.pauses.holds_back(slot)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let sum = |of: fn(&Assignment) -> u64| {
            let physical = |egress: &Egress| match &egress.flows {
                Flows::Physical(assignment) => of(assignment),
                Flows::Ideal(_) => 0,
            };
            self.ports.iter().map(physical).sum()
        };
        vec![
            ("bfc_pauses", self.pauses.pauses),
            ("bfc_resumes", self.pauses.resumes),
            ("bfc_queues_alone", sum(|assignment| assignment.alone)),
            ("bfc_queues_shared", sum(|assignment| assignment.shared)),
        ]
    }
}
