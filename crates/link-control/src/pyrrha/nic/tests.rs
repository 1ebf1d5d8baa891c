use fabric::{FabricSpec, Failures, Star};
use testing::walks::check_told_apart;

use super::*;

fn nic() -> NicPart {
    let fabric = FabricSpec::Star(Star { hosts: 4, ..Star::default() }).build().unwrap();
    let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
    NicPart {
        host: HostId(0),
        port: PortId(0),
        classes: 1,
        switches: 1,
        downstream: Downstream::new(&fabric, routes, Vec::new(), 1),
        paused: vec![RootId { node: 0, port: 1, class: 3 }],
        epoch: 4,
        pause_bytes: 10_000,
        resume_bytes: 5_000,
        is_root: false,
    }
}

#[test]
fn its_walk_names_paused_roots() {
    check_told_apart(
        &[],
        nic,
        |nic, walk| {
            nic.walk(walk);
            // An endpoint knows an epoch.
            walk.turn("epoch", &mut 3u32);
        },
        &[
            ("that a root is paused", |nic| nic.paused.push(RootId { node: 0, port: 2, class: 3 })),
            ("the class of a root that is paused", |nic| nic.paused[0].class = 4),
            ("which root is paused", |nic| nic.paused[0].port = 2),
            ("that it is a root itself", |nic| nic.is_root = true),
            ("how often flows were let go", |nic| nic.epoch += 1),
        ],
        &[],
    );
}
