use fabric::{FabricSpec, Failures, Star};
use testing::walks::check_told_apart;

use super::*;

const ROOT: RootId = RootId { node: 0, port: 1, class: 3 };

/// A switch with a queue that pauses what comes by port 2.
fn switch() -> SwitchPart {
    let fabric = FabricSpec::Star(Star { hosts: 4, ..Star::default() }).build().unwrap();
    let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
    let port = || {
        Egress::new(super::super::egress::Place {
            ranks: [0; 4].into(),
            limits: vec![super::super::egress::Limits { pause: 10_000, resume: 5_000 }],
            nominates: true,
            up: false,
            ingresses: None,
            queues: 8,
            packet_time: units::Duration::from_ns(120),
        })
    };
    let place = Place {
        id: SwitchId(0),
        node: NodeId(4),
        switches: 1,
        downstream: Downstream::new(&fabric, routes, Vec::new(), 1),
        ports: vec![port(), port()],
        to_host: vec![true, true],
    };
    let mut switch = SwitchPart::new(&Config::default(), place);
    switch.holding.insert((ROOT, PortId(2)), 1);
    switch
}

#[test]
fn its_walk_names_whom_it_holds() {
    check_told_apart(
        &[],
        switch,
        |switch, walk| switch.walk(walk, &mut Pool::default()),
        &[
            ("for how many queues", |switch| *switch.holding.entry((ROOT, PortId(2))).or_default() += 1),
            ("that it holds somebody", |switch| switch.holding.clear()),
            ("whom else it holds", |switch| *switch.holding.entry((ROOT, PortId(3))).or_default() += 1),
            ("in the name of which root", |switch| {
                let count = switch.holding.remove(&(ROOT, PortId(2))).expect("it holds this port");
                switch.holding.insert((RootId { port: 0, ..ROOT }, PortId(2)), count);
            }),
            ("what is at a port", |switch| switch.ports[1].count_output(3, 0, 1)),
        ],
        &[("a counter", |switch| switch.counts.pauses += 1)],
    );
}
