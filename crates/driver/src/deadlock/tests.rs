use super::*;

fn queue(link: u32) -> Queue {
    (LinkId(link), Cause::Class(1))
}

fn graph(edges: &[(u32, u32)]) -> BTreeMap<Queue, Vec<Queue>> {
    let mut waits: BTreeMap<Queue, Vec<Queue>> = BTreeMap::new();
    for &(from, to) in edges {
        waits.entry(queue(to)).or_default();
        waits.entry(queue(from)).or_default().push(queue(to));
    }
    waits
}

#[test]
fn a_tree_of_pauses_is_no_circle() {
    assert!(circle(&graph(&[(1, 2), (1, 3), (2, 4), (3, 4)])).is_empty());
}

#[test]
fn a_circle_is_found_behind_what_waits_for_it() {
    assert_eq!(circle(&graph(&[(1, 2), (2, 3), (3, 4), (4, 2), (2, 5)])), [queue(2), queue(3), queue(4)]);
}
