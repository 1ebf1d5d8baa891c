use super::super::theory::slot_efficiency;
use super::*;

fn random() -> Stream {
    Stream::new(1, 0, "slot allocation")
}

#[test]
fn the_theorems_model_fills_what_the_theorem_says() {
    for (k, cores, trials) in [(1, 32, 10_000), (2, 32, 4_000), (8, 32, 4_000), (4, 8, 10_000), (64, 16, 2_000)] {
        let drawn = thrown(k, cores, trials, &mut random());
        let off = (drawn.mean - slot_efficiency(k, cores)).abs();
        assert!(drawn.standard_error < 1e-3, "K = {k}, C = {cores}: {drawn:?} tells little");
        assert!(off < 4.0 * drawn.standard_error, "K = {k}, C = {cores}: {drawn:?}, off by {off}");
    }
}

/// The cores of a leaf's rsvps are drawn without replacement from its virtual links. They vary less than the
/// theorem's independent draws (Hoeffding 1963), so that no fewer rsvps succeed.
#[test]
fn the_protocols_first_try_fills_no_less() {
    for k in [1, 2, 8] {
        let first = leaf_spine(LeafSpine { leaves: 64, cores: 32 }, k, 1, 40, &mut random())[0];
        assert!(first.mean > slot_efficiency(k, 32) - 4.0 * first.standard_error, "K = {k}: {first:?}");
    }
}

/// With two leaves, K rsvps of a leaf reach each core, which has K virtual links to the other leaf.
#[test]
fn between_two_leaves_nothing_collides() {
    for k in [1, 3] {
        let all = leaf_spine(LeafSpine { leaves: 2, cores: 16 }, k, 1, 10, &mut random());
        assert_eq!(all, [Estimate { mean: 1.0, standard_error: 0.0 }]);
    }
}

#[test]
fn what_is_refused_finds_its_way_when_it_tries_again() {
    let after = leaf_spine(LeafSpine { leaves: 16, cores: 8 }, 4, 200, 10, &mut random());
    assert!(after.windows(2).all(|pair| pair[0].mean <= pair[1].mean), "a slot that is filled stays filled");
    assert!(after[199].mean <= 1.0 && after[199].mean > after[0].mean);
}

#[test]
fn demands_use_each_slot_once_and_cross_the_core() {
    let fabric = LeafSpine { leaves: 5, cores: 4 };
    let demands = demands(fabric, 3, &mut random());
    assert!(demands.iter().all(|(receiver, sender)| receiver != sender));
    for leaf in 0..5 {
        assert_eq!(demands.iter().filter(|demand| demand.0 == leaf).count(), 12);
        assert_eq!(demands.iter().filter(|demand| demand.1 == leaf).count(), 12);
    }
}
