use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq};
use run::Plan;
use units::NodeId;

use super::*;
use crate::Cut;

/// A fabric with one message for each pair of hosts.
fn plan(fabric: &str, pairs: &[(u32, u32)]) -> Plan {
    let message = |(place, &(from, to)): (usize, &(u32, u32))| {
        format!(
            "[[traffic]]\nname = \"message{place}\"\nsenders = \"{from}\"\nreceivers = \"{to}\"\n\
             sizes.constant = \"1KB\"\narrivals = \"all_at_once\"\nflows = 1\n"
        )
    };
    let messages: String = pairs.iter().enumerate().map(message).collect();
    let text = format!("transport = \"udp\"\nfabric.{fabric}\n{messages}");
    Plan::new(&scenario::read(&text, "islands.toml", &[]).unwrap()).unwrap()
}

const RACKS: &str = "leaf_spine = { racks = 6, hosts_per_rack = 2, spines = 2 }";

/// The district of a node that is in one.
fn of_node(plan: &Plan, islands: &Islands, node: u32) -> usize {
    islands.district_of(plan.fabric.ports[node as usize][0])
}

fn of_hosts(plan: &Plan, islands: &Islands) -> Vec<usize> {
    (0..12).map(|host| of_node(plan, islands, host)).collect()
}

#[test]
fn racks_are_islands_unless_a_flow_goes_between_them() {
    let within = plan(RACKS, &[(0, 1), (3, 2), (6, 7), (10, 11)]);
    // The racks of hosts 4 and 8 are idle.
    assert_eq!(of_hosts(&within, &Islands::that_last(&within)), [0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 3, 3]);
    // What goes between two racks may go over any spine.
    let between = plan(RACKS, &[(0, 1), (3, 2), (6, 7), (10, 11), (0, 10), (5, 9)]);
    let islands = Islands::that_last(&between);
    assert_eq!(of_hosts(&between, &islands), [0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 0, 0]);
    assert_eq!(islands.districts(), 3);
}

/// A flow between two racks makes one island of them and of the spines, as long as it lasts.
#[test]
fn a_flow_connects_what_it_may_pass_while_it_lasts() {
    let plan = plan(RACKS, &[(0, 1), (3, 2), (1, 11)]);
    let islands = Islands::of_flows(&plan);
    // The idle racks of hosts 4 to 9 stand with the first.
    assert_eq!(of_hosts(&plan, &islands), [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2]);
    assert_eq!([18, 19].map(|spine| of_node(&plan, &islands, spine)), [2, 2]);
    let bond = |flow, districts| Bond { districts, from: Time::ZERO, until: Until::FlowEnds(FlowId(flow)) };
    assert_eq!(islands.bonds(), [bond(0, 0b001), bond(1, 0b010), bond(2, 0b101)]);
}

#[test]
fn a_network_whose_links_fail_is_one_island() {
    let plan = plan(&format!("{RACKS}\n[[failure]]\nlink = [\"leaf0\", \"host1\"]\nat = \"2ms\""), &[(0, 1), (2, 3)]);
    assert_eq!(Islands::of_flows(&plan), Islands::one(&plan));
}

#[test]
fn there_are_no_more_islands_than_parts_make_sense() {
    let pairs: Vec<(u32, u32)> = (0..40).map(|rack| (2 * rack, 2 * rack + 1)).collect();
    let plan = plan("leaf_spine = { racks = 40, hosts_per_rack = 2, spines = 2 }", &pairs);
    let islands = Islands::of_flows(&plan);
    assert_eq!(islands.districts(), MOST);
    let of: Vec<usize> = (0..80).map(|host| of_node(&plan, &islands, host)).collect();
    assert!(of.is_sorted() && of[79] == MOST - 1);
}

proptest::proptest! {
    /// What lasts as long as a flow connects all links of its paths, and all nodes of a part are in one district.
    #[test]
    fn paths_and_parts_stay_in_an_island(
        fabric in 0usize..3,
        pairs in proptest::collection::vec((0u32..12, 0u32..11), 1..8),
        parts in 1usize..9,
    ) {
        let fabric = [RACKS, "fat_tree = { k = 4 }", "torus = { dims = [4, 3] }"][fabric];
        let pairs: Vec<(u32, u32)> = pairs.iter().map(|&(from, to)| (from, to + u32::from(to >= from))).collect();
        let plan = plan(fabric, &pairs);
        for islands in [Islands::that_last, Islands::of_flows].map(|of| of(&plan)) {
            check(&plan, &islands, parts)?;
        }
    }
}

fn check(plan: &Plan, islands: &Islands, parts: usize) -> Result<(), TestCaseError> {
    for (flow, of) in (0..).map(FlowId).zip(plan.flows.iter()) {
        let lasts = |bond: &&Bond| [Until::RunEnds, Until::FlowEnds(flow)].contains(&bond.until);
        let here = 1 << of_node(plan, islands, of.src.0);
        let bond = islands.bonds().iter().filter(lasts).find(|bond| bond.districts & here != 0);
        let districts = bond.map_or(0, |bond| bond.districts);
        for (from, to) in [(of.src, of.dst), (of.dst, of.src)] {
            for link in plan.routes.path(&plan.fabric, from, to) {
                let ends = [link, Fabric::reverse(link)].map(|link| districts >> islands.district_of(link) & 1);
                prop_assert_eq!(ends, [1, 1]);
            }
        }
    }
    let cut = Cut::of_islands(plan, parts, islands);
    let ranges = cut.districts();
    prop_assert_eq!(ranges.len(), islands.districts());
    prop_assert_eq!(ranges.last().map(|last| last.end), Some(cut.parts()));
    prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
    for link in (0..plan.fabric.links.len()).map(LinkId::from) {
        prop_assert!(ranges[islands.district_of(link)].contains(&cut.sender_of(link)));
        // Packets of a flow that leave a part take as long as a window, or longer.
        let within = cut.sender_of(link) == cut.receiver_of(link);
        prop_assert!(within || plan.fabric.delay(link) >= plan.lookahead);
    }
    if *islands == Islands::one(plan) {
        let plain = Cut::new(plan, parts);
        let of = |cut: &Cut| (0..plan.fabric.nodes()).map(|node| cut.part_of(NodeId(node))).collect::<Vec<_>>();
        prop_assert_eq!(of(&cut), of(&plain));
    }
    Ok(())
}
