use fabric::{Dumbbell, FabricSpec, FatTree, Grid, LeafSpine, Star};

use super::*;

fn spares(spec: FabricSpec) -> (usize, usize) {
    let fabric = spec.build().unwrap();
    let spare = spare(&fabric, &Quotient::new(&fabric));
    (spare.iter().filter(|spare| **spare).count(), spare.len())
}

#[test]
fn full_bisection_holds_nobody_back() {
    assert_eq!(spares(FabricSpec::default()), (18, 18));
    assert_eq!(spares(FabricSpec::FatTree(FatTree { k: 4, ..FatTree::default() })), (2 * (8 + 4), 2 * (8 + 4)));
    assert_eq!(spares(FabricSpec::Star(Star::default())), (0, 0));
}

#[test]
fn what_is_narrow_does() {
    let half = LeafSpine { oversubscription: 2.0, ..LeafSpine::default() };
    assert_eq!(spares(FabricSpec::LeafSpine(half)), (0, 18));
    // Links between edge and aggregation carry half of what hosts send; links above are as wide.
    let half = FatTree { k: 4, oversubscription: 2.0, ..FatTree::default() };
    assert_eq!(spares(FabricSpec::FatTree(half)), (2 * 4, 2 * (8 + 4)));
    assert_eq!(spares(FabricSpec::Torus(Grid { dims: vec![3, 3], ..Grid::default() })).0, 0);
    assert_eq!(spares(FabricSpec::Dumbbell(Dumbbell::default())).0, 0);
}

#[test]
fn two_bundles_do_not_excuse_each_other() {
    // a - b - c in a row, with links of one rate. The two links of b lead into each other, and the hosts of a and c
    // are wider than they.
    let text = "host h0 h1 h2 h3\nswitch a\nswitch b\nswitch c\nlink h0 a 10Gbps 1ns\nlink h1 a 10Gbps 1ns\n\
                link h2 c 10Gbps 1ns\nlink h3 c 10Gbps 1ns\nlink a b 10Gbps 1ns\nlink b c 10Gbps 1ns\n";
    let spec = fabric::FileSpec {
        path: "net.txt".into(),
        format: fabric::FileFormat::Graph,
        switch_delay: units::Duration::ZERO,
    };
    let fabric = spec.parse(text).unwrap();
    let quotient = Quotient::new(&fabric);
    let spare = spare(&fabric, &quotient);
    // In each direction one of the two links counts, and the other is spare because of it.
    for (from, to) in [(0, 1), (1, 0)] {
        let passed: Vec<bool> = quotient.path(from, to).map(|bundle| spare[bundle]).collect();
        assert_eq!(passed.iter().filter(|spare| **spare).count(), 1, "{passed:?}");
    }
}
