use driver::{End, NodePort, Wants};
use node::{Loss, Packet};

use super::*;

/// Packets that links lost on their way to a host, and to a switch.
#[derive(Default, node::State)]
#[state(fixed)]
struct Losses {
    to_hosts: u64,
    to_switches: u64,
}

impl Probe for Losses {
    fn wants(&self) -> Wants {
        Wants { drops: true, ..Wants::default() }
    }

    fn on_drop(&mut self, _: Time, at: NodePort, _: &Packet, why: Loss) {
        assert_eq!(why, Loss::Link);
        match at.is_switch {
            false => self.to_hosts += 1,
            true => self.to_switches += 1,
        }
    }
}

#[test]
fn a_probe_is_told_of_packets_that_links_lose_or_damage() {
    let text = r#"
        transport = "dctcp"
        measure.end = "1ms"
        fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 1, spine_rate = "100Gbps" }
        failure = [
            { at = "0s", link = ["host0", "leaf0"], loss = 0.05 },
            { at = "0s", link = ["host2", "leaf1"], bit_error_rate = 1e-6 },
        ]
        [[traffic]]
        sizes.constant = "5MB"
        arrivals = "all_at_once"
        senders = "0"
        receivers = "2"
        flows = 1
    "#;
    let plan = Plan::new(&scenario::read(text, "scene.toml", &[]).unwrap()).unwrap();
    let mut parts = parts(&plan, &Cut::new(&plan, 1), &ReceivedBytes::default(), Losses::default);
    let bounds = engine::Bounds::new(plan.lookahead, plan.horizon, 1);
    engine::run(&mut parts, 1, bounds, |_, _| false);
    let Part(driver, _) = &parts[0];
    let lost = |to_host: bool| {
        let link_rxs = driver.links.link_rxs.iter().filter(|link_rx| matches!(link_rx.to, End::Host { .. }) == to_host);
        link_rxs.filter_map(|link_rx| link_rx.noise.as_deref()).map(|of| of.lossy_packets + of.corrupted_packets).sum()
    };
    let told = &driver.probe;
    assert!(told.to_hosts > 0 && told.to_switches > 0);
    assert_eq!((told.to_hosts, told.to_switches), (lost(true), lost(false)));
}
