use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Duration, FlowId};

use super::*;
use crate::FlowMap;
use crate::walk::{InSlots, Notes, recurrence};

/// Flows with a timer each.
#[derive(Default)]
struct Flows {
    map: FlowMap<()>,
    timers: Timers,
}

impl Flows {
    fn begin(&mut self, flow: u32) -> u32 {
        self.map.insert(FlowId(flow), ())
    }

    fn end(&mut self, flow: u32) {
        if let Some(slot) = self.map.slot(FlowId(flow)) {
            self.timers.clear(slot);
            self.map.remove(slot);
        }
    }

    fn expire(&mut self, now: Time) -> Vec<u32> {
        let slots = std::iter::from_fn(|| self.timers.expire(now));
        slots.map(|slot| self.map.get(slot).expect("a flow that ends disarms its timer").0.0).collect()
    }

    fn notes(&mut self, now: Time) -> Notes {
        let mut walk = Walk::note(now, Arc::default());
        self.map.visit_slots(&mut walk, &());
        self.timers.visit_slots(&mut walk, &());
        walk.finish().expect("nothing refuses").expect("it notes")
    }
}

/// As messages over TCP may: the next begins before the last acknowledgement of the one before has come, so that they
/// take two slots in turn.
#[test]
fn flows_that_take_slots_in_turn_leave_the_same_state() {
    let mut flows = Flows::default();
    let mut notes = Vec::new();
    for step in 0..6 {
        let now = Time::from_ps(1_000 * u64::from(step));
        let slot = flows.begin(step);
        assert_eq!(slot, step % 2);
        flows.timers.set(slot, now + Duration::from_ps(700));
        notes.push(flows.notes(now));
        if step > 0 {
            flows.end(step - 1);
        }
        // It comes up, and is postponed.
        flows.timers.set(slot, now + Duration::from_ps(1_700));
        assert!(flows.expire(now + Duration::from_ps(800)).is_empty());
    }
    for two in notes[1..].windows(2) {
        let found = recurrence(&two[0], &two[1]).unwrap_or_else(|differs| panic!("{differs}"));
        assert!(found.turnover);
    }
}

/// A flow has ended, whose timer was set for far ahead. In skipped time another flow's timer comes past that. Nobody is
/// woken for the first one: it would have been dropped on the way.
#[test]
fn a_timer_that_is_not_needed_any_more_is_passed_in_skipped_time() {
    let mut flows = Flows::default();
    let at = |ns: u64| Time::from_ps(1_000 * ns);
    let (one, other) = (flows.begin(0), flows.begin(1));
    flows.timers.set(one, at(70));
    flows.timers.set(other, at(15));
    flows.end(0);
    let before = flows.notes(at(0));
    assert!(flows.expire(at(10)).is_empty());
    flows.timers.set(other, at(25));
    assert!(flows.expire(at(15)).is_empty());
    let found = recurrence(&before, &flows.notes(at(10))).unwrap_or_else(|differs| panic!("{differs}"));
    assert_eq!((found.until, flows.timers.next()), (at(70), Some(at(25))));
    let mut walk = Walk::ahead(at(10), Arc::default(), found.moves, Arc::default(), 5);
    flows.map.visit_slots(&mut walk, &());
    flows.timers.visit_slots(&mut walk, &());
    walk.finish().expect("nothing refuses");
    assert_eq!(flows.timers.next(), Some(at(75)));
}

proptest::proptest! {
    /// Against a simple model: a map from key to deadline.
    #[test]
    fn behaves_as_a_map_of_deadlines(steps in proptest::collection::vec((0u32..5, 0u64..50, 0u8..3), 1..200)) {
        let (mut timers, mut model, mut now) = (Timers::default(), BTreeMap::new(), 0);
        for (key, span, kind) in steps {
            match kind {
                0 => {
                    timers.set(key, Time::from_ps(now + span));
                    model.insert(key, now + span);
                }
                1 => {
                    timers.clear(key);
                    model.remove(&key);
                }
                _ => {
                    now += span;
                    let mut fired = std::iter::from_fn(|| timers.expire(Time::from_ps(now))).collect::<Vec<_>>();
                    fired.sort_unstable();
                    let due: Vec<u32> = model.iter().filter(|due| *due.1 <= now).map(|due| *due.0).collect();
                    model.retain(|_, at| *at > now);
                    proptest::prop_assert_eq!(fired, due);
                }
            }
            let earliest = model.values().min().copied().unwrap_or(u64::MAX);
            proptest::prop_assert!(timers.next().map_or(u64::MAX, Time::ps) <= earliest);
            // What has ended leaves nothing behind that would wake anyone.
            proptest::prop_assert!(!model.is_empty() || timers.next().is_none());
        }
    }

    /// Timers expire in the same order, whichever slots flows have got.
    #[test]
    fn which_slot_a_flow_has_makes_no_difference(
        before in proptest::collection::vec(0u32..6, 0..12),
        steps in proptest::collection::vec((0u32..5, 0u64..4, 0u8..4), 1..100),
    ) {
        let [mut one, mut other] = [Flows::default(), Flows::default()];
        // Flows that have begun and ended before leave slots in another order.
        for flow in 100..106 {
            other.begin(flow);
        }
        before.iter().for_each(|flow| other.end(100 + flow));
        (100..106).for_each(|flow| other.end(flow));
        let mut now = Time::ZERO;
        for (flow, span, kind) in steps {
            let at = now + Duration::from_ps(span);
            for flows in [&mut one, &mut other] {
                match kind {
                    0 => {
                        flows.begin(flow);
                    }
                    1 => flows.end(flow),
                    _ => flows.map.slot(FlowId(flow)).into_iter().for_each(|slot| flows.timers.set(slot, at)),
                }
            }
            if kind == 3 {
                now = at;
            }
            proptest::prop_assert_eq!(one.expire(now), other.expire(now));
        }
    }
}
