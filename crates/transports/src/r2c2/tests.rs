//! Scenes on the virtual wire: one switch with R2C2's part, 100 Gbps, 2.5 us from host to host.

mod lost;
mod own;

use std::sync::{Arc, Mutex};

use fabric::Star;
use node::packet::flags;
use node::{EndpointParams, Event, Packet};
use proptest::strategy::Strategy;
use testing::{PacketFate, Scene, Wire, sent};
use units::{Duration, FlowId, HostId, Rate, SwitchId, Time};

use super::header::tests::headers;
use super::header::{Batch, FlowState};
use super::*;

/// What one control packet takes from host to host, and one full data packet.
const CONTROL: Duration = Duration::from_ps(2_506_400);
const DATA: Duration = Duration::from_ps(2_740_000);

fn scene(hosts: u32, config: Config, classes: &[&str]) -> Scene {
    let star = |site: &EndpointParams| {
        let fabric = fabric::FabricSpec::Star(Star { hosts: site.hosts, ..Star::default() }).build().unwrap();
        NetworkView { classes: classes.iter().map(|&name| name.to_owned()).collect(), ..NetworkView::new(fabric, site) }
    };
    let agent = Mutex::new(None);
    let scene = Scene::new(hosts, Wire::default(), |site| {
        *agent.lock().unwrap() = config.agent(&star(site), SwitchId(0));
        config.endpoint(site, &star(site))
    });
    scene.with_agent(agent.into_inner().unwrap().expect("a part in switches"))
}

fn count(scene: &Scene, host: u32, name: &str) -> u64 {
    scene.endpoint(host).counters().into_iter().find(|counter| counter.0 == name).expect("a counter of that name").1
}

/// What hosts began to announce, and what the announcements say.
fn announced(scene: &Scene) -> Vec<(Time, Packet, FlowState)> {
    sent!(scene, Header::Announce(state) => state)
}

fn finished(scene: &Scene) -> usize {
    sent!(scene, Header::Finish(_)).len()
}

/// The packets of assignments that hosts began to send.
fn assigned(scene: &Scene) -> Vec<(Time, Packet, Batch)> {
    sent!(scene, Header::Assign(batch) => batch)
}

const fn packets(count: u64) -> u64 {
    count * 1465
}

#[test]
fn a_lone_flow_starts_at_once_and_has_the_link() {
    let mut scene = scene(3, Config::default(), &[]);
    let flow = scene.send(Time::ZERO, 0, 1, packets(10));
    scene.run_until(Time::from_ms(1));
    // Sixteen bytes of broadcast go first; then a packet whenever 95% of 100 Gbps have earned its bits.
    let (broadcast, packet) = (Duration::from_ps(1_280), Duration::from_ps(126_316));
    assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + broadcast + packet * 9 + DATA));
    assert_eq!(scene.completed_at(flow), Some(scene.delivered_at(flow).unwrap() + CONTROL));
    // One broadcast when it starts, one when all is sent; every node has forgotten it.
    assert_eq!((announced(&scene).len(), finished(&scene)), (1, 1));
    for host in 0..3 {
        assert_eq!((count(&scene, host, "known_at_end"), count(&scene, host, "busy_at_end")), (0, 0));
    }
    assert!(scene.sent.iter().filter(|sent| sent.1.has(flags::ROUTER_ALERT)).all(|sent| sent.1.wire_bytes == 16));
}

#[test]
fn every_node_hears_of_a_flow_within_half_a_round_trip() {
    let mut scene = scene(5, Config::default(), &[]);
    scene.send(Time::ZERO, 0, 1, packets(100_000));
    scene.run_until(Time::ZERO + CONTROL + Duration::from_ns(20));
    for host in 0..5 {
        assert_eq!(count(&scene, host, "known_at_end"), 1, "host {host}");
    }
}

