//! Per-flow queues: each flow has its own queue at each port and is paused alone.
//!
//! Other schemes approximate this one with a bounded number of queues (Pyrrha, section 2.3 and appendix B; PFQ of R2C2,
//! section 5.2, its ideal of fair sharing). Queues are served by deficit round robin. When a flow's queue exceeds
//! `pause` one-hop bandwidth-delay products, the neighbours that its packets come from pause that flow; below `resume`
//! they resume it. So a flow is paused only because of its own packets downstream: no head-of-line blocking, no
//! deadlock, a fair share of every link.
//!
//! Neither paper gives thresholds. The defaults are those of Pyrrha's own queues, so that the two schemes differ in
//! what they pause and not in when. Deliberately absent: a limit of the number of queues, which makes this an ideal.

use node::link::{Cause, Dequeued, LinkCx, NicControl, QueueDiscipline, QueueView};
use node::pool::{PacketId, Slot};
use node::{Packet, Port};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, FlowId, HostId, PortId, Problem, SwitchId};

use crate::by_flow::ByFlow;
use crate::queue_frame::{FlowFrame, Frame, Name, NicPart};
use contract::link_control::{LinkScheme, LinkView, Shares};
use contract::{About, Compared, HeaderFormat, headers_of};
use node::flow_queues::{FlowQueues, HELD_CLASSES, Order, Taken, push_control};

/// Configuration of per-flow queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queue length above which a flow is paused, in one-hop bandwidth-delay products. Default: 2.
    pub pause: f64,
    /// Queue length at or below which it is resumed, in one-hop bandwidth-delay products. Default: 1.
    pub resume: f64,
    /// Bytes added to both lengths. If the bandwidth-delay product is only a few packets, a queue that resumes without
    /// margin runs empty before the next packet arrives. Default: 0.
    pub margin: Bytes,
}

impl Default for Config {
    fn default() -> Config {
        Config { pause: 2.0, resume: 1.0, margin: Bytes(0) }
    }
}

impl LinkScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Per-flow queues",
            source: "Pyrrha (NSDI 2025), section 2.3; R2C2 (SIGCOMM 2015), section 5.2",
            summary: "Each flow has a queue of its own at each port; the queues are served in turn, and a long one \
                      pauses only its flow.",
            needs: "switches: as many queues a port as there are flows; hosts: NICs with a queue for each flow",
        }
    }

    fn compared(&self) -> Compared {
        Compared::With("rdma")
    }

    fn frames(&self) -> &'static dyn HeaderFormat {
        headers_of::<FlowFrame>()
    }

    fn check(&self) -> Result<(), Problem> {
        if !(self.pause > 0.0 && self.pause <= 1e6) {
            return Err(Problem::new("pause", format!("{} is not between 0 and 1000000 products", self.pause)));
        }
        if !(0.0..=self.pause).contains(&self.resume) {
            return Err(Problem::new("resume", format!("{} is not between 0 and pause, {}", self.resume, self.pause)));
        }
        if self.margin > Bytes(1_000_000_000) {
            return Err(Problem::new("margin", format!("{} is too large; at most 1GB", self.margin)));
        }
        Ok(())
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Box<dyn QueueDiscipline> {
        let ports = view.fabric.ports[view.fabric.switch_node(switch).index()].len();
        let egress = |_| Egress { queues: FlowQueues::new(view.mtu_bytes, Order::InTurn), flows: ByFlow::default() };
        Box::new(SwitchPart {
            config: self.clone(),
            shares: view.shares(switch),
            ports: (0..ports).map(egress).collect(),
            epochs: vec![0; ports],
            pauses: 0,
            resumes: 0,
        })
    }

    fn nic_control(&self, _: &LinkView<'_>, host: HostId, _: PortId) -> Option<Box<dyn NicControl>> {
        Some(Box::new(NicPart::new(Name::Flow, host)))
    }

    /// A packet waits only for packets of its own flow further downstream.
    fn deadlock_free(&self, _: bool) -> bool {
        true
    }

    fn keeps_flows(&self) -> bool {
        true
    }

    fn held_classes(&self) -> u8 {
        HELD_CLASSES
    }
}

