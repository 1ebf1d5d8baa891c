//! Congestion Isolation (IEEE 802.1Qcz): flows that cause congestion are put into one queue of low priority at each port.
//!
//! A flow whose packet joins a queue that has grown past `threshold` is a congesting one at that port. Its packets from then on
//! wait in the congested queue, that of a class which is served after all others, and the neighbour that they come from is told in a
//! congestion isolation message (CIM) to do the same, and so on towards the source. PFC works on each class as ever; since
//! congesting flows have one of their own, its pauses fall on them first and spare the rest. Within the congested queue flows block
//! each other, which is what Pyrrha (related work) says against it.
//!
//! Order is kept: the congested queue goes only when the port's other lossless queues are empty, paused ones too, and a flow
//! goes back to its own class only when it has no packet left there. An entry of the table ages out `age` after its flow last met a
//! long queue or was named in a CIM.
//!
//! The standard leaves open how congesting flows are found, when entries end, and how often CIMs are sent; see
//! `docs/schemes/flow-control.md` for what is done here. Absent on purpose: the layer-3 form of the CIM, and limits of the table.

mod switch;

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;
use node::{Header, NicControl, Packet, QueueDiscipline};
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, FlowId, HostId, PortId, Problem, SwitchId, Time};

use crate::pfc;
use contract::About;
use contract::link_control::{LinkScheme, LinkView};

/// What a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Length of a queue from which the flows that join it are congesting ones, in one-hop bandwidth-delay products.
    pub threshold: f64,
    /// Class of the congested queue. What a transport sends in it counts as congesting.
    pub class: u8,
    /// How long after its flow last met a long queue, or was named by a neighbour, an entry of the table holds.
    pub age: Duration,
    /// PFC, below it.
    pub pfc: pfc::Config,
}

impl Default for Config {
    fn default() -> Config {
        Config { threshold: 1.0, class: 7, age: Duration::from_us(100), pfc: pfc::Config::default() }
    }
}

impl LinkScheme for Config {
    type Frame = Message;

    fn emit_frame(frame: &Packet, out: &mut Vec<u8>) {
        match Message::of(frame) {
            Some(message) => message.emit(out),
            None => frame.header::<pfc::Frame>().emit(out),
        }
    }

    fn parse_frame(bytes: &[u8], frame: &mut Packet) -> Result<usize, Malformed> {
        if let Ok((message, taken)) = Message::parse(bytes) {
            frame.set_header(message);
            return Ok(taken);
        }
        let (header, taken) = pfc::Frame::parse(bytes)?;
        frame.set_header(header);
        Ok(taken)
    }

    const ABOUT: About = About {
        title: "Congestion Isolation (CI)",
        source: "IEEE 802.1Qcz",
        summary: "Flows that meet a long queue wait in a queue apart, here and upstream; PFC pauses that first.",
        needs: "PFC, a table of congesting flows and one more queue a port",
    };

    fn check(&self) -> Result<(), Problem> {
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
            let message = format!("lacks {}, the class of the congested queue", self.class);
            return Err(Problem::new("pfc.classes", message));
        }
        Ok(())
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<Box<dyn QueueDiscipline>, Problem> {
        let part = switch::SwitchPart::new(self, view, switch).map_err(|problem| problem.under("pfc"))?;
        Ok(Box::new(part))
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

/// A congestion isolation message to the node that packets of a flow come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Message {
    /// Where a PFC frame says which classes it speaks of; 0 here, which no PFC frame has.
    no_classes: u16,
    /// 1 isolates the flow, 0 ends that.
    isolate: u16,
    flow: u32,
}

impl Message {
    fn new(flow: FlowId, isolate: bool) -> Message {
        Message { no_classes: 0, isolate: u16::from(isolate), flow: flow.0 }
    }

    /// The frame as a message, if it is none of PFC.
    fn of(frame: &Packet) -> Option<Message> {
        let message: Message = frame.header();
        (message.no_classes.to_ne_bytes()[0] == 0).then_some(message)
    }
}

impl Header for Message {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend([0, 0, 0, self.isolate as u8]);
        out.extend(self.flow.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Message, usize), Malformed> {
        match *bytes {
            [0, 0, 0, isolate @ (0 | 1), a, b, c, d, ..] => {
                Ok((Message::new(FlowId(u32::from_be_bytes([a, b, c, d])), isolate == 1), 8))
            }
            _ => Err(Malformed { what: "congestion isolation message" }),
        }
    }

    fn payload_offset(&self) -> u64 {
        0
    }
}

/// A NIC that isolates flows as it is told, and answers PFC.
struct NicPart {
    class: u8,
    lossless: u8,
    paused: u8,
    isolated: FxHashSet<FlowId>,
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
        match Message::of(frame) {
            None => {
                self.paused = frame.header::<pfc::Frame>().applied_to(self.paused);
                freed = held && !self.congested_paused();
            }
            Some(Message { isolate: 0, flow, .. }) => freed = self.isolated.remove(&FlowId(flow)) && held,
            Some(Message { flow, .. }) => {
                self.isolated.insert(FlowId(flow));
            }
        }
        self.epoch = self.epoch.wrapping_add(u32::from(freed));
    }

    fn reset(&mut self) {
        self.paused = 0;
        self.isolated.clear();
        self.epoch = self.epoch.wrapping_add(1);
    }

    fn paused_classes(&self) -> u8 {
        self.paused
    }

    fn lets(&self, _: u8, flow: FlowId, _: HostId, _: u32) -> bool {
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
mod tests {
    use node::link::frame_packet;

    use super::*;

    #[test]
    fn a_nic_holds_isolated_flows_while_their_class_is_paused() {
        let mut nic = NicPart { class: 7, lossless: !1, paused: 0, isolated: FxHashSet::default(), epoch: 0 };
        let lets = |nic: &NicPart| [3, 4].map(|flow| nic.lets(0, FlowId(flow), HostId(1), 0));
        nic.frame(Time::ZERO, &frame_packet(Message::new(FlowId(3), true)));
        assert_eq!(lets(&nic), [true, true]);
        nic.frame(Time::ZERO, &frame_packet(pfc::Frame { classes: 1 << 7, pause: 1 << 7 }));
        assert_eq!(lets(&nic), [false, true]);
        let before = nic.epoch();
        nic.frame(Time::ZERO, &frame_packet(Message::new(FlowId(3), false)));
        assert!(nic.epoch() != before && lets(&nic) == [true, true] && nic.paused_classes() == 1 << 7);
    }

    proptest::proptest! {
        #[test]
        fn messages_survive_the_wire(flow: u32, isolate: bool, noise: Vec<u8>) {
            let message = Message::new(FlowId(flow), isolate);
            let mut bytes = Vec::new();
            message.emit(&mut bytes);
            proptest::prop_assert_eq!(Message::parse(&bytes), Ok((message, 8)));
            let _ = Message::parse(&noise);
        }
    }
}
