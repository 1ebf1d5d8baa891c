//! Checks of a walk over a state ([`node::walk`]): that it names all that matters, and moves all that moves.
//!
//! A walk that leaves a value out makes skipping wrong, and most runs would not show it: where everything else recurs,
//! so does that value. So the value is changed, or moved, on its own.

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

/// A change of a state, and what it is.
pub type Change<S> = (&'static str, fn(&mut S));

/// Checks that a walk tells a state at [`NOW`] from the same state after each of these changes, but for the last ones,
/// which make no difference.
pub fn check_told_apart<S>(
    headers: &[HeaderWalk],
    make: impl Fn() -> S,
    walk: impl Fn(&mut S, &mut Walk),
    changes: &[Change<S>],
    same: &[Change<S>],
) {
    let told_apart = |change: fn(&mut S)| {
        let mut changed = make();
        change(&mut changed);
        let before = notes(NOW, headers, &mut make(), &walk);
        recurrence(&before, &notes(NOW, headers, &mut changed, &walk)).is_err()
    };
    assert!(!told_apart(|_| ()), "the state is not like itself");
    let missed: Vec<_> = changes.iter().filter(|of| !told_apart(of.1)).map(|of| of.0).collect();
    assert!(missed.is_empty(), "not told apart: {missed:?}");
    let other: Vec<_> = same.iter().filter(|of| told_apart(of.1)).map(|of| of.0).collect();
    assert!(other.is_empty(), "told apart: {other:?}");
}

/// Checks that a walk moves a state ahead as if periods had passed: `pass` lets one pass, which begins at the time that
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
