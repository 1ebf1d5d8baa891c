use driver::Probes;

use super::*;

const NONE: &[Part<Probes>] = &[];

fn bond(districts: u32, from: Time) -> Bond {
    Bond { districts, from, until: Until::RunEnds }
}

/// Three districts, of which a bond connects the second and the third from a millisecond on.
fn connections() -> Connections {
    Connections {
        districts: vec![0..2, 2..3, 3..5],
        coming: vec![bond(0b110, Time::from_us(1_000)), bond(0b010, Time::ZERO), bond(0b001, Time::ZERO)],
        lasting: Vec::new(),
        late: Duration::ZERO,
        read: Read::default(),
        ended: 0,
        ends: FxHashMap::default(),
    }
}

#[test]
fn what_begins_makes_islands_one() {
    let mut connections = connections();
    assert_eq!(connections.changed(Time::ZERO, NONE, |_| false), Some(vec![0b001, 0b010]));
    assert_eq!(connections.islands_of_parts(&[0b001, 0b010]), [1, 1, 2, 0, 0]);
    assert_eq!((connections.alone_until(0b001), connections.alone_until(0b010)), (Time::MAX, Time::from_us(1_000)));
    // The third district is in no island, and nothing begins between it and itself.
    assert_eq!((connections.alone_until(0b110), connections.next_at()), (Time::MAX, Time::from_us(1_000)));
    assert_eq!(connections.changed(Time::from_us(999), NONE, |_| false), None);
    assert_eq!(connections.changed(Time::from_us(1_000), NONE, |_| false), Some(vec![0b001, 0b110]));
    assert_eq!(connections.next_at(), Time::MAX);
}

/// What has ended connects no longer, but an island that has been moved ahead stays together until others are there.
#[test]
fn what_has_ended_connects_until_the_island_is_where_others_are() {
    let mut connections = connections();
    let now = Time::from_us(2_000);
    assert_eq!(connections.changed(now, NONE, |_| false), Some(vec![0b001, 0b110]));
    connections.lasting.iter_mut().filter(|(bond, _)| bond.districts == 0b110).for_each(|of| of.1 = now);
    assert_eq!(connections.changed(now, NONE, |districts| districts == 0b110), None);
    assert_eq!(connections.changed(now, NONE, |districts| districts == 0b001), Some(vec![0b001, 0b010]));
}
