//! The parts of the network that belong to an island, and what their hosts record.

use std::cell::{Ref, RefMut};

use driver::Probe;
use run::{FlowRecord, Host};

use crate::part::Part;

/// These parts. Nobody keeps them while waiting for the engine.
pub(super) struct Own<'i, P: Probe> {
    pub all: Ref<'i, [Part<P>]>,
    /// By part: whether it belongs to the island.
    pub which: &'i [bool],
}

/// The same, to change them.
pub(super) struct OwnMut<'i, P: Probe> {
    pub all: RefMut<'i, [Part<P>]>,
    pub which: &'i [bool],
}

impl<P: Probe> Own<'_, P> {
    pub fn iter(&self) -> impl Iterator<Item = &Part<P>> + Clone {
        self.all.iter().zip(self.which).filter_map(|(part, own)| own.then_some(part))
    }

    /// Their hosts, part by part.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> + Clone {
        self.iter().flat_map(|part| &part.0.hosts).map(|slot| &slot.host)
    }
}

impl<P: Probe> OwnMut<'_, P> {
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Part<P>> {
        self.all.iter_mut().zip(self.which).filter_map(|(part, own)| own.then_some(part))
    }

    /// Their hosts, part by part.
    pub fn hosts_mut(&mut self) -> impl Iterator<Item = &mut Host> {
        self.iter_mut().flat_map(|part| &mut part.0.hosts).map(|slot| &mut slot.host)
    }
}

/// Which of the hosts' records of flows somebody has read: by host, how many.
#[derive(Default)]
pub(super) struct Read(Vec<usize>);

impl Read {
    /// Reads what these hosts have recorded since the last time. They are always the same.
    pub fn read<'h>(&mut self, hosts: impl Iterator<Item = &'h Host> + Clone, read: impl FnMut(&FlowRecord)) {
        self.0.resize(hosts.clone().count(), 0);
        let new = |(host, read): (&'h Host, &mut usize)| &host.records[std::mem::replace(read, host.records.len())..];
        hosts.zip(&mut self.0).flat_map(new).for_each(read);
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.0.len()
    }
}
