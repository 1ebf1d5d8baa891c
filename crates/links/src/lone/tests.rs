use super::*;

#[test]
fn the_grid_has_each_number_between_two_of_its_own() {
    for packets in 1..100_000 {
        let (below, above) = around(packets);
        assert!(below <= packets && packets <= above, "{packets}: {below} {above}");
        assert!(above - below <= packets / WITHIN_DOUBLING, "{packets}: {below} {above}");
        assert_eq!((around(below), around(above)), ((below, below), (above, above)), "{packets}");
    }
}

#[test]
fn few_sizes_are_simulated_as_they_are_and_many_on_the_grid() {
    let few = BTreeSet::from([1, 700, 1_000_001]);
    assert_eq!(choose(&few, 1_000), vec![1, 700, 1_000_001]);
    let many: BTreeSet<u64> = (1_000_000..1_020_000).collect();
    let grid = choose(&many, 1_000);
    assert_eq!(grid, [960_000, 1_024_000]);
}
