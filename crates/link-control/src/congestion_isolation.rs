//! Congestion Isolation (IEEE 802.1Qcz): flows that cause congestion are moved to one queue of low priority at each
//! port.
//!
//! A flow whose packet joins a queue longer than `threshold` is a congesting flow at that port. From then on its
//! packets wait in the congested queue, that of a class which is served after all others. The neighbour that they come
//! from is told by a congestion isolation message (CIM) to do the same, and so on towards the source. PFC pauses
//! classes as usual. Since congesting flows have their own class, pauses affect them first and spare the rest. Within
//! the congested queue flows block each other, which is Pyrrha's criticism (related work).
//!
//! Order is kept: the congested queue sends only while the port's other lossless queues are empty (paused queues
//! included), and a flow returns to its own class only when none of its packets is left in the congested queue. An
//! entry of the table expires `age` after its flow last met a long queue or was named in a CIM.
//!
//! The standard leaves open how congesting flows are detected, when entries end, and how often CIMs are sent; see
//! `docs/schemes/flow-control.md` for the choices made here. Deliberately absent: the layer-3 form of the CIM, and
//! limits of the table.

mod switch;

use bytemuck::{Pod, Zeroable};
use node::layout::{self, Bits, Field, Layout};
use node::wire::{Malformed, Reader, Writer};
use node::{Header, NicControl, Packet, QueueDiscipline};
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, FlowId, HostId, PortId, Problem, SwitchId, Time};

use crate::pfc;
use contract::link_control::{LinkScheme, LinkView};
use contract::{About, Compared, HeaderFormat, headers_of};

/// Configuration of Congestion Isolation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queue length above which the flows that join are congesting, in one-hop bandwidth-delay products. Default: 1.
    pub threshold: f64,
    /// Class of the congested queue. Packets that a transport sends in this class count as congesting. Default: 7.
    pub class: u8,
    /// Lifetime of a table entry after its flow last met a long queue or was named by a neighbour. Default: 100us.
    #[schemars(extend("x-least" = "100ns"))]
    pub age: Duration,
    /// The PFC that runs below it.
    pub pfc: pfc::Config,
}

impl Default for Config {
    fn default() -> Config {
        Config { threshold: 1.0, class: 7, age: Duration::from_us(100), pfc: pfc::Config::default() }
    }
}

impl LinkScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Congestion Isolation (CI)",
            source: "IEEE 802.1Qcz",
            summary: "Flows that cause a long queue move to a second queue, here and upstream, and PFC pauses that \
                      queue first.",
            needs: "switches: PFC, a table of congesting flows, one more queue a port",
        }
    }

    fn compared(&self) -> Compared {
        Compared::With("rdma")
    }

    fn frames(&self) -> &'static dyn HeaderFormat {
        headers_of::<Message>()
    }

    fn check(&self) -> Result<(), Problem> {
        if self.pfc.quanta.is_some() || self.pfc.refresh.is_some() {
            return Err(Problem::new(
                "pfc.quanta",
                "pauses beside isolated flows hold until they are lifted; delete it",
            ));
        }
        if !(0.0..=1e6).contains(&self.threshold) {
            return Err(Problem::new("threshold", format!("{} is not between 0 and 1000000 products", self.threshold)));
        }
        if !(1..=7).contains(&self.class) {
            return Err(Problem::new("class", format!("{} is not one of 1 to 7", self.class)));
        }
        if self.age == Duration::ZERO || self.age > Duration::from_ms(1_000) {
            return Err(Problem::new("age", format!("{} is not between 1ps and 1s", self.age)));
        }
        self.pfc.check().map_err(|problem| problem.under("pfc"))?;
        if !self.pfc.classes.contains(&self.class) {
            let message = format!("must contain {}, the class of the congested queue", self.class);
            return Err(Problem::new("pfc.classes", message));
        }
        Ok(())
    }

    fn check_on(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<(), Problem> {
        pfc::Ingress::check(&self.pfc, view, switch).map_err(|problem| problem.under("pfc"))
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Box<dyn QueueDiscipline> {
        Box::new(switch::SwitchPart::new(self, view, switch))
    }

    fn pools_buffer(&self) -> bool {
        true
    }

    fn held_classes(&self) -> u8 {
        self.pfc.mask()
    }

    fn nic_control(&self, _: &LinkView<'_>, _: HostId, _: PortId) -> Option<Box<dyn NicControl>> {
        Some(Box::new(NicPart {
            class: self.class,
            lossless: self.pfc.mask(),
            paused: 0,
            isolated: FxHashSet::default(),
            epoch: 0,
        }))
    }
}

/// A frame to the node that packets come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
enum Message {
    /// A congestion isolation message: the flow's packets go to the congested queue.
    Isolate(FlowId),
    /// They do so no longer.
    Release(FlowId),
    /// A frame of PFC.
    Pfc(pfc::Frame),
}

/// A frame in a packet. One of PFC lies there as PFC's own do, and speaks of a class at least.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Packed {
    pfc: [u8; 4],
    isolate: u32,
    flow: u32,
}

