//! Computed paths against those that real switches choose.

use crate::balance::Balancer;
use crate::pool::{self, Pool, Transit};
use crate::{Buffer, Overflow, Port, Received, Settings, Switch};
use fabric::{FabricSpec, Failures, FatTree, Grid, LeafSpine, Route};
use proptest::prelude::*;
use units::{Bytes, FlowId, HostId, LinkId, Rate, Stream, Time};

use super::*;

const SEED: u64 = 11;

/// All switches of a fabric, and the shared knowledge of them.
struct World {
    fabric: Fabric,
    routes: Arc<Routes>,
    switches: Vec<Switch>,
    downstream: Downstream,
}

impl World {
    fn new(spec: FabricSpec, balancing: Balancing) -> World {
        let fabric = spec.build().unwrap();
        let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
        let settings = Arc::new(Settings {
            buffer: Buffer::PerPort { bytes: Bytes(15_000) },
            overflow: Overflow::TailDrop,
            levels: Vec::new(),
            mark_at: Default::default(),
            marking: vec![None],
            early_drop: Vec::new(),
            header_bytes: 40,
        });
        let switch = |id: u32| {
            let ports = &fabric.ports[fabric.switch_node(SwitchId(id)).index()];
            let port = |_| Port::new(Rate::from_gbps(100), pool::Hop::Last, &settings.levels);
            let random = Stream::new(SEED, u64::from(id), "balance");
            let balancer = Balancer::new(balancing, switch_seed(SEED, SwitchId(id)), random);
            let (ports, mark) = (ports.iter().map(port).collect(), Stream::new(SEED, 0, "mark"));
            Switch::new(SwitchId(id), ports, routes.clone(), vec![balancer], settings.clone(), mark, None)
        };
        let switches = (0..fabric.switches).map(switch).collect();
        let downstream = Downstream::new(&fabric, routes.clone(), vec![balancing], SEED);
        World { fabric, routes, switches, downstream }
    }

    fn reroute(&mut self, failures: &Failures) {
        let routes = Arc::new(Routes::compute(&self.fabric, failures));
        self.routes = routes.clone();
        let mut pool = Pool::default();
        self.switches.iter_mut().for_each(|switch| switch.set_routes(Time::ZERO, routes.clone(), &mut pool));
        self.downstream.set_routes(routes);
    }

    fn packet(&self, flow: u32, src: u32, dst: u32) -> Packet {
        let mut packet = Packet::bare(FlowId(flow), HostId(src), HostId(dst));
        packet.wire_bytes = 1500;
        packet
    }

    fn switch(&self, name: &str) -> SwitchId {
        self.fabric.as_switch(self.fabric.find(name).unwrap()).unwrap()
    }

    /// Sends a packet from switch to switch. Returns each place with the packet and the port as it left.
    fn send(&mut self, mut packet: Packet) -> Vec<(NodeId, PortId, Packet)> {
        let mut pool = Pool::default();
        let mut at = (self.fabric.host_node(packet.src), PortId(0));
        let mut places = vec![(at.0, at.1, packet)];
        while let Some(id) = self.fabric.as_switch(self.fabric.link(self.fabric.ports[at.0.index()][at.1.index()]).to) {
            let switch = &mut self.switches[id.index()];
            let slot = pool.insert(packet, Transit::default());
            let Received::Queued(out) = switch.receive(Time::ZERO, PortId(0), &mut pool, slot) else { break };
            let now = switch.port(out).free_at();
            let sent = switch.transmit(now, out, &mut pool).unwrap();
            packet = pool.remove(sent).packet;
            at = (self.fabric.switch_node(id), out);
            places.push((at.0, at.1, packet));
        }
        places
    }

    /// Checks that every place on the path predicts the rest of it.
    fn foretells(&mut self, packet: Packet) {
        let places = self.send(packet);
        for (index, (from, out, packet)) in places.iter().enumerate() {
            let rest = places[index..].iter().enumerate().filter_map(|(distance, &(node, port, _))| {
                let switch = self.fabric.as_switch(node)?;
                Some(Hop { switch, port, distance: distance as u32 })
            });
            let told: Vec<Hop> = self.downstream.onward(*from, *out, packet).collect();
            assert_eq!(told, rest.collect::<Vec<_>>(), "at {from} of {packet:?}");
        }
    }
}

fn fat_tree(k: u32) -> FabricSpec {
    FabricSpec::FatTree(FatTree { k, ..FatTree::default() })
}

