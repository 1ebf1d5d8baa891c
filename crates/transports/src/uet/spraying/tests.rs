use std::collections::BTreeSet;

use super::*;

fn random() -> Stream {
    Stream::new(7, 0, "spray")
}

fn take(spray: &mut Spray, count: usize, random: &mut Stream) -> Vec<u16> {
    (0..count).map(|_| spray.next(random)).collect()
}

#[test]
fn in_turn_each_value_comes_once_and_then_in_another_order() {
    for how in [Spraying::Oblivious, Spraying::Bitmap, Spraying::Mixed] {
        let mut random = random();
        let mut spray = Spray::new(how, 64, &mut random);
        let rounds: Vec<Vec<u16>> = (0..8).map(|_| take(&mut spray, 64, &mut random)).collect();
        for round in &rounds {
            assert_eq!(round.iter().copied().collect::<BTreeSet<_>>().len(), 64);
        }
        assert!(rounds.iter().collect::<BTreeSet<_>>().len() > 4);
    }
}

#[test]
fn one_value_is_one_path() {
    for how in [Spraying::Oblivious, Spraying::Bitmap, Spraying::Reps, Spraying::Mixed] {
        let mut random = random();
        let mut spray = Spray::new(how, 1, &mut random);
        for fate in [Fate::Lost, Fate::Trimmed, Fate::Marked, Fate::Good] {
            spray.heard(Time::ZERO, 0, fate);
            assert_eq!(take(&mut spray, 3, &mut random), [0, 0, 0]);
        }
    }
}

#[test]
fn a_penalty_passes_a_value_over_so_many_times() {
    for (fate, times) in [(Fate::Good, 0), (Fate::Marked, 1), (Fate::Trimmed, 4), (Fate::Lost, 15)] {
        let mut random = random();
        let mut spray = Spray::new(Spraying::Bitmap, 4, &mut random);
        spray.heard(Time::ZERO, 2, fate);
        let until = take(&mut spray, 400, &mut random).iter().position(|&value| value == 2).unwrap();
        // Three other values a round, in which it is passed over once; its own round begins anywhere.
        assert!((3 * times..=3 * times + 6).contains(&until), "{fate:?} {until}");
    }
    // Where all are punished, the first goes.
    let mut random = random();
    let mut spray = Spray::new(Spraying::Bitmap, 4, &mut random);
    (0..4).for_each(|value| spray.heard(Time::ZERO, value, Fate::Lost));
    assert_eq!(take(&mut spray, 100, &mut random).len(), 100);
}

#[test]
fn mixed_recycles_good_values_in_their_order_before_others() {
    let mut random = random();
    let mut spray = Spray::new(Spraying::Mixed, 64, &mut random);
    spray.heard(Time::ZERO, 9, Fate::Good);
    spray.heard(Time::ZERO, 8, Fate::Marked);
    spray.heard(Time::ZERO, 7, Fate::Good);
    spray.heard(Time::ZERO, 999, Fate::Good);
    assert_eq!(take(&mut spray, 2, &mut random), [9, 7]);
    assert_eq!(take(&mut spray, 63, &mut random).iter().filter(|&&value| value == 8).count(), 0);
}

#[test]
fn reps_uses_each_of_its_last_eight_values_once() {
    let mut random = random();
    let mut spray = Spray::new(Spraying::Reps, 1 << 15, &mut random);
    for value in 1..=3 {
        spray.heard(Time::ZERO, value, Fate::Good);
        spray.heard(Time::ZERO, 100 + value, Fate::Marked);
    }
    assert_eq!(take(&mut spray, 3, &mut random), [1, 2, 3]);
    // Then others, of so many values hardly one of those.
    assert!(take(&mut spray, 20, &mut random).iter().all(|value| *value > 3));
    for value in 1..=10 {
        spray.heard(Time::ZERO, value, Fate::Good);
    }
    assert_eq!(take(&mut spray, 8, &mut random), [3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn after_a_timeout_reps_goes_round_what_it_has_and_later_explores() {
    let mut random = random();
    let mut spray = Spray::new(Spraying::Reps, 1 << 15, &mut random);
    (1..=8).for_each(|value| spray.heard(Time::ZERO, value, Fate::Good));
    spray.heard(Time::ZERO, 20_000, Fate::Lost);
    let frozen = take(&mut spray, 80, &mut random);
    assert!((1..=8).all(|value| frozen.iter().filter(|&&of| of == value).count() == 10), "{frozen:?}");
    spray.heard(Time::ZERO + FROZEN + Duration::from_us(1), 5, Fate::Good);
    assert!(take(&mut spray, EXPLORED as usize, &mut random).iter().all(|value| *value > 8));
    assert_eq!(take(&mut spray, 1, &mut random), [5]);
}
