//! State that visits its own values.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::hash::Hash;
use std::mem::take;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use units::{Bytes, Duration, FlowId, HostId, PortId, Rate, Stream, SwitchId, Time};

use super::{Number, Walk};
use crate::pool::Pool;
use crate::{Packet, Saved};

/// A piece of state, which visits all its values: see the [module](super). It is derived: `#[derive(State)]`, whose
/// attributes the [macro's crate](state) lists. `Given` is what those that hold it must give it: its settings.
///
/// ```compile_fail
/// use clearway_node::{self as node, State};
///
/// #[derive(State)]
/// struct Sender {
///     sent: u64,
///     clock: std::time::Instant, // no type of state
/// }
/// ```
///
/// ```
/// use clearway_node::{self as node, State};
///
/// #[derive(State)]
/// struct Sender {
///     sent: u64,
///     #[state(built("when the program began"))]
///     clock: std::time::Instant,
/// }
/// ```
pub trait State<Given: ?Sized = ()>: Saved {
    /// Visits it.
    fn visit(&mut self, walk: &mut Walk, given: &Given);
}

impl Walk {
    /// Visits the ports of a node, one by one.
    pub fn ports<G: ?Sized, P: State<G>>(&mut self, ports: &mut [P], given: &G) {
        self.same(ports.len());
        for (number, port) in (0..).zip(ports) {
            self.port(Some(number));
            port.visit(self, given);
        }
        self.port(None);
    }

    /// The port that is gone over now, as [`Walk::turn_at`] names it.
    pub fn here(&self) -> u32 {
        Walk::place(self.node, self.port.checked_sub(1))
    }

    /// Goes over something that needs the pool, where packets are.
    pub fn with_pool(&mut self, with: impl FnOnce(&mut Walk, &mut Pool)) {
        let mut pool = std::mem::take(&mut self.pool);
        with(self, &mut pool);
        self.pool = pool;
    }
}

macro_rules! same {
    ($($kind:ty)*) => {$(
        impl<G: ?Sized> State<G> for $kind {
            #[inline]
            fn visit(&mut self, walk: &mut Walk, _: &G) {
                walk.same(*self);
            }
        }
    )*};
}

same!(bool u8 u16 u32 u64 u128 i64 usize f64 Bytes Duration Rate HostId PortId SwitchId);

macro_rules! moved {
    ($($kind:ty: $method:ident,)*) => {$(
        impl<G: ?Sized> State<G> for $kind {
            fn visit(&mut self, walk: &mut Walk, _: &G) {
                walk.$method(self);
            }
        }
    )*};
}

moved!(Time: time, FlowId: flow, Stream: random, Packet: packet,);

impl<G: ?Sized> State<G> for () {
    fn visit(&mut self, _: &mut Walk, _: &G) {}
}

/// Shared values do not change.
impl<G: ?Sized, T: ?Sized> State<G> for Arc<T> {
    fn visit(&mut self, _: &mut Walk, _: &G) {}
}

impl<G: ?Sized, T: State<G> + ?Sized> State<G> for Box<T>
where
    Box<T>: Saved,
{
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        (**self).visit(walk, given);
    }
}

impl<G: ?Sized, T: State<G>> State<G> for Option<T> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        walk.same(self.is_some());
        self.iter_mut().for_each(|of| of.visit(walk, given));
    }
}

impl<G: ?Sized, T: State<G>> State<G> for Reverse<T> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        self.0.visit(walk, given);
    }
}

impl<G: ?Sized, T: State<G>, const N: usize> State<G> for [T; N] {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        self.iter_mut().for_each(|of| of.visit(walk, given));
    }
}

impl<G: ?Sized, T: State<G>> State<G> for [T] {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| of.visit(walk, given));
    }
}

impl<G: ?Sized, T: State<G>> State<G> for Vec<T> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| of.visit(walk, given));
    }
}

impl<G: ?Sized, T: State<G>> State<G> for VecDeque<T> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| of.visit(walk, given));
    }
}

macro_rules! tuples {
    ($(($($name:ident),+))*) => {$(
        impl<G: ?Sized, $($name: State<G>),+> State<G> for ($($name,)+) {
            fn visit(&mut self, walk: &mut Walk, given: &G) {
                #[allow(non_snake_case)]
                let ($($name,)+) = self;
                $($name.visit(walk, given);)+
            }
        }
    )*};
}

tuples!((A, B)(A, B, C)(A, B, C, D));

/// Goes over what has an order, and puts it back: keys may have moved.
fn in_order<G: ?Sized, T: State<G>>(items: &mut Vec<T>, walk: &mut Walk, given: &G) {
    items.visit(walk, given);
}

impl<G: ?Sized, K: State<G> + Ord, V: State<G>> State<G> for BTreeMap<K, V> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        let mut items: Vec<(K, V)> = take(self).into_iter().collect();
        in_order(&mut items, walk, given);
        self.extend(items);
    }
}

impl<G: ?Sized, T: State<G> + Ord> State<G> for BTreeSet<T> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        let mut items: Vec<T> = take(self).into_iter().collect();
        in_order(&mut items, walk, given);
        self.extend(items);
    }
}

impl<G: ?Sized, T: State<G> + Ord> State<G> for BinaryHeap<T> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        let mut items = take(self).into_sorted_vec();
        in_order(&mut items, walk, given);
        *self = items.into();
    }
}

