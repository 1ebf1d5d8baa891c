//! The parts of the network that belong to an island.

use std::cell::{Ref, RefMut};

use driver::Probe;

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
}

impl<P: Probe> OwnMut<'_, P> {
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Part<P>> {
        self.all.iter_mut().zip(self.which).filter_map(|(part, own)| own.then_some(part))
    }
}
