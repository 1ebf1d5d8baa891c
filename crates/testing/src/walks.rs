//! Checks that a state is moved ahead as it would have moved by itself ([`node::walk`]).

use std::fmt::Debug;
use std::sync::Arc;

use node::Walk;
use node::walk::{HeaderWalk, Notes, Renamed, recurrence};
use units::{Duration, Time};

/// The moment of the first note.
pub const NOW: Time = Time::from_us(100);

/// The notes of a state at a time. `headers` are as in [`Walk::note`].
pub fn notes<S>(now: Time, headers: &[HeaderWalk], state: &mut S, walk: impl Fn(&mut S, &mut Walk)) -> Notes {
    let mut notes = Walk::note(now, headers.into());
    notes.part("state", 0);
    walk(state, &mut notes);
    notes.finish().expect("nobody refuses").expect("notes are taken")
}

/// Checks that a state is moved ahead as if periods had passed: `pass` lets one pass, which begins at the time that
/// it is given. `see` is all of the state that is to be compared.
pub fn check_moved<S, V: PartialEq + Debug>(
    headers: &[HeaderWalk],
    period: Duration,
    make: impl Fn() -> S,
    walk: impl Fn(&mut S, &mut Walk),
    pass: impl Fn(&mut S, Time),
    see: impl Fn(&S) -> V,
) {
    const TIMES: u64 = 7;
    let (mut moved, mut passed) = (make(), make());
    let before = notes(NOW, headers, &mut moved, &walk);
    pass(&mut moved, NOW);
    let now = NOW + period;
    let found = recurrence(&before, &notes(now, headers, &mut moved, &walk)).expect("it recurs");
    let mut ahead = Walk::ahead(now, headers.into(), found.moves, Arc::new(Renamed::default()), TIMES);
    ahead.part("state", 0);
    walk(&mut moved, &mut ahead);
    assert!(ahead.finish().is_ok(), "refused");
    (0..=TIMES).for_each(|time| pass(&mut passed, NOW + period * time));
    assert_eq!(see(&moved), see(&passed));
}
