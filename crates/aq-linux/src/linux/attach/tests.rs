use super::*;
use units::{Bytes, Rate};

fn row(name: &str, flows: u32) -> Row {
    let (rate, limit) = (Rate::from_gbps(1), Bytes(0));
    Row::plain(name, rate, limit, flows)
}

#[test]
fn tenants_keep_their_numbers_and_nobody_has_anothers() {
    let rows: Vec<Row> = [("d", 1), ("a", 1), ("f", 10), ("b", 1)].map(|(n, f)| row(n, f)).into();
    let first = hold(&rows, &[]).unwrap();
    let rows: Vec<Row> = [("d", 1), ("c", 1), ("b", 1), ("g", 5), ("e", 1), ("h", 1)].map(|(n, f)| row(n, f)).into();
    let second = hold(&rows, &first).unwrap();
    assert_eq!(second[0], first[0]);
    assert_eq!(second[2], first[3]);
    for (index, one) in second.iter().enumerate() {
        for other in &second[..index] {
            assert_ne!(one.entity, other.entity);
            assert!(one.first + one.flows <= other.first || other.first + other.flows <= one.first);
        }
    }
    assert_eq!(second[1].first, first[1].first, "what is free is used again");
}