#[expect(clippy::disallowed_methods, reason = "they are put in order")]
impl<G: ?Sized, K: State<G> + Ord + Hash, V: State<G>> State<G> for FxHashMap<K, V> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        let mut items: Vec<(K, V)> = self.drain().collect();
        items.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        in_order(&mut items, walk, given);
        self.extend(items);
    }
}

impl<G: ?Sized, T: State<G> + Ord + Hash> State<G> for FxHashSet<T> {
    fn visit(&mut self, walk: &mut Walk, given: &G) {
        let mut items: Vec<T> = self.drain().collect();
        items.sort_unstable();
        in_order(&mut items, walk, given);
        self.extend(items);
    }
}

/// Whether a value is more than nothing, for which its default stands.
pub fn is_any<T: Default + PartialEq>(value: &T) -> bool {
    *value != T::default()
}

/// Numbers or times, one or many.
pub trait Each<L> {
    /// Goes over each of them. How many there are must be the same.
    fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut L));
}

impl Each<Time> for Time {
    fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut Time)) {
        with(walk, self);
    }
}

macro_rules! numbers {
    ($($kind:ty)*) => {$(
        impl Each<u64> for $kind {
            fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut u64)) {
                let mut number = self.get();
                with(walk, &mut number);
                self.set(number);
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 Duration);

impl<L, T: Each<L>, const N: usize> Each<L> for [T; N] {
    fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut L)) {
        self.iter_mut().for_each(|of| of.each(walk, with));
    }
}

impl<L, A: Each<L>, B: Each<L>> Each<L> for (A, B) {
    fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut L)) {
        self.0.each(walk, with);
        self.1.each(walk, with);
    }
}

impl<L, T: Each<L>> Each<L> for Option<T> {
    fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut L)) {
        walk.same(self.is_some());
        self.iter_mut().for_each(|of| of.each(walk, with));
    }
}

impl<L, T: Each<L>> Each<L> for Vec<T> {
    fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut L)) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| of.each(walk, with));
    }
}

impl<L, T: Each<L>> Each<L> for VecDeque<T> {
    fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut L)) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| of.each(walk, with));
    }
}

impl<L, T: Each<L> + Ord> Each<L> for BTreeSet<T> {
    fn each(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut L)) {
        let mut items: Vec<T> = take(self).into_iter().collect();
        items.each(walk, with);
        self.extend(items);
    }
}

/// A container.
pub trait Items {
    /// The values in it.
    type Item;

    /// Goes over each item. How many there are must be the same.
    fn items(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut Self::Item));
}

impl<T> Items for Vec<T> {
    type Item = T;

    fn items(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut T)) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| with(walk, of));
    }
}

impl<T> Items for VecDeque<T> {
    type Item = T;

    fn items(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut T)) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| with(walk, of));
    }
}

impl<T> Items for Option<T> {
    type Item = T;

    fn items(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut T)) {
        walk.same(self.is_some());
        self.iter_mut().for_each(|of| with(walk, of));
    }
}

impl<T, const N: usize> Items for [T; N] {
    type Item = T;

    fn items(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut T)) {
        self.iter_mut().for_each(|of| with(walk, of));
    }
}

impl<T: Ord> Items for BinaryHeap<Reverse<T>> {
    type Item = T;

    fn items(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut T)) {
        let mut items = take(self).into_sorted_vec();
        items.items(walk, &mut |walk, of| with(walk, &mut of.0));
        *self = items.into();
    }
}

#[expect(clippy::disallowed_methods, reason = "they are put in order")]
impl<K: Ord + Hash, V> Items for FxHashMap<K, V> {
    type Item = (K, V);

    fn items(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut (K, V))) {
        let mut items: Vec<(K, V)> = self.drain().collect();
        items.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        items.items(walk, with);
        self.extend(items);
    }
}

impl<K: Ord, V> Items for BTreeMap<K, V> {
    type Item = (K, V);

    fn items(&mut self, walk: &mut Walk, with: &mut dyn FnMut(&mut Walk, &mut (K, V))) {
        let mut items: Vec<(K, V)> = take(self).into_iter().collect();
        items.items(walk, with);
        self.extend(items);
    }
}

/// A value that names slots of the flows that were visited last, or keeps flows in slots. The slot of a flow makes no
/// difference.
pub trait InSlots<G: ?Sized> {
    /// Visits it.
    fn visit_slots(&mut self, walk: &mut Walk, given: &G);
}

impl<G: ?Sized> InSlots<G> for u32 {
    fn visit_slots(&mut self, walk: &mut Walk, _: &G) {
        walk.same(walk.slots.place(*self));
    }
}

impl<G: ?Sized, T: InSlots<G>> InSlots<G> for Vec<T> {
    fn visit_slots(&mut self, walk: &mut Walk, given: &G) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| of.visit_slots(walk, given));
    }
}

impl<G: ?Sized, T: InSlots<G>> InSlots<G> for VecDeque<T> {
    fn visit_slots(&mut self, walk: &mut Walk, given: &G) {
        walk.same(self.len());
        self.iter_mut().for_each(|of| of.visit_slots(walk, given));
    }
}
