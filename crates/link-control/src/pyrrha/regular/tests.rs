//! Algorithm 1 against the full tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use fabric::{Fabric, FabricSpec, Failures, FatTree, Routes};
use proptest::prelude::*;
use units::{FlowId, NodeId, PortId};

use super::*;
use node::onward_path::{self, Downstream};

const SEED: u64 = 3;

/// The regular ids of a port, derived from the fabric's numbering.
fn regular(k: u32, hop: onward_path::Hop) -> Hop {
    let (half, per_tier) = (k / 2, k * k / 2);
    let (switch, port) = (hop.switch.0, hop.port.0);
    let up_or_down = |first_uplink: u32| {
        if port < first_uplink { port as u8 } else { UPLINK | (port - first_uplink) as u8 }
    };
    let (pod, place) = (switch % per_tier / half, switch % half);
    if switch < per_tier {
        Hop { switch: (pod << 8 | 0x80 | place) as u16, port: up_or_down(half) }
    } else if switch < 2 * per_tier {
        Hop { switch: (pod << 8 | place) as u16, port: up_or_down(half) }
    } else {
        let core = switch - 2 * per_tier;
        Hop { switch: (((core / half) << 8) | (core % half)) as u16, port: port as u8 }
    }
}

fn fat_tree(k: u32) -> (Fabric, Downstream) {
    let fabric = FabricSpec::FatTree(FatTree { k, ..FatTree::default() }).build().unwrap();
    let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
    let downstream = Downstream::new(&fabric, routes, vec![Balancing::Ecmp], SEED);
    (fabric, downstream)
}

#[test]
fn it_finds_the_path_of_the_full_tables() {
    for k in [4, 8] {
        let (fabric, downstream) = fat_tree(k);
        for flow in 0..2_000 {
            let (src, dst) = (HostId(flow * 7 % fabric.hosts), HostId(flow * 13 % fabric.hosts));
            let packet = Packet::bare(FlowId(flow), src, dst);
            let by_tables = downstream.onward(fabric.host_node(src), PortId(0), &packet);
            let by_tables: Vec<Hop> = by_tables.map(|hop| regular(k, hop)).collect();
            let edge = EdgeSwitch::new(k, fabric.rack_of(src).0, Balancing::Ecmp, SEED).unwrap();
            assert_eq!(edge.path(&packet).collect::<Vec<_>>(), by_tables);
        }
    }
}

proptest! {
    /// The same from the numbering alone, where no table would fit: up by the hash of each switch, then down.
    #[test]
    fn it_holds_for_every_fat_tree_that_the_ids_can_name(half in 2u32..=64, src: u32, dst: u32, flow: u32) {
        let (k, hosts, per_tier) = (2 * half, 2 * half * half * half, 2 * half * half);
        let (src, dst) = (src % hosts, dst % hosts);
        let packet = Packet::bare(FlowId(flow), HostId(src), HostId(dst));
        let (from, to) = (src / half, dst / half);
        let hash = |switch: u32| {
            hashed_choice(Balancing::Ecmp, &packet, switch_seed(SEED, SwitchId(switch)), half as usize).unwrap() as u32
        };
        let mut hops = Vec::new();
        let mut pass = |switch: u32, port: u32| hops.push((switch, port));
        if from != to {
            let plane = hash(from);
            pass(from, half + plane);
            let (up, down) = (per_tier + from / half * half + plane, per_tier + to / half * half + plane);
            if up != down {
                let core = hash(up);
                pass(up, half + core);
                pass(2 * per_tier + plane * half + core, to / half);
            }
            pass(down, to % half);
        }
        pass(to, dst % half);
        let expected = hops.into_iter().map(|(switch, port)| {
            regular(k, onward_path::Hop { switch: SwitchId(switch), port: PortId(port), distance: 0 })
        });
        let edge = EdgeSwitch::new(k, from, Balancing::Ecmp, SEED).unwrap();
        prop_assert_eq!(edge.path(&packet).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn at_one_distance_no_two_ports_share_their_ids() {
    let (fabric, downstream) = fat_tree(8);
    let mut seen = BTreeMap::new();
    for (flow, dst) in (0..40).flat_map(|flow| (0..fabric.hosts).map(move |dst| (flow, dst))) {
        let packet = Packet::bare(FlowId(flow), HostId(0), HostId(dst));
        for hop in downstream.onward(NodeId(0), PortId(0), &packet) {
            let known = *seen.entry((hop.distance, regular(8, hop))).or_insert((hop.switch, hop.port));
            assert_eq!(known, (hop.switch, hop.port));
        }
    }
}

#[test]
fn what_the_ids_can_not_name_is_refused() {
    let key = |k, edge, balancing| EdgeSwitch::new(k, edge, balancing, SEED).unwrap_err().key;
    assert_eq!(key(130, 0, Balancing::Ecmp), "k");
    assert_eq!(key(7, 0, Balancing::Ecmp), "k");
    assert_eq!(key(8, 32, Balancing::Ecmp), "edge");
    assert_eq!(key(8, 0, Balancing::Spray), "balancing");
}