fn worlds() -> impl Strategy<Value = (FabricSpec, Balancing)> {
    let torus = Grid { dims: vec![3, 3], ..Grid::default() };
    let fabrics = [fat_tree(4), FabricSpec::LeafSpine(LeafSpine::default()), FabricSpec::Torus(torus)];
    let hashes = [Balancing::Ecmp, Balancing::Skewed { skew: 0.5 }, Balancing::Skewed { skew: 1.0 }];
    (prop::sample::select(fabrics.to_vec()), prop::sample::select(hashes.to_vec()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn by_hash_the_path_is_what_the_switches_choose((spec, balancing) in worlds(), pairs in pairs(), dead: u32,
        label: u32) {
        let mut world = World::new(spec, balancing);
        let dead = LinkId(dead % world.fabric.links.len() as u32);
        for failures in [Failures::default(), Failures { links: [dead].into(), ..Failures::default() }] {
            world.reroute(&failures);
            for &(flow, src, dst) in &pairs {
                let hosts = world.fabric.hosts;
                let mut packet = world.packet(flow, src % hosts, dst % hosts);
                world.foretells(packet);
                // As in PLB: another label, another path.
                packet.set_flow_label(label);
                world.foretells(packet);
            }
        }
    }

    #[test]
    fn a_source_route_is_the_path_whatever_switches_would_choose((spec, _) in worlds(), pairs in pairs()) {
        let mut world = World::new(spec, Balancing::Spray);
        let mut stream = Stream::new(1, 0, "route");
        for (flow, src, dst) in pairs {
            let hosts = world.fabric.hosts;
            let (src, dst) = (src % hosts, dst % hosts);
            let Ok(route) = Route::sample(&world.fabric, &world.routes, HostId(src), HostId(dst), &mut stream) else {
                continue;
            };
            let ports: Vec<PortId> = (0..8).map(|hop| route.port(hop, world.fabric.port_bits())).collect();
            let mut packet = world.packet(flow, src, dst);
            packet.flags |= flags::SOURCE_ROUTED;
            packet.label = Route::new(&ports, 8).unwrap().0;
            world.foretells(packet);
        }
    }
}

fn pairs() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
    prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 20)
}

#[test]
fn a_source_route_that_loops_or_names_no_port_ends() {
    let mut world = World::new(FabricSpec::LeafSpine(LeafSpine::default()), Balancing::Ecmp);
    let mut packet = world.packet(1, 0, 143);
    packet.flags |= flags::SOURCE_ROUTED;
    // Up by leaf 0's first uplink and back down to leaf 0, until the label's eight hops are used up.
    packet.label = 0x0010_0010_0010_0010;
    world.foretells(packet);
    packet.label = 0xFF10;
    world.foretells(packet);
    let hops = world.downstream.onward(NodeId(0), PortId(0), &packet).count();
    assert_eq!(hops, 1);
}

/// The certain hops from a switch or a host to the last host of the fabric.
fn certain(world: &World, from: &str, out: u32) -> Vec<(String, u32, u32)> {
    let packet = world.packet(5, 0, world.fabric.hosts - 1);
    let from = world.fabric.find(from).unwrap();
    let name = |hop: Hop| world.fabric.names[world.fabric.switch_node(hop.switch).index()].clone();
    world.downstream.onward(from, PortId(out), &packet).map(|hop| (name(hop), hop.port.0, hop.distance)).collect()
}

fn named(hops: &[(&str, u32, u32)]) -> Vec<(String, u32, u32)> {
    hops.iter().map(|&(name, port, distance)| (name.to_owned(), port, distance)).collect()
}

#[test]
fn with_adaptive_balancing_only_the_shared_end_is_certain() {
    for balancing in [Balancing::Spray, Balancing::RoundRobin, Balancing::Drill { samples: 2, memory: 1 }] {
        let world = World::new(FabricSpec::LeafSpine(LeafSpine::default()), balancing);
        // Certain are leaf 0's uplink and the last port of leaf 8. The spine is not, though this packet takes spine 2.
        assert_eq!(certain(&world, "leaf0", 18), named(&[("leaf0", 18, 0), ("leaf8", 15, 2)]));
        assert_eq!(certain(&world, "host0", 0), named(&[("leaf8", 15, 3)]));
        assert_eq!(certain(&world, "spine3", 8), named(&[("spine3", 8, 0), ("leaf8", 15, 1)]));
        assert_eq!(certain(&world, "leaf8", 15), named(&[("leaf8", 15, 0)]));
        // In a fat-tree, a packet enters a pod at the aggregation switch with the same index as the one by which it
        // left its own pod.
        let world = World::new(fat_tree(4), balancing);
        assert_eq!(certain(&world, "edge0", 2), named(&[("edge0", 2, 0), ("edge7", 1, 4)]));
        assert_eq!(certain(&world, "agg1", 3), named(&[("agg1", 3, 0), ("agg7", 1, 2), ("edge7", 1, 3)]));
        assert_eq!(certain(&world, "core0", 3), named(&[("core0", 3, 0), ("agg6", 1, 1), ("edge7", 1, 2)]));
    }
}

#[test]
fn after_a_failure_the_path_follows_the_new_tables() {
    let mut world =
        World::new(FabricSpec::LeafSpine(LeafSpine { spines: 2, ..LeafSpine::default() }), Balancing::Spray);
    let (spine, leaf) = (world.switch("spine0"), world.switch("leaf8"));
    let down = world.fabric.links_between(world.fabric.switch_node(spine), world.fabric.switch_node(leaf)).next();
    assert_eq!(certain(&world, "leaf0", 17), named(&[("leaf0", 17, 0), ("leaf8", 15, 2)]));
    world.reroute(&Failures { links: down.into_iter().collect(), ..Failures::default() });
    // With one spine left there is no choice.
    assert_eq!(certain(&world, "leaf0", 17), named(&[("leaf0", 17, 0), ("spine1", 8, 1), ("leaf8", 15, 2)]));
}
