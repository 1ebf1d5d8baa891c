use super::*;

#[test]
fn trials_before_a_success_have_their_mean_and_their_first_share() {
    let mut stream = Stream::new(1, 1, "trials");
    for p in [0.5, 0.01, 1e-6] {
        let draws: Vec<u64> = (0..20_000).map(|_| stream.failures_before(p)).collect();
        let mean = draws.iter().map(|&draw| draw as f64).sum::<f64>() / 2e4;
        // Mean (1 - p) / p, standard deviation sqrt(1 - p) / p; four standard errors of 20,000 draws.
        let (due, slack) = ((1.0 - p) / p, 4.0 * (1.0 - p).sqrt() / p / 2e4f64.sqrt());
        assert!((mean - due).abs() <= slack, "{p}: {mean} for {due}");
        let none = draws.iter().filter(|&&draw| draw == 0).count() as f64;
        assert!((none - 2e4 * p).abs() <= 4.0 * (2e4 * p * (1.0 - p)).sqrt() + 1.0, "{p}: {none} at once");
    }
}

#[test]
fn streams_are_functions_of_seed_entity_and_purpose() {
    let draw = |seed, entity, purpose| Stream::new(seed, entity, purpose).bits();
    assert_eq!(draw(1, 2, "spray"), draw(1, 2, "spray"));
    let others = [draw(2, 2, "spray"), draw(1, 3, "spray"), draw(1, 2, "grant"), draw(2, 1, "spray")];
    assert!(others.iter().all(|&other| other != draw(1, 2, "spray")));
}

#[test]
fn moments_are_those_of_the_distributions() {
    let mut stream = Stream::new(7, 0, "test");
    let n = 100_000;
    let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
    // Four standard errors: uniform sd 0.289, exponential sd = mean.
    assert!((mean(&mut || stream.unit()) - 0.5).abs() < 4.0 * 0.289 / f64::from(n).sqrt());
    assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 4.0 * 3.0 / f64::from(n).sqrt());
}

proptest::proptest! {
    #[test]
    fn below_is_below(seed: u64, n in 1u64..) {
        proptest::prop_assert!(Stream::new(seed, 0, "test").below(n) < n);
    }

    #[test]
    fn shuffling_keeps_the_elements(seed: u64, len in 0usize..50) {
        let mut items: Vec<usize> = (0..len).collect();
        Stream::new(seed, 0, "test").shuffle(&mut items);
        items.sort_unstable();
        proptest::prop_assert_eq!(items, (0..len).collect::<Vec<_>>());
    }
}

#[test]
fn draws_of_one_thing_are_idle() {
    let before = Stream::new(1, 2, "test");
    let mut stream = before.clone();
    stream.below(1);
    stream.draw_idly();
    assert_eq!(stream.idle_draws_since(&before), Some(2));
    stream.below(2);
    assert_eq!(stream.idle_draws_since(&before), None);
}

/// The generator is that of its authors, by another program.
#[test]
fn it_is_xoshiro256_plus_plus() {
    use rand::{Rng, SeedableRng};
    for seed in [0, 1, 77, u64::MAX] {
        let purpose = "x".bytes().fold(0u64, |hash, byte| mix(hash, u64::from(byte)));
        let mut theirs = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(mix(mix(seed, 3), purpose));
        let mut ours = Stream::new(seed, 3, "x");
        assert!((0..1_000).all(|_| ours.bits() == theirs.next_u64()));
    }
}
