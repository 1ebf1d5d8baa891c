use super::*;

/// Events that follow each other after these gaps, each with a word.
fn after(gaps: &[(u64, u64)]) -> Vec<(Time, u64)> {
    let mut at = Time::from_us(7);
    let event = |&(gap, what): &(u64, u64)| {
        at += Duration::from_ps(gap);
        (at, what)
    };
    gaps.iter().map(event).collect()
}

/// Rounds of three events, which take so long.
fn rounds(lengths: &[u64]) -> Vec<(Time, u64)> {
    let of = |&length: &u64| [(length - 30, 5), (20, 6), (10, 7)];
    after(&lengths.iter().flat_map(of).collect::<Vec<_>>())
}

#[test]
fn a_round_is_what_has_repeated_for_the_longest_time_and_taken_as_long() {
    let length = |lengths: &[u64]| rhythm(&rounds(lengths)).map(Duration::ps);
    assert_eq!(length(&[5_000, 1_000, 1_000, 1_000, 1_000, 1_000]), Some(1_000));
    // Four durations are compared, and the first round began before anything is known.
    assert_eq!(length(&[1_000, 1_000, 1_000, 1_000]), None);
    assert_eq!(length(&[990, 1_000, 1_000, 1_004, 1_006]), Some(1_002));
    assert_eq!(length(&[990, 1_000, 1_000, 1_004, 1_015]), None);
    // Rounds that take turns are a round together, even if they differ by little.
    assert_eq!(length(&[[1_000, 1_100]; 5].concat()), Some(2_100));
    assert_eq!(length(&[[1_000, 1_004]; 5].concat()), Some(2_004));
    assert_eq!(length(&[[1_000, 1_004]; 4].concat()), Some(1_002));
    // The same message again and again in each iteration: the iteration has held for longer.
    let iteration: Vec<(u64, u64)> = [vec![(900, 1)], vec![(50, 2); 6]].concat();
    assert_eq!(rhythm(&after(&iteration.repeat(5))).map(Duration::ps), Some(1_200));
    // In the first iteration there is nothing else.
    assert_eq!(rhythm(&after(&iteration)).map(Duration::ps), Some(50));
    assert_eq!(rhythm(&[]), None);
}

#[test]
fn ranks_stand_where_they_stood_in_the_longest_pause() {
    let length = Duration::from_ps(10_000);
    let now = |events: &[(Time, u64)]| events.last().unwrap().0 + Duration::from_ps(40);
    let found = |events: &[(Time, u64)]| {
        let with_none: Vec<_> = events.iter().map(|&(at, what)| (at, what, 0)).collect();
        calm(&with_none, now(events), length)
    };
    // Two hosts; the second is a little late in the second round, and what it does comes in another order.
    let pause = [(8_000, 1), (500, 2), (500, 3), (1_000, 4)];
    let other = [(8_020, 1), (480, 3), (500, 2), (1_000, 4)];
    let events = after(&[pause, pause, other, pause].concat());
    let happens = 10;
    // Eight nanoseconds pass after each round, but the last pause has only begun.
    assert_eq!(found(&events), Some(Calm { at: events[11].0 + Duration::from_ps(4_000), happens }));
    // Something else happened in one of the rounds.
    let strange = [(8_000, 1), (500, 2), (500, 9), (1_000, 4)];
    assert_eq!(found(&after(&[pause, pause, strange, pause].concat())), None);
    // Each round takes twice as long as the one before.
    let slow = pause.map(|(gap, what)| (2 * gap, what));
    assert_eq!(found(&after(&[pause, pause, pause, slow].concat())), None);
    assert_eq!(found(&after(&pause)), None);
}

/// A message is under way for eight nanoseconds, and then none is, for so long.
#[test]
fn ranks_stand_where_they_stood_with_few_messages_under_way() {
    let found = |pause: u64| {
        let length = Duration::from_ps(8_000 + pause);
        let events: Vec<_> = after(&[[(pause, 1), (8_000, 2)]; 4].concat());
        let events: Vec<_> = events.iter().map(|&(at, what)| (at, what, if what == 1 { 1 } else { -1 })).collect();
        let last = events[6].0;
        (calm(&events[..7], last + Duration::from_ps(7_000), length).unwrap().at, last)
    };
    let (at, last) = found(3_000);
    assert_eq!(at, back(last, Duration::from_ps(1_500)));
    let (at, last) = found(1_500);
    assert_eq!(at, last + Duration::from_ps(3_500));
}

/// Rounds of two hosts that take so long, in which the second is so much later than the first, in nanoseconds.
fn regime(rounds: impl IntoIterator<Item = (u64, u64)>) -> Regime {
    let mut now = 0;
    let mut up_to = |(length, late): (u64, u64)| {
        now += i128::from(length) * 1_000;
        let last = vec![Some(now), Some(now + i128::from(late) * 1_000), None];
        Happened { what: 1, delays: 5_000_000, last }
    };
    let mut regime = Regime::new(up_to((100, 0)));
    rounds.into_iter().for_each(|round| regime.add(up_to(round)));
    regime
}

#[test]
fn rounds_must_be_alike_and_many() {
    let alike = |count: usize| regime(std::iter::repeat_n((10_000, 0), count));
    assert_eq!((alike(LEAST - 1).allows(), alike(LEAST).allows(), alike(200).allows()), (0, 36, 10_000));
    let mut some = alike(LEAST);
    some.skip(30, some.length());
    assert_eq!((some.allows(), some.length()), (6, Duration::from_us(10)));
    assert_eq!(some.last[0], Some(i128::from(100_000 + (LEAST as u64 + 30) * 10_000_000)));
    // Only a typical round is repeated.
    let typical = |length: u64| regime([vec![(10_000, 0); LEAST], vec![(length, 0)]].concat()).is_typical();
    assert_eq!((typical(10_000), typical(10_020), typical(9_980), typical(10_030)), (true, true, true, false));
    // A round that is not like the others begins anew.
    let other = |length: u64| regime([vec![(10_000, 0); LEAST], vec![(length, 0)]].concat()).seen.len();
    assert_eq!((other(10_100), other(9_900), other(10_120), other(9_880)), (LEAST + 1, LEAST + 1, 1, 1));
    // So does one in which messages took longer.
    let delays = some.seen[0].delays * 102 / 100;
    some.add(Happened {
        what: 1,
        delays,
        last: some.last.iter().map(|last| last.map(|last| last + 10_000_000)).collect(),
    });
    assert_eq!(some.seen.len(), 1);
}

#[test]
fn ranks_must_keep_their_places() {
    let steady = |late: &dyn Fn(u64) -> u64| regime((0..24).map(|round| (10_000, late(round)))).is_steady();
    assert!(steady(&|_| 70));
    // They scatter.
    assert!(steady(&|round| 50 + 37 * round % 29));
    // They drift apart, in steps that are the smaller part of what they scatter.
    assert!(!steady(&|round| 50 + 10 * round));
    assert!(!steady(&|round| 50 + 37 * round % 29 + 4 * round));
    // They fall apart, as what differs grows by a tenth each round.
    assert!(!steady(&|round| (30.0 * 1.1_f64.powi(round as i32)) as u64));
    // They drift towards each other, as fast as before.
    assert!(!steady(&|round| 500 - 10 * round));
    // They come to rest.
    assert!(steady(&|round| 500 - 400_u64.wrapping_shr(round as u32)));
    assert!(steady(&|round| 100 + 400_u64.wrapping_shr(round as u32)));
}
