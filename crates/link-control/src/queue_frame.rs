//! What neighbours say of single queues, and how a NIC answers.

use std::collections::BTreeSet;

use bytemuck::{Pod, Zeroable};
use node::link::Cause;
use node::packet::Malformed;
use node::{Header, NicControl, Packet};
use units::{FlowId, HostId, Time, mix};

use node::flow_queues::HELD_CLASSES;

/// By what a neighbour's queue is called in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// By the flow, which has one of its own.
    Flow,
    /// By its number. In a NIC, flows have a queue for each of so many virtual flow ids.
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

/// A frame to the node from which packets come: one of its queues pauses, or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Frame {
    /// Which queue: see [`Name`].
    pub queue: u32,
    /// 1 pauses, 0 lets go on.
    pub pause: u32,
}

impl Header for Frame {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.queue.to_be_bytes());
        out.push(self.pause as u8);
    }

    fn parse(bytes: &[u8]) -> Result<(Frame, usize), Malformed> {
        match *bytes {
            [a, b, c, d, pause @ (0 | 1), ..] => {
                Ok((Frame { queue: u32::from_be_bytes([a, b, c, d]), pause: u32::from(pause) }, 5))
            }
            _ => Err(Malformed { what: "pause frame of a queue" }),
        }
    }

    fn payload_offset(&self) -> u64 {
        0
    }
}

/// A NIC with a queue a flow that pauses flows one by one.
pub(crate) struct NicPart {
    name: Name,
    host: HostId,
    paused: BTreeSet<u32>,
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
        if pause == 1 {
            self.paused.insert(queue);
        } else if self.paused.remove(&queue) {
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    fn reset(&mut self) {
        self.paused.clear();
        self.epoch = self.epoch.wrapping_add(1);
    }

    #[inline]
    fn lets(&self, _: u8, flow: FlowId, dst: HostId, _: u32) -> bool {
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
mod tests {
    use node::link::frame_packet;

    use super::*;

    #[test]
    fn a_nic_holds_what_it_is_told_to_and_says_when_to_ask_again() {
        let mut nic = NicPart::new(Name::Flow, HostId(0));
        let tell = |nic: &mut NicPart, queue, pause| nic.frame(Time::ZERO, &frame_packet(Frame { queue, pause }));
        tell(&mut nic, 7, 1);
        assert!(!nic.lets(0, FlowId(7), HostId(1), 0) && nic.lets(0, FlowId(8), HostId(1), 0));
        let before = nic.epoch();
        tell(&mut nic, 8, 0);
        assert_eq!(nic.epoch(), before);
        tell(&mut nic, 7, 0);
        assert!(nic.epoch() != before && nic.lets(0, FlowId(7), HostId(1), 0));
    }

    proptest::proptest! {
        #[test]
        fn frames_survive_the_wire(queue: u32, pause in 0u32..2, noise: Vec<u8>) {
            let frame = Frame { queue, pause };
            let mut bytes = Vec::new();
            frame.emit(&mut bytes);
            proptest::prop_assert_eq!(Frame::parse(&bytes), Ok((frame, 5)));
            let _ = Frame::parse(&noise);
        }

        #[test]
        fn a_virtual_flow_id_is_one_of_them(vfids in 1u16..=32_768, flow: u32, src: u32, dst: u32) {
            proptest::prop_assert!(Name::vfid(vfids, FlowId(flow), HostId(src), HostId(dst)) < vfids);
        }
    }
}
