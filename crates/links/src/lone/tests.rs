use super::*;

#[test]
fn the_grid_has_each_number_between_two_of_its_own() {
    let around = |packets| around(packets, 1 << 16);
    for packets in 1..=1 << 16 {
        let (below, above) = around(packets);
        assert!(below <= packets && packets <= above, "{packets}: {below} {above}");
        assert!(above - below <= packets / WITHIN_DOUBLING, "{packets}: {below} {above}");
        assert_eq!((around(below), around(above)), ((below, below), (above, above)), "{packets}");
    }
    assert_eq!(around((1 << 16) + 1), (1 << 15, 1 << 16), "the last doubling goes on");
}

#[test]
fn few_sizes_are_simulated_as_they_are_and_many_on_the_grid() {
    let few = BTreeSet::from([1, 700, 1_000_001]);
    assert_eq!(choose(&few, 1_000, 8_192), vec![1, 700, 1_000_001]);
    let many: BTreeSet<u64> = (1_000_000..1_020_000).collect();
    let grid = choose(&many, 1_000, 8_192);
    assert_eq!(grid, [960_000, 1_024_000]);
    let long = BTreeSet::from([1_000_000_000]);
    assert_eq!(choose(&long, 1_000, 8_192), [4_096_000, 8_192_000]);
}
