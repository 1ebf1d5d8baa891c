//! Frames that pause and resume single queues of a neighbour, and how a NIC obeys them.

use std::collections::BTreeSet;
use std::fmt;

use node::layout::{BOOL, Bits, Field, Layout, Message};
use node::link::Cause;
use node::wire::{Malformed, Reader, Writer};
use node::{Header, NicControl, Packet, Walk};
use units::{FlowId, HostId, Time, mix};

use node::flow_queues::HELD_CLASSES;

/// How frames name a neighbour's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// By the flow, which has one of its own.
    Flow,
    /// By its number. In a NIC, flows have a queue for each of this many virtual flow ids.
    Number {
        /// Virtual flow ids.
        vfids: u16,
    },
}

impl Name {
    /// The virtual flow id of packets of a flow from `src` to `dst`: the same at every node (BFC's VFID).
    #[inline]
    pub fn vfid(vfids: u16, flow: FlowId, src: HostId, dst: HostId) -> u16 {
        let addresses = u64::from(src.0) << 32 | u64::from(dst.0);
        let hash = mix(mix(addresses, u64::from(flow.0)), 0x4246_4321) >> 32;
        ((hash * u64::from(vfids)) >> 32) as u16
    }
}

/// A frame to an upstream neighbour: one of its queues is paused or resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub(crate) struct Frame {
    /// Which queue: see [`Name`].
    pub queue: u32,
    /// Whether it pauses.
    pub pause: bool,
}

impl Header for Frame {
    type Packed = [u32; 2];

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> [u32; 2] {
        [self.queue, u32::from(self.pause)]
    }

    #[inline]
    fn unpack([queue, pause]: [u32; 2]) -> Frame {
        Frame { queue, pause: pause == 1 }
    }

    fn emit(self, to: &mut Writer<'_>) {
        to.u32(self.queue);
        to.u8(u8::from(self.pause));
    }

    fn parse(from: &mut Reader<'_>) -> Result<Frame, Malformed> {
        from.begin("pause frame of a queue: shorter than 5 bytes");
        let (queue, pause) = (from.u32()?, from.u8()?);
        if pause > 1 {
            return Err(Malformed { what: "pause frame of a queue: pause is neither 0 nor 1" });
        }
        Ok(Frame { queue, pause: pause == 1 })
    }
}

const LAYOUT: &[Message] = &[Message::new(
    "Frame",
    Bits::u8(4).within(0, 1),
    5,
    &[Field::number("queue", Bits::u32(0)), Field::new("pause", Bits::u8(4), BOOL)],
)];

/// The same, where each flow has a queue of its own: a frame names a flow.
#[derive(Clone, Copy, PartialEq, Eq, node::State)]
pub(crate) struct FlowFrame(#[state(by(visit_flow))] Frame);

impl fmt::Debug for FlowFrame {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

fn visit_flow<G: ?Sized>(frame: &mut Frame, walk: &mut Walk, _: &G) {
    walk.same(frame.pause);
    walk.flow_number(&mut frame.queue);
}

impl Header for FlowFrame {
    type Packed = [u32; 2];

    const LAYOUT: Layout = Frame::LAYOUT;

    fn pack(self) -> [u32; 2] {
        self.0.pack()
    }

    fn unpack(packed: [u32; 2]) -> FlowFrame {
        FlowFrame(Frame::unpack(packed))
    }

    fn emit(self, to: &mut Writer<'_>) {
        self.0.emit(to);
    }

    fn parse(from: &mut Reader<'_>) -> Result<FlowFrame, Malformed> {
        Frame::parse(from).map(FlowFrame)
    }
}

/// A NIC with one queue per flow that pauses flows one by one.
#[derive(node::State)]
pub(crate) struct NicPart {
    #[state(built("settings"))]
    name: Name,
    host: HostId,
    #[state(when(self.name == Name::Flow, flow_number, _))]
    paused: BTreeSet<u32>,
    #[state(turn("epoch"))]
    epoch: u32,
}

impl NicPart {
    pub fn new(name: Name, host: HostId) -> NicPart {
        NicPart { name, host, paused: BTreeSet::new(), epoch: 0 }
    }
}

impl NicControl for NicPart {
    fn frame(&mut self, _: Time, frame: &Packet) {
        let Frame { queue, pause } = frame.header();
        if pause {
            self.paused.insert(queue);
        } else if self.paused.remove(&queue) {
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    fn reset(&mut self, _: bool) {
        self.paused.clear();
        self.epoch = self.epoch.wrapping_add(1);
    }

    #[inline]
    fn lets(&self, _: u8, flow: FlowId, dst: HostId, _: u8, _: u32) -> bool {
        if self.paused.is_empty() {
            return true;
        }
        let queue = match self.name {
            Name::Flow => flow.0,
            Name::Number { vfids } => u32::from(Name::vfid(vfids, flow, self.host, dst)),
        };
        !self.paused.contains(&queue)
    }

    fn held_classes(&self) -> u8 {
        HELD_CLASSES
    }

    fn holds(&self) -> bool {
        !self.paused.is_empty()
    }

    fn causes(&self, see: &mut dyn FnMut(Cause)) {
        let cause = |queue: &u32| match self.name {
            Name::Flow => Cause::Flow(FlowId(*queue)),
            Name::Number { .. } => Cause::Queue(*queue),
        };
        self.paused.iter().map(cause).for_each(see);
    }

    fn epoch(&self) -> u32 {
        self.epoch
    }

    #[inline]
    fn stamp(&mut self, packet: &Packet) -> u16 {
        match self.name {
            Name::Flow => 0,
            Name::Number { vfids } => Name::vfid(vfids, packet.flow, packet.src, packet.dst),
        }
    }
}

#[cfg(test)]
mod tests;
