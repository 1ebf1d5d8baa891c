use std::sync::Arc;

use super::super::Walk;
use super::*;

/// A flow at a host, how far it has come, a timer, an appointment, and two counters, one of which may be new.
#[derive(Clone, Debug, PartialEq)]
struct State {
    flow: FlowId,
    next: u64,
    timer: Time,
    starts: Time,
    sent: u64,
    waited: u64,
}

impl State {
    fn new(flow: u32, next: u64, timer: u64, sent: u64, waited: u64) -> State {
        State { flow: FlowId(flow), next, timer: Time::from_us(timer), starts: Time::from_us(900), sent, waited }
    }

    /// Also counts something else, if `more`.
    fn visit(&mut self, walk: &mut Walk, more: bool) {
        walk.part("host", 3);
        walk.flow(&mut self.flow);
        walk.sequence(self.flow, 1, &mut self.next);
        walk.time(&mut self.timer);
        walk.outside(self.starts);
        walk.rank_acts(Time::from_us(70));
        walk.count(&mut self.sent);
        walk.tallied(8, &mut self.waited);
        walk.part("switch", 5);
        if more {
            walk.count(&mut { 1_u64 });
        }
        walk.part("link", 2);
        walk.flow(&mut FlowId(77));
    }

    fn notes(&mut self, now: u64, more: bool) -> Notes {
        let mut walk = Walk::note(Time::from_us(now), Arc::default());
        self.visit(&mut walk, more);
        walk.finish().expect("nobody refuses").expect("notes are taken")
    }
}

/// What is under way stays as it is, under another name. Times move by the rounds, counters by what a round counts.
#[test]
fn rounds_move_times_counters_and_names() {
    let (mut before, mut after) = (State::new(10, 400, 61, 1_000, 0), State::new(14, 470, 162, 1_030, 6));
    let (first, last) = (before.notes(50, false), after.notes(150, false));
    let length = Duration::from_us(100);
    let amounts = Amounts::of_rounds(&first, &last, length, 20).expect("the same things are counted");
    let names = [(FlowId(14), FlowId(94))].into_iter().collect();
    let mut walk = Walk::shift(Time::from_us(150), Arc::default(), Arc::new(amounts), Arc::new(names));
    after.visit(&mut walk, false);
    assert!(walk.finish().is_ok());
    assert_eq!(after, State::new(94, 470, 2_162, 1_030 + 20 * 30, 6 + 20 * 6));
}

#[test]
fn rounds_in_which_other_things_are_counted_do_not_repeat() {
    let mut state = State::new(10, 400, 61, 1_000, 0);
    let (one, other) = (state.notes(50, false), state.notes(150, true));
    assert!(Amounts::of_rounds(&one, &other, Duration::from_us(100), 2).is_none());
    // A counter that was set back says nothing of a round.
    let mut less = State { sent: 999, ..state.clone() };
    assert!(Amounts::of_rounds(&one, &less.notes(150, false), Duration::from_us(100), 2).is_none());
}

#[test]
fn notes_say_which_flows_are_named_where_and_what_comes_from_outside() {
    let notes = State::new(10, 400, 61, 1_000, 0).notes(50, false);
    assert_eq!(notes.flows(), BTreeSet::from([FlowId(10), FlowId(77)]));
    assert_eq!(notes.flows_in_network(), BTreeSet::from([FlowId(77)]));
    // Not when ranks act: who skips rounds asks them.
    assert_eq!((notes.outside(), notes.appointment()), (Time::from_us(900), Time::from_us(70)));
}
