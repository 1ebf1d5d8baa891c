//! Against the paper's numbers, in blocks of 16 KB.

use super::*;

/// The percentage by which `ours` differs from `paper`, rounded.
fn off(ours: u64, paper: f64) -> i64 {
    (100.0 * (ours as f64 / paper - 1.0)).round() as i64
}

fn mb(megabytes: f64) -> f64 {
    megabytes * 64.0
}

fn path(k: u32, forwarding: Forwarding) -> u64 {
    path_blocks(k, forwarding).unwrap()
}

fn total(k: u32, forwarding: Forwarding, queues: Queues) -> u64 {
    total_blocks(k, forwarding, queues).unwrap()
}

#[test]
fn the_papers_numbers_agree_with_each_other_in_blocks() {
    assert_eq!(CHIP_BLOCKS * BLOCK_BYTES, 25 << 20);
    // 0.44 MB, 176 KB and 8.64 MB with the logic of Table 3: Table 4.
    let blocks = |mb: f64| (mb * 64.0).round();
    assert_eq!([blocks(0.44), blocks(176.0 / 1024.0), blocks(8.64)], [28.0, 11.0, 553.0]);
    assert_eq!(28 + 11 + 553 + LOGIC_BLOCKS, 712);
    assert_eq!(712.0 / CHIP_BLOCKS as f64, 0.445);
    // For k = 128 the two totals (Tables 7 and 5) differ by 8.7 MB of tables, less Table 2's five blocks.
    assert_eq!(blocks(8.6875), (845 - 294) as f64 + REGULAR_BLOCKS as f64);
    // Table 5 less logic, regular paths and 0.44 MB of roots: 2.2 MB of hierarchical queue assignment.
    assert_eq!((294 - LOGIC_BLOCKS - REGULAR_BLOCKS - 28) as f64 / 64.0, 2.203125);
}

#[test]
fn entries_are_those_that_the_paper_lists() {
    let entries = |k, forwarding| -> u64 {
        let tables = path_calculation(k, forwarding).unwrap();
        tables.iter().filter(|table| !table.name.contains("hash")).map(|table| table.copies * table.entries).sum()
    };
    assert_eq!(entries(24, Forwarding::NoOptimization), 3_456 * 719);
    assert_eq!(entries(28, Forwarding::UpDown), 5_488 * (28 + 196) + 27 * (14 * 196 + 14 * 14));
    assert_eq!(entries(36, Forwarding::EqualPath), 18 + 324 + 11_664 + 35 * 11_664 + 647 * 18);
    assert_eq!(entries(36, Forwarding::Full), 18 + 324 + 11_664 + 35 * 324 + 647 * 18);
    assert_eq!(roots_by_distance(36).unwrap(), [648, 11_664 + 17 * 18, 11_340, 11_340]);
}

#[test]
fn path_calculation_takes_what_the_paper_says() {
    assert_eq!(path(36, Forwarding::Full), 28); // 0.44 MB
    assert_eq!(path(128, Forwarding::Full), 556); // 8.7 MB
    assert_eq!(path(36, Forwarding::EqualPath), 164); // 2.56 MB
    assert_eq!(off(path(28, Forwarding::UpDown), mb(14.1)), 4);
    assert_eq!(off(path(24, Forwarding::NoOptimization), mb(12.6)), 7);
}

#[test]
fn roots_and_queues_take_less_than_the_prototypes() {
    let roots = |k| blocks(&root_table(k).unwrap());
    // One bit for each port is less than the prototype took: 176 KB and 0.44 MB. The paper does not say why.
    assert_eq!((off(roots(36), 11.0), off(roots(128), 28.0)), (-27, -36));
    let queues = |k, queues| blocks(&queue_manager(k, queues).unwrap());
    assert_eq!(off(queues(36, Queues::SingleTier), mb(8.64)), -5);
    assert_eq!(off(queues(128, Queues::Hierarchical), 141.0), -4); // 2.2 MB
}

#[test]
fn totals_are_those_of_tables_4_to_7() {
    assert_eq!(off(total(36, Forwarding::Full, Queues::SingleTier), 712.0), -4);
    assert_eq!(off(total(128, Forwarding::Regular, Queues::Hierarchical), 294.0), -5);
    assert_eq!(off(total(96, Forwarding::Full, Queues::Hierarchical), 450.0), 0);
    assert_eq!(off(total(128, Forwarding::Full, Queues::Hierarchical), 845.0), -2);
}

#[test]
fn entries_grow_by_the_papers_powers_of_the_number_of_hosts() {
    // From k = 64 to 128 there are eight times the hosts; a power p of them is 8^p.
    let power = |tables: &dyn Fn(u32) -> Vec<Table>| {
        let entries = |k| tables(k).iter().map(|table| table.copies * table.entries).sum::<u64>() as f64;
        (entries(128) / entries(64)).log2() / 3.0
    };
    let path = |forwarding| power(&|k| path_calculation(k, forwarding).unwrap());
    let queues = |queues| power(&|k| queue_manager(k, queues).unwrap());
    let near = |power: f64, paper: f64| assert!((power - paper).abs() < 0.03, "{power} for {paper}");
    near(path(Forwarding::NoOptimization), 5.0 / 3.0);
    near(path(Forwarding::UpDown), 5.0 / 3.0);
    near(path(Forwarding::EqualPath), 4.0 / 3.0);
    near(path(Forwarding::Full), 1.0);
    near(queues(Queues::SingleTier), 5.0 / 3.0);
    near(queues(Queues::Hierarchical), 1.0);
    near(power(&|k| root_table(k).unwrap()), 1.0);
}

#[test]
fn what_is_no_fat_tree_is_refused() {
    for k in [0, 2, 7, 130] {
        assert_eq!(usage_bytes(k).unwrap_err().key, "k");
    }
}

/// Figure 31: no curve falls as the fabric grows, at the sizes that it shows.
#[test]
fn a_larger_fabric_takes_no_less() {
    let shown: Vec<_> = (8..=128).step_by(4).map(|k| usage_bytes(k).unwrap()).collect();
    for (small, large) in shown.iter().zip(&shown[1..]) {
        for ((name, less), (_, more)) in small.iter().zip(large) {
            assert!(more >= less, "{name}: {less} and {more}");
        }
    }
}