/// The first field of a congestion isolation message, where a PFC frame has its opcode.
const NO_OPCODE: [u8; 3] = [0; 3];

impl Header for Message {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        match self {
            Message::Isolate(flow) => Packed { pfc: [0; 4], isolate: 1, flow: flow.0 },
            Message::Release(flow) => Packed { pfc: [0; 4], isolate: 0, flow: flow.0 },
            Message::Pfc(frame) => Packed { pfc: frame.pack(), isolate: 0, flow: 0 },
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Message {
        match packed {
            Packed { pfc: [0, ..], isolate: 0, flow } => Message::Release(FlowId(flow)),
            Packed { pfc: [0, ..], flow, .. } => Message::Isolate(FlowId(flow)),
            Packed { pfc, .. } => Message::Pfc(pfc::Frame::unpack(pfc)),
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let (isolate, flow) = match self {
            Message::Isolate(flow) => (1, flow),
            Message::Release(flow) => (0, flow),
            Message::Pfc(frame) => return frame.emit(to),
        };
        to.bytes(&NO_OPCODE);
        to.u8(isolate);
        to.u32(flow.0);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Message, Malformed> {
        if !from.rest().starts_with(&NO_OPCODE) {
            return match pfc::Frame::parse(from)? {
                pfc::Frame { classes: 0, .. } => Err(Malformed { what: "PFC frame of no class" }),
                frame => Ok(Message::Pfc(frame)),
            };
        }
        from.begin("congestion isolation message: shorter than 8 bytes");
        let ([_, _, _, isolate], flow) = (from.array()?, FlowId(from.u32()?));
        match isolate {
            0 => Ok(Message::Release(flow)),
            1 => Ok(Message::Isolate(flow)),
            _ => Err(Malformed { what: "congestion isolation message: kind" }),
        }
    }
}

const FLOW: &[Field] = &[Field::number("", Bits::u32(4))];
const BEGIN: Bits = Bits::u32(0);

const LAYOUT: &[layout::Message] = &[
    layout::Message::new("Release", BEGIN.are(0), 8, FLOW),
    layout::Message::new("Isolate", BEGIN.are(1), 8, FLOW),
    layout::Message::new("Pfc", Bits::u16(0).are(pfc::OPCODE as u64), 20, pfc::FIELDS),
];

/// A NIC that isolates flows as told and obeys PFC.
#[derive(node::State)]
struct NicPart {
    class: u8,
    lossless: u8,
    paused: u8,
    isolated: FxHashSet<FlowId>,
    #[state(turn("epoch"))]
    epoch: u32,
}

impl NicPart {
    fn congested_paused(&self) -> bool {
        self.paused >> self.class & 1 == 1
    }
}

impl NicControl for NicPart {
    fn frame(&mut self, _: Time, frame: &Packet) {
        let held = self.congested_paused();
        let mut freed = false;
        match frame.header() {
            Message::Pfc(frame) => {
                self.paused = frame.applied_to(self.paused);
                freed = held && !self.congested_paused();
            }
            Message::Release(flow) => freed = self.isolated.remove(&flow) && held,
            Message::Isolate(flow) => {
                self.isolated.insert(flow);
            }
        }
        self.epoch = self.epoch.wrapping_add(u32::from(freed));
    }

    fn reset(&mut self, _: bool) {
        self.paused = 0;
        self.isolated.clear();
        self.epoch = self.epoch.wrapping_add(1);
    }

    fn paused_classes(&self) -> u8 {
        self.paused
    }

    fn lets(&self, _: u8, flow: FlowId, _: HostId, _: u8, _: u32) -> bool {
        !(self.congested_paused() && self.isolated.contains(&flow))
    }

    fn held_classes(&self) -> u8 {
        self.lossless
    }

    fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The class in which the packet leaves the NIC.
    fn stamp(&mut self, packet: &Packet) -> u16 {
        let isolated = self.lossless >> packet.class & 1 == 1 && self.isolated.contains(&packet.flow);
        u16::from(if isolated { self.class } else { packet.class })
    }
}

#[cfg(test)]
mod tests;