#[derive(node::State)]
struct SwitchPart {
    #[state(built("settings"))]
    config: Config,
    #[state(built("settings"))]
    shares: Shares,
    ports: Vec<Egress>,
    /// By port: number of changes of its link's state.
    epochs: Vec<u32>,
    #[state(count)]
    pauses: u64,
    #[state(count)]
    resumes: u64,
}

#[derive(node::State)]
struct Egress {
    queues: FlowQueues,
    flows: ByFlow<Vec<PausedNeighbour>>,
}

/// A neighbour that was told to pause a flow.
#[derive(Clone, Copy, PartialEq, node::State)]
struct PausedNeighbour {
    port: PortId,
    /// The epoch of its port at that time.
    epoch: u32,
}

impl SwitchPart {
    /// The queue length at `out`, for packets that arrive by `into`, that corresponds to `products` bandwidth-delay
    /// products.
    fn limit_bytes(&self, products: f64, into: PortId, out: PortId) -> f64 {
        products * self.shares.bytes(into, out) as f64 + self.config.margin.0 as f64
    }

    /// Whether the neighbour at a port has to pause a flow because of any of the flow's queues here. If packets take
    /// several paths, one queue that has become short must not resume the flow for the others.
    fn holds(&self, flow: FlowId, into: PortId) -> bool {
        let epoch = self.epochs[into.index()];
        let told = |egress: &Egress| {
            egress.flows.of(flow).is_some_and(|told| told.contains(&PausedNeighbour { port: into, epoch }))
        };
        self.ports.iter().any(told)
    }

    /// A packet has been dequeued.
    fn left(&mut self, cx: &mut LinkCx<'_>, out: PortId, taken: &Taken) {
        let Some(slot) = taken.slot else { return };
        let flow = cx.pool.get(taken.id).packet.flow;
        let mut at = 0;
        while let Some(&told) = self.ports[out.index()].flows.noted(slot).get(at) {
            if f64::from(taken.left_bytes) > self.limit_bytes(self.config.resume, told.port, out) {
                at += 1;
                continue;
            }
            self.ports[out.index()].flows.noted(slot).remove(at);
            if told.epoch == self.epochs[told.port.index()] && !self.holds(flow, told.port) {
                self.resumes += 1;
                cx.send(told.port, Frame { queue: flow.0, pause: false });
            }
        }
        let Egress { queues, flows } = &mut self.ports[out.index()];
        flows.tidy(queues, slot);
    }
}

impl QueueDiscipline for SwitchPart {
    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        if let Some(bytes) = push_control(cx, out, id) {
            return bytes;
        }
        let slot = cx.pool.get(id);
        let (flow, into) = (slot.packet.flow, PortId(u32::from(slot.transit.in_port)));
        let Egress { queues, flows } = &mut self.ports[out.index()];
        let queue = flows.slot(flow);
        let bytes = queues.push(cx, out, queue, id);
        if f64::from(bytes) > self.limit_bytes(self.config.pause, into, out) {
            let told = PausedNeighbour { port: into, epoch: self.epochs[into.index()] };
            if !self.holds(flow, into) {
                self.pauses += 1;
                cx.send(into, Frame { queue: flow.0, pause: true });
            }
            let all = self.ports[out.index()].flows.noted(queue);
            match all.iter_mut().find(|known| known.port == into) {
                Some(known) => *known = told,
                None => all.push(told),
            }
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
        let Egress { queues, flows } = &mut self.ports[port.index()];
        flows.frame(queues, cx, port, frame.header());
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
        let epoch = &mut self.epochs[port.index()];
        *epoch = epoch.wrapping_add(1);
        let Egress { queues, flows } = &mut self.ports[port.index()];
        flows.link_changed(queues, cx, port);
    }

    fn queues_max(&self, port: PortId) -> u32 {
        self.ports[port.index()].queues.used_max()
    }

    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        let Egress { queues, flows } = &self.ports[port.index()];
        queues.show(&ports[port.index()], |slot| flows.cause(slot), see);
    }

    fn holds_back(&self, slot: &Slot, _: Cause) -> Option<Cause> {
        Some(Cause::Flow(slot.packet.flow))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("flow_pauses", self.pauses), ("flow_resumes", self.resumes)]
    }
}
