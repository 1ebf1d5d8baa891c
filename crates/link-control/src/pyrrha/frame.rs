//! What Pyrrha's switches and hosts say to each other.

use node::Header;
use node::link::Cause;
use node::packet::Malformed;

/// The id of a congestion root: a port of a node (switch-id:port-id, section 4.4). A host is the node after the
/// switches with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootId {
    /// The switch, or the number of switches plus the host.
    pub node: u32,
    /// Its port.
    pub port: u16,
}

impl RootId {
    /// As samples and audits name it.
    pub const fn cause(self) -> Cause {
        Cause::Root { node: self.node, port: self.port }
    }
}

/// What a control frame says (section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Say {
    /// Hold what goes through the root, which is `distance` switches from whoever hears this.
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
    /// `old` was no root: its congestion tree is part of that of `new`.
    Merge {
        /// The false root.
        old: RootId,
        /// The true one, as far as known.
        new: RootId,
    },
    /// To the next switch downstream: no queue here belongs to the root any more.
    ///
    /// The paper lists three kinds of frames and has a port know "when the status of all its upstream entities is set
    /// to unassigned" (section 4.3); somebody must tell it.
    Unassigned {
        /// Whose queue it was.
        root: RootId,
    },
}

/// A control frame in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Frame {
    kind: u8,
    distance: u8,
    port: u16,
    node: u32,
    new_node: u32,
    new_port: u16,
    blank: u16,
}

const PAUSE: u8 = 1;
const RESUME: u8 = 2;
const MERGE: u8 = 3;
const UNASSIGNED: u8 = 4;

impl From<Say> for Frame {
    fn from(say: Say) -> Frame {
        let of = |kind, root: RootId| Frame { kind, node: root.node, port: root.port, ..bytemuck::Zeroable::zeroed() };
        match say {
            Say::Pause { root, distance } => Frame { distance, ..of(PAUSE, root) },
            Say::Resume { root } => of(RESUME, root),
            Say::Merge { old, new } => Frame { new_node: new.node, new_port: new.port, ..of(MERGE, old) },
            Say::Unassigned { root } => of(UNASSIGNED, root),
        }
    }
}

impl Frame {
    /// What it says; none if it is of no known kind.
    pub const fn say(self) -> Option<Say> {
        let root = RootId { node: self.node, port: self.port };
        match self.kind {
            PAUSE => Some(Say::Pause { root, distance: self.distance }),
            RESUME => Some(Say::Resume { root }),
            MERGE => Some(Say::Merge { old: root, new: RootId { node: self.new_node, port: self.new_port } }),
            UNASSIGNED => Some(Say::Unassigned { root }),
            _ => None,
        }
    }
}

impl Header for Frame {
    /// Kind, distance, and the ids of one root or two, switch before port.
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend([self.kind, self.distance]);
        out.extend(self.node.to_be_bytes());
        out.extend(self.port.to_be_bytes());
        if self.kind == MERGE {
            out.extend(self.new_node.to_be_bytes());
            out.extend(self.new_port.to_be_bytes());
        }
    }

    fn parse(bytes: &[u8]) -> Result<(Frame, usize), Malformed> {
        let root = |at: usize| {
            let id = bytes.get(at..at + 6).ok_or(Malformed { what: "Pyrrha frame: it ends within a root's id" })?;
            Ok((u32::from_be_bytes([id[0], id[1], id[2], id[3]]), u16::from_be_bytes([id[4], id[5]])))
        };
        let &[kind @ PAUSE..=UNASSIGNED, distance, ..] = bytes else {
            return Err(Malformed { what: "Pyrrha frame type" });
        };
        let (node, port) = root(2)?;
        let (new_node, new_port) = if kind == MERGE { root(8)? } else { (0, 0) };
        let taken = if kind == MERGE { 14 } else { 8 };
        Ok((Frame { kind, distance, port, node, new_node, new_port, blank: 0 }, taken))
    }

    fn payload_offset(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn root() -> impl Strategy<Value = RootId> {
        (any::<u32>(), any::<u16>()).prop_map(|(node, port)| RootId { node, port })
    }

    proptest! {
        #[test]
        fn frames_survive_the_wire(
            say in prop_oneof![
                (root(), any::<u8>()).prop_map(|(root, distance)| Say::Pause { root, distance }),
                root().prop_map(|root| Say::Resume { root }),
                (root(), root()).prop_map(|(old, new)| Say::Merge { old, new }),
                root().prop_map(|root| Say::Unassigned { root }),
            ],
            noise: Vec<u8>,
        ) {
            let mut bytes = Vec::new();
            Frame::from(say).emit(&mut bytes);
            let (frame, taken) = Frame::parse(&bytes).unwrap();
            prop_assert_eq!((frame.say(), taken), (Some(say), bytes.len()));
            for short in 0..bytes.len() {
                prop_assert!(Frame::parse(&bytes[..short]).is_err());
            }
            let _ = Frame::parse(&noise);
        }
    }
}
