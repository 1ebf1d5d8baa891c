//! The messages between Pyrrha's switches and hosts.

use bytemuck::Zeroable;
use node::Header;
use node::layout::{Bits, Field, Layout, Message};
use node::link::{ALL_CLASSES, Cause};
use node::packet::CLASSES;
use node::walk::Plain;
use node::wire::{Malformed, Reader, Writer};

/// The id of a congestion root: a port of a node (switch-id:port-id, section 4.4) and a class of its output queue. A
/// host is the node after the switches with its number.
///
/// The paper's switches have one class. Here each class that is isolated has roots of its own: a port where a class is
/// congested is a root of that class, and holds no packet of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, node::State)]
pub struct RootId {
    /// The switch, or the number of switches plus the host.
    pub node: u32,
    /// Its port.
    pub port: u16,
    /// The class, or [`ALL_CLASSES`] in what a host says of itself, since it takes packets in whatever their class.
    pub class: u8,
}

impl RootId {
    /// As samples and audits name it.
    pub const fn cause(self) -> Cause {
        Cause::Root { node: self.node, port: self.port, class: self.class }
    }
}

impl Plain for RootId {
    fn write(&self, to: &mut Vec<u64>) {
        (self.node, self.port, self.class).write(to);
    }
}

/// The content of a control frame (section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Frame {
    /// Hold packets that go through the root, which is `distance` switches from the receiver of this frame.
    Pause {
        /// Where the congestion is.
        root: RootId,
        /// How far away.
        distance: u8,
    },
    /// Let go what goes through it.
    Resume {
        /// Where the congestion was.
        root: RootId,
    },
    /// `old` was no root: its congestion tree is part of that of `new`, which is `distance` switches from the receiver
    /// of this frame.
    Merge {
        /// The false root.
        old: RootId,
        /// The true one, as far as known.
        new: RootId,
        /// How far away the true one is.
        distance: u8,
    },
    /// To the next switch downstream: no queue here belongs to the root any more.
    ///
    /// The paper lists three kinds of frames and has a port know "when the status of all its upstream entities is set
    /// to unassigned" (section 4.3); a frame must tell it.
    Unassigned {
        /// Whose queue it was.
        root: RootId,
    },
}

/// A control frame in a packet.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u8,
    distance: u8,
    port: u16,
    node: u32,
    new_node: u32,
    new_port: u16,
    class: u8,
    blank: u8,
}

const PAUSE: u8 = 1;
const RESUME: u8 = 2;
const MERGE: u8 = 3;
const UNASSIGNED: u8 = 4;

impl Header for Frame {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        let of = |kind, root: RootId| {
            let RootId { node, port, class } = root;
            Packed { kind, node, port, class, ..Packed::zeroed() }
        };
        match self {
            Frame::Pause { root, distance } => Packed { distance, ..of(PAUSE, root) },
            Frame::Resume { root } => of(RESUME, root),
            Frame::Merge { old, new, distance } => {
                Packed { distance, new_node: new.node, new_port: new.port, ..of(MERGE, old) }
            }
            Frame::Unassigned { root } => of(UNASSIGNED, root),
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Frame {
        let root = RootId { node: packed.node, port: packed.port, class: packed.class };
        match packed.kind {
            PAUSE => Frame::Pause { root, distance: packed.distance },
            RESUME => Frame::Resume { root },
            MERGE => {
                let new = RootId { node: packed.new_node, port: packed.new_port, class: packed.class };
                Frame::Merge { old: root, new, distance: packed.distance }
            }
            _ => Frame::Unassigned { root },
        }
    }

    /// Kind, distance, class, and the ids of one root or two of that class, switch before port.
    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, distance, node, port, new_node, new_port, class, .. } = self.pack();
        to.bytes(&[kind, distance, class]);
        to.u32(node);
        to.u16(port);
        if kind == MERGE {
            to.u32(new_node);
            to.u16(new_port);
        }
    }

    fn parse(from: &mut Reader<'_>) -> Result<Frame, Malformed> {
        from.begin("Pyrrha frame: shorter than its kind, distance and class");
        let [kind, distance, class] = from.array()?;
        if !(PAUSE..=UNASSIGNED).contains(&kind) {
            return Err(Malformed { what: "Pyrrha frame type" });
        }
        if class != ALL_CLASSES && usize::from(class) >= CLASSES {
            return Err(Malformed { what: "Pyrrha frame's class" });
        }
        from.begin("Pyrrha frame: it ends within a root's id");
        let (node, port) = (from.u32()?, from.u16()?);
        let (new_node, new_port) = if kind == MERGE { (from.u32()?, from.u16()?) } else { (0, 0) };
        Ok(Frame::unpack(Packed { kind, distance, port, node, new_node, new_port, class, blank: 0 }))
    }
}

const fn message(name: &'static str, kind: u8, bytes: u16, fields: &'static [Field]) -> Message {
    Message::new(name, Bits::u8(0).are(kind as u64), bytes, fields)
}

const NODE: Bits = Bits::u32(3);
const PORT: Field = Field::number("port", Bits::u16(7));
const CLASS: Field = Field::number("class", Bits::u8(2));
const ROOT: Field = Field::number("root node", NODE);

const LAYOUT: &[Message] = &[
    message("Pause", PAUSE, 9, &[ROOT, PORT, CLASS, Field::number("distance", Bits::u8(1))]),
    message("Resume", RESUME, 9, &[ROOT, PORT, CLASS]),
    message(
        "Merge",
        MERGE,
        15,
        &[
            Field::number("old node", NODE),
            PORT,
            CLASS,
            Field::number("new node", Bits::u32(9)),
            Field::number("port", Bits::u16(13)),
            CLASS,
            Field::number("distance", Bits::u8(1)),
        ],
    ),
    message("Unassigned", UNASSIGNED, 9, &[ROOT, PORT, CLASS]),
];

#[cfg(test)]
mod tests;
