use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
        )]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into the vector that holds its kind.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// Panics beyond 2^32: no fabric of ours has that many of anything.
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).expect("ids fit in 32 bits"))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A host, counted from 0 over the hosts of the fabric.
    HostId
}
id! {
    /// A switch, counted from 0 over the switches of the fabric.
    SwitchId
}
id! {
    /// Any node: hosts first, in order, then switches.
    NodeId
}
id! {
    /// A port of one node, counted from 0 in the order in which its links were added.
    PortId
}
id! {
    /// A directed link, counted from 0 over the fabric; a cable is two of them.
    LinkId
}
id! {
    /// A flow (or message), counted from 0 over the run in order of arrival.
    FlowId
}
