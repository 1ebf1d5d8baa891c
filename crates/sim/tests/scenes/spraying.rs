//! Swift where switches choose a path for each packet.

use crate::{counter, of_flows, of_links, run_both};

/// Four messages of 20 MB from rack to rack over four spines, by Swift: the slowest, in times of line rate, and how
/// many packets went again though none was lost.
fn slowest(balancing: &str, tcp: &str) -> (f64, u64) {
    let result = run_both(&format!(
        "transport.swift = {{ {tcp} }}\nmeasure.interval = '0s'\nswitch.balancing = '{balancing}'\n\
         switch.buffer.per_port.bytes = '1MB'\n\
         fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4, spine_rate = '100Gbps' }}\n\
         [[traffic]]\nsizes.constant = '20MB'\narrivals = 'all_at_once'\nsenders = '0-3'\nreceivers = '4-7'\n\
         pattern = 'permutation'\nflows = 4\n"
    ));
    assert_eq!(of_links(&result, "overflow_packets"), 0);
    let line_ps = 20e6 / 1_460.0 * 120_000.0;
    let slowest = *of_flows(&result, "fct_ps").iter().max().expect("four flows") as f64 / line_ps;
    let again = counter(&result, "fast_retransmissions");
    println!("swift, {balancing}, {{ {tcp} }}: {slowest:.2} times line rate, {again} sent again");
    (slowest, again)
}

#[test]
fn reordering_looks_like_loss_to_it_unless_it_is_told() {
    // A network that spraying fills is used to 80% at least. A sender that takes reordered packets for losses sends
    // them again and halves its window; by how much that slows it down has no closed form.
    for balancing in ["spray", "round_robin"] {
        let (slow, again) = slowest(balancing, "reordering = 256");
        assert!(slow < 1.25 && again == 0, "{balancing}: {slow}, {again}");
    }
    let ((told, _), (slow, again)) = (slowest("spray", "reordering = 256"), slowest("spray", ""));
    assert!(slow > 1.5 * told && again > 100, "{slow} of {told}, {again}");
}