#[test]
fn what_an_application_produces_is_what_its_flow_demands() {
    let own = Allocation {
        traffic: "slow".into(),
        weight: 1,
        priority: 0,
        produced_at: Some(Rate::from_gbps(1)),
        routing: None,
    };
    let config = Config { allocations: vec![own], recompute: Duration::from_us(100), ..Config::default() };
    let mut scene = scene(3, config, &["slow"]);
    let flow = scene.send(Time::ZERO, 0, 1, packets(1_000));
    scene.run_until(Time::from_ms(3));
    // A megabyte and a half at 1 Gbps are 11.68 ms: 8 ns a byte.
    assert_eq!(scene.delivered_at(flow), None);
    let demands: Vec<u32> = announced(&scene).iter().map(|sent| sent.2.demand_kbps).collect();
    assert_eq!(demands[0], UNLIMITED);
    // 1 Gbps of message are 1500/1465 on the wire.
    let wire = 1_000_000.0 * 1500.0 / 1465.0;
    assert!(demands.len() >= 2 && (f64::from(demands[demands.len() - 1]) / wire - 1.0).abs() < 0.06, "{demands:?}");
    assert!(demands.len() < 8, "and then it stays: {demands:?}");
    scene.run_until(Time::from_ms(20));
    let produced = Time::ZERO + Rate::from_gbps(1).transmit(packets(1_000));
    assert!(scene.delivered_at(flow).is_some_and(|at| at >= produced && at < produced + Duration::from_us(100)));
}

