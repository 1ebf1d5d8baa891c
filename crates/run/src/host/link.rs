//! How a host is joined to the network.

use node::NicControl;
use node::nic::{MultihomedNic, Nic};
use units::{PortId, Time};

use super::Host;

/// How a host is joined to the network.
#[derive(node::State)]
#[state(given(()))]
pub(super) enum Link {
    /// By one link, without flow control.
    Open,
    /// By one link, whose switch may tell it to hold something back.
    Controlled(Nic),
    /// By several links.
    Several(Box<MultihomedNic>),
}

impl Link {
    /// What endpoints see through the gate.
    #[inline]
    pub(super) fn control(&self) -> Option<&dyn NicControl> {
        match self {
            Link::Open => None,
            Link::Controlled(nic) => Some(&*nic.control),
            Link::Several(homes) => Some(&**homes),
        }
    }

    /// The flow control of a port.
    #[inline]
    pub(super) fn at(&mut self, port: PortId) -> Option<&mut Nic> {
        match self {
            Link::Open => None,
            Link::Controlled(nic) => Some(nic),
            Link::Several(homes) => homes.nic(port),
        }
    }

    /// Whether flow control is to be woken at times of its own.
    pub(super) fn keeps_time(&mut self) -> bool {
        let mut keeps = false;
        self.each(|nic| keeps |= nic.control.keeps_time());
        keeps
    }

    /// The first of those times.
    pub(super) fn next_at(&self) -> Time {
        match self {
            Link::Open => Time::MAX,
            Link::Controlled(nic) => nic.control.poll_at(),
            Link::Several(homes) => homes.next_at(),
        }
    }

    /// That time may have come.
    pub(super) fn wake(&mut self, now: Time) {
        match self {
            Link::Open => {}
            Link::Controlled(nic) => nic.wake(now),
            Link::Several(homes) => homes.wake(now),
        }
    }

    pub(super) fn each(&mut self, mut tell: impl FnMut(&mut Nic)) {
        match self {
            Link::Open => {}
            Link::Controlled(nic) => tell(nic),
            Link::Several(homes) => homes.nics().for_each(tell),
        }
    }
}

impl Host {
    /// The same host, with several links.
    pub(crate) fn with_homes(self, homes: Option<MultihomedNic>) -> Host {
        match homes {
            Some(homes) => {
                let mut nic = Link::Several(Box::new(homes));
                Host { keeps_time: nic.keeps_time() || self.keeps_time, nic, ..self }
            }
            None => self,
        }
    }
}
