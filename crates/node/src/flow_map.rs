use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use units::FlowId;

use crate::saved::{Damaged, Loader, Saver};
use crate::walk::InSlots;
use crate::{Saved, State, Walk};

/// The state of an endpoint's live flows in reusable slots. Slots are small numbers by which timers and queues name
/// flows, whatever their ids.
#[derive(Clone, Debug)]
pub struct FlowMap<T> {
    slots: Vec<Option<(FlowId, T)>>,
    free: Vec<u32>,
    by_flow: FxHashMap<FlowId, u32>,
}

/// In which order slots are gone over, so that it makes no difference which slot a flow has.
#[derive(Debug, Default)]
pub struct Slots {
    order: Vec<u32>,
    /// By slot, where it stands in that order.
    places: Vec<u32>,
}

impl Slots {
    /// So many slots, by their numbers.
    pub fn as_they_are(slots: usize) -> Slots {
        let order: Vec<u32> = (0..slots as u32).collect();
        Slots { places: order.clone(), order }
    }

    fn in_order(order: Vec<u32>) -> Slots {
        let mut places = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, &slot)| places[slot as usize] = place);
        Slots { order, places }
    }

    /// All of them.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Where a slot stands in the order.
    pub fn place(&self, slot: u32) -> u32 {
        self.places[slot as usize]
    }
}

impl<T> Default for FlowMap<T> {
    fn default() -> Self {
        FlowMap { slots: Vec::new(), free: Vec::new(), by_flow: FxHashMap::default() }
    }
}

impl<T> FlowMap<T> {
    /// Adds a flow, replacing any state under its id, and returns its slot.
    pub fn insert(&mut self, flow: FlowId, state: T) -> u32 {
        if let Some(slot) = self.slot(flow) {
            self.slots[slot as usize] = Some((flow, state));
            return slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some((flow, state));
        self.by_flow.insert(flow, slot);
        slot
    }

    /// The slot of a flow.
    #[inline]
    pub fn slot(&self, flow: FlowId) -> Option<u32> {
        self.by_flow.get(&flow).copied()
    }

    /// The flow in a slot, if the slot is in use.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<(FlowId, &T)> {
        self.slots.get(slot as usize)?.as_ref().map(|(flow, state)| (*flow, state))
    }

    /// The flow in a slot, if the slot is in use.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<(FlowId, &mut T)> {
        self.slots.get_mut(slot as usize)?.as_mut().map(|(flow, state)| (*flow, state))
    }

    /// A flow's state, if it is known.
    #[inline]
    pub fn of(&self, flow: FlowId) -> Option<&T> {
        self.slot(flow).and_then(|slot| self.get(slot)).map(|(_, state)| state)
    }

    /// Removes a flow; its slot will be reused.
    pub fn remove(&mut self, slot: u32) -> Option<T> {
        let (flow, state) = self.slots.get_mut(slot as usize)?.take()?;
        self.by_flow.remove(&flow);
        self.free.push(slot);
        Some(state)
    }

    /// Finds flows by the names that they have now, if they were renamed.
    fn find_again(&mut self, renamed: bool) {
        if renamed {
            let named = |(slot, of): (u32, &Option<(FlowId, T)>)| of.as_ref().map(|of| (of.0, slot));
            self.by_flow = (0..).zip(&self.slots).filter_map(named).collect();
        }
    }

    /// Number of live flows.
    pub fn len(&self) -> usize {
        self.by_flow.len()
    }

    /// Whether there are no live flows.
    pub fn is_empty(&self) -> bool {
        self.by_flow.is_empty()
    }

    /// All live flows, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &T)> {
        self.slots.iter().flatten().map(|(flow, state)| (*flow, state))
    }
}

/// Visits its slots, and the state of each flow.
/// Which slot a flow has is part of it.
impl<T: Saved> Saved for FlowMap<T> {
    fn save(&self, to: &mut Saver) {
        if to.draws() {
            let by_flow: BTreeMap<FlowId, Seen<'_, T>> = self.iter().map(|(flow, of)| (flow, Seen(of))).collect();
            return by_flow.save(to);
        }
        self.slots.save(to);
        self.free.save(to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        self.slots.load(from)?;
        self.free.load(from)?;
        self.find_again(true);
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        let mut map = FlowMap::default();
        map.load(from)?;
        Ok(map)
    }
}

/// A state that is only looked at.
struct Seen<'a, T>(&'a T);

impl<T: Saved> Saved for Seen<'_, T> {
    fn save(&self, to: &mut Saver) {
        self.0.save(to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        from.built("a flow")
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        from.built("a flow")
    }
}

impl<G: ?Sized, T: State<G>> State<G> for FlowMap<T> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        walk.same((self.slots.len(), &self.free[..]));
        self.slots.iter().for_each(|slot| walk.same(slot.is_some()));
        let renamed = visit_each(walk, self.slots.iter_mut().flatten(), given);
        self.find_again(renamed);
    }
}

/// Goes over the state of each flow, for those who need slots only to tell flows apart. Flows come first, by their
/// numbers, and then the slots that will be used next.
impl<G: ?Sized, T: State<G>> InSlots<G> for FlowMap<T> {
    fn visit_slots(&mut self, walk: &mut Walk, given: &G) {
        let used = (0..).zip(&mut self.slots).filter_map(|(slot, of)| Some((slot, of.as_mut()?)));
        let mut flows: Vec<(u32, &mut (FlowId, T))> = used.collect();
        flows.sort_unstable_by_key(|(_, of)| of.0);
        walk.same(flows.len());
        let mut order: Vec<u32> = flows.iter().map(|of| of.0).collect();
        order.extend(self.free.iter().rev());
        let renamed = visit_each(walk, flows.into_iter().map(|of| of.1), given);
        self.find_again(renamed);
        walk.slots = Slots::in_order(order);
    }
}

/// Goes over these flows and the state of each. Returns whether any has got another name.
fn visit_each<'a, G: ?Sized, T: State<G> + 'a>(
    walk: &mut Walk,
    flows: impl IntoIterator<Item = &'a mut (FlowId, T)>,
    given: &G,
) -> bool {
    let mut renamed = false;
    for (flow, state) in flows {
        let was = *flow;
        walk.flow(flow);
        renamed |= *flow != was;
        walk.flow = *flow;
        state.visit(walk, given);
    }
    renamed
}

#[cfg(test)]
mod tests;