#[test]
fn what_is_lost_is_asked_for_and_sent_again() {
    let mut scene = scene(2, Config::default(), &[]);
    let mut seen = 0;
    scene.spoil(move |_, packet| {
        seen += u32::from(packet.payload_bytes > 0);
        if packet.payload_bytes > 0 && [3, 4, 9, 10].contains(&seen) { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(10));
    scene.run_until(Time::from_ms(10));
    let Some(Event::Completed { sent_packets, resent_packets, .. }) =
        scene.events.iter().map(|event| event.2).find(|event| matches!(event, Event::Completed { .. }))
    else {
        panic!("{:?}", scene.events)
    };
    // The last is among them: only the probe says how many there are.
    assert_eq!((sent_packets, resent_packets), (14, 4));
    let delivered = scene.delivered_at(flow).unwrap();
    let asked = Time::ZERO + Duration::from_ms(1) + CONTROL * 2;
    assert!(delivered > asked && delivered < asked + Duration::from_us(10), "{delivered}");
    assert_eq!((announced(&scene).len(), finished(&scene)), (2, 2), "announced again");
}

#[test]
fn a_packet_whose_payload_was_cut_off_is_asked_for() {
    let mut scene = scene(2, Config::default(), &[]);
    let mut seen = 0;
    scene.touch(move |_, packet| {
        seen += u32::from(packet.payload_bytes > 0);
        if packet.payload_bytes > 0 && [2, 5].contains(&seen) {
            packet.flags |= flags::TRIMMED;
            (packet.payload_bytes, packet.wire_bytes) = (0, 40);
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(5));
    scene.run_until(Time::from_ms(10));
    assert!(scene.delivered_at(flow).is_some_and(|at| at > Time::from_ms(1)), "after it has been asked for");
    assert_eq!(sent!(scene, Header::Data(_)).len(), 7);
}

#[test]
fn a_receiver_that_is_not_there_fails_a_flow_in_the_end() {
    let mut scene = scene(2, Config { probes: 3, ..Config::default() }, &[]);
    scene.spoil(|_, packet| if packet.src == HostId(0) { PacketFate::Drop } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 0, 1, packets(3));
    scene.run_until(Time::from_ms(100));
    let ends: Vec<Event> = scene.events.iter().map(|event| event.2).collect();
    assert!(ends.iter().any(|event| matches!(event, Event::Failed { flow: of, .. } if *of == flow)), "{ends:?}");
    assert_eq!((count(&scene, 0, "probes"), count(&scene, 0, "busy_at_end")), (3, 0));
}

#[test]
fn a_broadcast_that_was_dropped_is_sent_again_by_another_tree() {
    let mut scene = scene(3, Config::default(), &[]);
    scene.send(Time::ZERO, 0, 1, packets(10_000));
    scene.run_until(Time::from_us(10));
    let (_, said, state) = announced(&scene)[0];
    let own = |scene: &Scene| -> Vec<(u8, u8)> {
        let own = announced(scene).into_iter().filter(|sent| sent.1.src == HostId(0));
        own.map(|sent| (sent.2.tree, sent.2.version)).collect()
    };
    assert_eq!(own(&scene).len(), 1);
    // What the switch would say of it.
    scene.touch(move |_, packet| {
        if packet.header::<Header>() == Header::Done || packet.payload_bytes > 0 && packet.dst == HostId(0) {
            packet.set_header(Header::Dropped(state));
            (packet.payload_bytes, packet.wire_bytes, packet.flags, packet.flow) = (0, 16, 0, said.flow);
        }
    });
    scene.send(Time::from_us(11), 2, 0, 100);
    scene.run_until(Time::from_us(30));
    let [(tree, version), again] = own(&scene)[..] else { panic!("{:?}", own(&scene)) };
    assert_eq!(again, ((tree + 1) % 4, version + 1), "another tree, and news to who has heard the first");
    assert_eq!(count(&scene, 0, "announced_again"), 1);
}

/// Sixteen nodes that take their network for a 4 x 4 torus, on the wire of all scenes.
fn rack_scene(config: Config) -> Scene {
    let torus = fabric::FabricSpec::Torus(fabric::Grid { dims: vec![4, 4], ..Default::default() }).build().unwrap();
    let (agent, network_view) = (Mutex::new(None), Mutex::new(None));
    let scene = Scene::new(16, Wire::default(), |site| {
        let star = Star { hosts: site.hosts, ..Star::default() };
        let star = NetworkView::new(fabric::FabricSpec::Star(star).build().unwrap(), site);
        *agent.lock().unwrap() = config.agent(&star, SwitchId(0));
        let mut network_view = network_view.lock().unwrap();
        config.endpoint(site, network_view.get_or_insert_with(|| NetworkView::new(torus.clone(), site)))
    });
    scene.with_agent(agent.into_inner().unwrap().expect("a part in switches"))
}

#[test]
fn assignments_that_were_dropped_are_said_again_by_another_tree() {
    // Host 0 has its turn after a millisecond. Over waypoints the flow of host 3 has more links than the one to its
    // neighbour.
    let adapt = Adapt { every: Duration::from_ms(1), older_than: Duration::from_us(50), ..Adapt::default() };
    let mut scene =
        rack_scene(Config { adapt: Some(adapt), refresh: Some(Duration::from_ms(100)), ..Config::default() });
    scene.send(Time::ZERO, 3, 2, packets(100_000));
    let mut first = true;
    scene.spoil(move |_, packet| {
        let lost = matches!(packet.header(), Header::Assign(_)) && std::mem::replace(&mut first, false);
        if lost { PacketFate::Drop } else { PacketFate::Pass }
    });
    scene.run_until(Time::from_us(1_100));
    let [(_, said, batch)] = assigned(&scene)[..] else { panic!("one search, one packet") };
    assert_eq!((said.src, said.wire_bytes, count(&scene, 3, "flows_rerouted")), (HostId(0), 5, 0));
    // What three switches would say of it, instead of another flow's data.
    scene.touch(move |_, packet| {
        if packet.dst == HostId(0) && packet.payload_bytes > 0 {
            packet.set_header(Header::DroppedAssign(batch));
            (packet.src, packet.payload_bytes, packet.wire_bytes, packet.flags) = (HostId(0), 0, 16, 0);
        }
    });
    scene.send(Time::from_us(1_101), 2, 0, packets(3));
    scene.run_until(Time::from_us(1_200));
    let [(.., said), (.., again)] = assigned(&scene)[..] else { panic!("said again, and once") };
    assert_eq!(again.tree, (said.tree + 1) % 4);
    assert_eq!((count(&scene, 0, "assigned_again"), count(&scene, 3, "flows_rerouted")), (1, 1));
    assert_eq!(count(&scene, 0, "malformed") + count(&scene, 3, "malformed"), 0);
}

#[test]
fn more_flows_than_numbers_wait_for_one() {
    let mut scene = scene(2, Config::default(), &[]);
    let flows: Vec<FlowId> = (0..300).map(|_| scene.send(Time::ZERO, 0, 1, packets(1))).collect();
    scene.run_until(Time::from_ms(1));
    assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some()));
    assert_eq!(announced(&scene).len(), 300);
}

#[test]
fn what_can_t_be_right_is_refused_with_advice() {
    let refused = |config: Config| config.check().unwrap_err().key;
    assert_eq!(refused(Config { headroom: 1.0, ..Config::default() }), "headroom");
    assert_eq!(refused(Config { headroom: f64::NAN, ..Config::default() }), "headroom");
    assert_eq!(refused(Config { trees: 0, ..Config::default() }), "trees");
    assert_eq!(refused(Config { trees: 17, ..Config::default() }), "trees");
    assert_eq!(refused(Config { refresh: Some(Duration::ZERO), ..Config::default() }), "refresh");
    assert_eq!(refused(Config { smoothing: 0.0, ..Config::default() }), "smoothing");
    assert_eq!(refused(Config { probes: 0, ..Config::default() }), "probes");
    assert_eq!(refused(Config { class: 8, ..Config::default() }), "class");
    let own = Allocation { traffic: "web".into(), weight: 0, priority: 0, produced_at: None, routing: None };
    assert_eq!(refused(Config { allocations: vec![own.clone()], ..Config::default() }), "allocations[0].weight");
    assert_eq!(Config { recompute: Duration::ZERO, ..Config::default() }.check(), Ok(()));
    let fabric = fabric::FabricSpec::Star(Star::default()).build().unwrap();
    let site = {
        let site = Mutex::new(None);
        let _ = Scene::new(2, Wire::default(), |of| {
            *site.lock().unwrap() = Some(of.clone());
            Config::default().endpoint(of, &NetworkView::star(of))
        });
        site.into_inner().unwrap().unwrap()
    };
    let network_view = NetworkView { classes: vec!["rpc".into()], ..NetworkView::new(fabric, &site) };
    let on = |config: Config| config.check_on(&network_view).unwrap_err();
    let problem = on(Config { allocations: vec![Allocation { weight: 1, ..own }], ..Config::default() });
    assert!(problem.key == "allocations[0].traffic" && problem.message.contains("\"rpc\""), "{problem:?}");
    assert_eq!(on(Config { routing: Routing::Wlb, ..Config::default() }).key, "routing");
    let site = EndpointParams { mtu_bytes: 35, header_bytes: 1, ..site };
    let small = NetworkView::new(fabric::FabricSpec::Star(Star::default()).build().unwrap(), &site);
    let problem = Config::default().check_on(&small).unwrap_err();
    assert!(problem.message.contains("35 bytes") && problem.message.contains("host.mtu"), "{problem:?}");
    let control = Control::Centralised { controller: 1_000_000 };
    assert_eq!(on(Config { control, ..Config::default() }).key, "control.centralised.controller");
}

/// Any header, of which half name small numbers: a host, or a packet that there is.
fn garbled() -> impl Strategy<Value = Header> {
    headers(proptest::num::u32::ANY.prop_map(|number| if number % 2 == 0 { number } else { number % 8 }))
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]

    /// Whatever is lost, late or twice: each flow ends once, and when all is over no node knows of a flow that there is
    /// not.
    #[test]
    fn flows_end_and_views_converge_whatever_befalls_packets(
        seed: u64, loss in 0u64..30, twice in 0u64..15, late in 0u64..15,
        flows in proptest::collection::vec((0u64..500, 0u32..4, 1u32..4, 1u64..400), 1..30),
    ) {
        let (recompute, refresh) = (Duration::from_us(50), Some(Duration::from_us(500)));
        let config = Config { recompute, refresh, ..Config::default() };
        let mut scene = scene(4, config, &[]);
        let mut random = units::Stream::new(seed, 0, "fate");
        // The burst ends; then a flow of each host shows that all know of all.
        scene.spoil(move |now, _| match random.below(100) {
            _ if now > Time::from_ms(3) => PacketFate::Pass,
            draw if draw < loss => PacketFate::Drop,
            draw if draw < loss + twice => PacketFate::Duplicate,
            draw if draw < loss + twice + late => PacketFate::Delay(Duration::from_ns(random.below(30_000))),
            _ => PacketFate::Pass,
        });
        let sent: Vec<FlowId> = flows.iter().map(|&(at, src, by, count)| {
            scene.send(Time::from_us(at), src, (src + by) % 4, packets(count) - 7)
        }).collect();
        scene.run_until(Time::from_ms(200));
        for &flow in &sent {
            let ends = scene.events.iter().filter(|event| match event.2 {
                Event::Completed { flow: of, .. } | Event::Failed { flow: of, .. } => of == flow,
                _ => false,
            });
            proptest::prop_assert_eq!(ends.count(), 1);
            proptest::prop_assert!(scene.delivered_at(flow).is_some());
        }
        let long: Vec<FlowId> = (0..4).map(|src| scene.send(Time::from_ms(200), src, (src + 1) % 4, packets(5_000)))
            .collect();
        // What is not there any more is forgotten by nodes that compute; 5,000 packets take 0.6 ms at the least.
        scene.run_until(Time::from_ms(200) + Duration::from_us(400));
        for host in 0..4 {
            proptest::prop_assert_eq!(count(&scene, host, "known_at_end"), 4);
            proptest::prop_assert_eq!(count(&scene, host, "malformed"), 0);
        }
        scene.run_until(Time::from_ms(300));
        proptest::prop_assert!(long.iter().all(|&flow| scene.completed_at(flow).is_some()));
        for host in 0..4 {
            proptest::prop_assert_eq!((count(&scene, host, "known_at_end"), count(&scene, host, "busy_at_end")), (0,
                0));
        }
    }

    #[test]
    fn garbage_from_a_socket_harms_nothing(
        garbage in proptest::collection::vec((proptest::num::u8::ANY, garbled(), proptest::num::u64::ANY, 0u32..6),
            1..80),
        seed: u64,
    ) {
        let mut scene = scene(3, Config { recompute: Duration::from_us(20), ..Config::default() }, &[]);
        let mut random = units::Stream::new(seed, 0, "garbage");
        let mut garbage = garbage.into_iter();
        scene.touch(move |_, packet| {
            if random.below(3) == 0 && let Some((flags, header, label, flow)) = garbage.next() {
                let mut other = Packet::new(FlowId(flow), HostId(random.below(3) as u32), packet.dst, header);
                (other.flags, other.label, other.wire_bytes) = (flags, label, 40);
                *packet = other;
            }
        });
        for src in 0..3 {
            scene.send(Time::from_us(u64::from(src)), src, (src + 1) % 3, packets(40));
        }
        scene.run_until(Time::from_ms(300));
    }
}

#[test]
fn the_network_s_trees_are_of_shortest_paths_and_reach_everybody_once() {
    let fabric = fabric::FabricSpec::Torus(fabric::Grid { dims: vec![4, 4, 3], ..Default::default() }).build().unwrap();
    let routes = fabric::Routes::compute(&fabric, &fabric::Failures::default());
    let (fabric, routes) = (Arc::new(fabric), Arc::new(routes));
    let network = Networks::default().of(&fabric, &routes);
    for (src, tree) in (0..48).flat_map(|src| (0..TREES_MAX).map(move |tree| (HostId(src), tree))) {
        let mut depth = vec![None; fabric.switches as usize];
        let mut front = vec![fabric.rack_of(src)];
        depth[front[0].index()] = Some(0);
        while let Some(switch) = front.pop() {
            for &port in network.children(src, tree, switch) {
                let child = fabric.as_switch(fabric.link(fabric.out_link(switch, port)).to).unwrap();
                assert_eq!(depth[child.index()], None, "twice");
                depth[child.index()] = depth[switch.index()].map(|depth: u32| depth + 1);
                front.push(child);
            }
        }
        for switch in (0..fabric.switches).map(SwitchId) {
            // Between hosts it is as many links, less the first and the last.
            assert_eq!(depth[switch.index()], routes.distance(switch, src).map(|links| links - 1));
        }
    }
}
