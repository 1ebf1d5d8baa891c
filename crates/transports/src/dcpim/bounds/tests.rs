use super::*;

#[test]
fn four_rounds_match_78_percent_where_pim_reaches_80() {
    // Section 3.1's example: (1 - 5 * 1.25 / 256) * 0.8 = 0.7805 of a million.
    let bound = theorem_1(1e6, 5.0, 0.8e6, 4);
    assert!((bound - 780_468.75).abs() < 1e-3, "{bound}");
    assert!(bound > 0.78e6);
}

#[test]
fn the_dense_matrix_is_guaranteed_a_third_of_what_pim_matches() {
    // Section 4.1: N = δ = 144, M* ≈ 120, so α = 1.2 and 1 - 144 * 1.2 / 256 = 32.5%. (The paper prints 32.9%,
    // which is what an M* of 120.7 gives before rounding.)
    let share = |maximal| theorem_1(144.0, 144.0, maximal, 4) / maximal;
    assert!((share(120.0) - 0.325).abs() < 1e-9);
    assert!((share(120.7) - 0.329).abs() < 1e-3);
}

#[test]
fn where_it_says_nothing_it_says_zero() {
    assert_eq!(theorem_1(100.0, 5.0, 80.0, 1), 0.0);
    assert_eq!(theorem_1(100.0, 0.0, 0.0, 4), 0.0);
}

#[test]
fn matchings_are_never_smaller_than_theorem_1_says() {
    for degree in [1.0, 5.0, 20.0] {
        for row in study(&[100, 10_000], degree, 8, 1) {
            // After all rounds that there are, matching and bound approach M* both; equality is allowed.
            assert!(row.matched >= row.bound, "{row:?}");
            assert!(row.matched <= row.maximal && row.maximal <= 1.0, "{row:?}");
        }
    }
}

#[test]
fn rounds_needed_do_not_depend_on_the_network() {
    // The theorem's point: what four rounds leave unmatched is at most δ/4^4 of the hosts, whatever their number.
    for row in study(&[100, 1_000, 100_000], 5.0, 4, 2).iter().filter(|row| row.rounds == 4) {
        assert!(row.maximal - row.matched <= row.degree / 256.0, "{row:?}");
    }
}

#[test]
fn the_seed_decides_a_study() {
    assert_eq!(study(&[1_000], 5.0, 4, 1), study(&[1_000], 5.0, 4, 1));
    assert_ne!(study(&[1_000], 5.0, 4, 1), study(&[1_000], 5.0, 4, 2));
}
