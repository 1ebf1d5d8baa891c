use std::collections::BTreeSet;

use fabric::{FabricSpec, Failures, FatTree, Grid};
use node::Clock;
use units::{Duration, FlowId, LinkId, Rate};

use super::*;
use crate::ndp::header::{Header, Progress};

fn paths(spec: FabricSpec, src: u32) -> (Paths, Arc<Fabric>) {
    let site = EndpointParams {
        host: HostId(src),
        hosts: 16,
        nic_rate: Rate::from_gbps(100),
        data_rtt: Duration::from_us(5),
        data_rtts: vec![(5, Duration::from_us(5))],
        control_rtt: Duration::from_us(5),
        mtu_bytes: 1500,
        header_bytes: 40,
        clock: Clock::default(),
        transport: 0,
    };
    let network = NetworkView::new(spec.build().unwrap(), &site);
    (Paths::new(&Config::default(), &site, &network), network.fabric)
}

fn fat_tree() -> FabricSpec {
    FabricSpec::FatTree(FatTree { k: 4, ..FatTree::default() })
}

/// The links of a packet's route.
fn links(fabric: &Fabric, packet: &Packet) -> Vec<LinkId> {
    let (mut packet, mut at) = (*packet, fabric.rack_of(packet.src));
    let mut links = Vec::new();
    loop {
        let port = PortId(packet.routed_to().expect("it has a route"));
        links.push(fabric.out_link(at, port));
        let to = fabric.link(links[links.len() - 1]).to;
        match fabric.as_switch(to) {
            Some(switch) => (at, packet.hops) = (switch, packet.hops + 1),
            None => {
                assert_eq!(fabric.as_host(to), Some(packet.dst));
                return links;
            }
        }
    }
}

fn next(paths: &mut Paths, dst: u32, order: Order, avoid: Option<PathId>, random: &mut Stream) -> (Packet, PathId) {
    let mut packet = Packet::new(FlowId(0), paths.me, HostId(dst), Header::Pull(Progress { pull: 0, acked: 0 }));
    let path = paths.route(&mut packet, order, avoid, random).expect("there is a path");
    (packet, path)
}

#[test]
fn each_path_is_taken_once_in_each_permutation() {
    // Between pods of a fat-tree with four ports a switch there are four paths, within one two; in a torus many,
    // over 3-bit routes.
    let torus = FabricSpec::Torus(Grid { dims: vec![12, 12], ..Grid::default() });
    for (spec, dst, count) in [(fat_tree(), 15, 4), (fat_tree(), 2, 2), (fat_tree(), 1, 1), (torus, 66, 1_000)] {
        let (mut paths, fabric) = paths(spec, 0);
        let random = &mut Stream::new(3, 0, "paths");
        let mut orders = BTreeSet::new();
        for _ in 0..20 {
            let round = (0..count.min(4)).map(|_| {
                next(&mut paths, dst, Order::Control, None, random);
                links(&fabric, &next(&mut paths, dst, Order::Data, None, random).0)
            });
            let round: Vec<Vec<LinkId>> = round.collect();
            assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), round.len(), "to {dst}");
            orders.insert(round);
        }
        assert!(count == 1 || orders.len() > 1, "they differ");
    }
}

#[test]
fn a_lost_packet_goes_another_way() {
    let (mut paths, _) = paths(fat_tree(), 0);
    let random = &mut Stream::new(4, 0, "paths");
    for _ in 0..100 {
        let (_, lost) = next(&mut paths, 2, Order::Data, None, random);
        assert_ne!(next(&mut paths, 2, Order::Data, Some(lost), random).1, lost);
    }
}

#[test]
fn routes_that_change_lead_around() {
    let (mut paths, fabric) = paths(fat_tree(), 0);
    let random = &mut Stream::new(5, 0, "paths");
    let (packet, path) = next(&mut paths, 15, Order::Data, None, random);
    let dead = links(&fabric, &packet)[1];
    let failures = Failures { links: BTreeSet::from([dead, Fabric::reverse(dead)]), ..Failures::default() };
    paths.set_routes(&Arc::new(Routes::compute(&fabric, &failures)));
    // What was sent before counts for no path of now.
    paths.count(HostId(15), path, Outcome::Lost);
    for _ in 0..12 {
        let (packet, _) = next(&mut paths, 15, Order::Data, None, random);
        assert!(!links(&fabric, &packet).contains(&dead));
    }
}

#[test]
fn a_path_that_loses_everything_is_left_out_for_a_while() {
    let (mut paths, fabric) = paths(fat_tree(), 0);
    let random = &mut Stream::new(6, 0, "paths");
    let dead = links(&fabric, &next(&mut paths, 15, Order::Data, None, random).0)[1];
    let mut met = Vec::new();
    for round in 0..20_000 {
        let (packet, path) = next(&mut paths, 15, Order::Data, None, random);
        let lost = links(&fabric, &packet).contains(&dead);
        met.extend(lost.then_some(round));
        paths.count(HostId(15), path, if lost { Outcome::Lost } else { Outcome::Acked });
    }
    // Two of the four paths begin with it. Of 20,000 packets half would be lost; at once few are, and some later to
    // find out whether it still is dead.
    assert!(met.len() < 200 && met.iter().any(|&round| round > 5_000), "{}", met.len());
}

fn counts(acks: u32, nacks: u32, losses: u32) -> Counts {
    Counts { acks, nacks, losses }
}

#[test]
fn a_path_is_left_out_when_it_is_worse_than_the_others_and_not_when_all_are_bad() {
    let of = |paths: &[Counts]| {
        let mut total = Counts::default();
        paths.iter().for_each(|path| total.add(path));
        paths.iter().map(|path| path.is_outlier(&total, paths.len() as u32)).collect::<Vec<_>>()
    };
    // A link that is slower than the others trims; an incast trims everywhere.
    assert_eq!(of(&[counts(200, 2, 0), counts(60, 60, 0), counts(200, 0, 0)]), [false, true, false]);
    assert_eq!(of(&[counts(60, 60, 0), counts(62, 58, 0), counts(58, 62, 0)]), [false; 3]);
    // Little is known, or little is wrong.
    assert_eq!(of(&[counts(200, 2, 0), counts(9, 60, 0)]), [false, false]);
    assert_eq!(of(&[counts(200, 2, 0), counts(200, 50, 0)]), [false, false]);
    // A dead link, of two paths; two of four; and a network that loses here and there.
    assert_eq!(of(&[counts(50, 0, 0), counts(0, 0, 6)]), [false, true]);
    assert_eq!(of(&[counts(50, 0, 0), counts(0, 0, 5), counts(0, 0, 5), counts(9, 1, 0)]), [false, true, true, false]);
    assert_eq!(of(&[counts(900, 0, 3), counts(900, 0, 5), counts(900, 0, 4), counts(900, 0, 5)]), [false; 4]);
    assert_eq!(of(&[counts(0, 0, 50)]), [false], "the only path");
}
