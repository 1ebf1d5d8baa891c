//! What a node knows at once: its own flows (section 3.1).

use super::*;

/// How many packets of each flow left in a time.
fn left(scene: &Scene, flows: u32, from: Time, to: Time) -> Vec<usize> {
    let data = sent!(scene, Header::Data(_));
    let of = |flow| data.iter().filter(|of| of.1.flow == FlowId(flow) && of.0 >= from && of.0 < to).count();
    (0..flows).map(of).collect()
}

/// Packets of 1500 bytes at 95% of 100 Gbps.
fn at_the_whole_rate(span: Duration) -> f64 {
    span.ps() as f64 * 1e-12 * 0.95 * 100e9 / 12_000.0
}

#[test]
fn flows_that_start_at_one_node_share_its_own_link_at_once() {
    for flows in [2, 10, 40] {
        let mut scene = scene(4, Config::default(), &[]);
        for flow in 0..flows {
            scene.send(Time::ZERO, 0, 1 + flow % 3, packets(10_000));
        }
        scene.run_until(Time::from_us(450));
        // Before the first computation of rates at 500 us.
        let (from, to) = (Time::from_us(50), Time::from_us(450));
        let each = at_the_whole_rate(to.since(from)) / f64::from(flows);
        let sent = left(&scene, flows, from, to);
        // Forty have 2.6% more than 95% of the link together, and still less than the link.
        let most = if flows == 40 { 1.04 * each } else { each + 1.0 };
        assert!(sent.iter().all(|&sent| (each - 1.0..=most).contains(&(sent as f64))), "{sent:?} for {each}");
        assert!(sent.iter().sum::<usize>() as f64 <= at_the_whole_rate(to.since(from)) / 0.95, "{sent:?}");
    }
}

#[test]
fn what_a_flow_that_has_ended_had_of_the_node_s_own_link_is_given_back_at_once() {
    let mut scene = scene(3, Config::default(), &[]);
    scene.send(Time::ZERO, 0, 1, packets(10_000));
    let short = scene.send(Time::from_us(10), 0, 2, packets(40));
    scene.run_until(Time::from_us(450));
    let span = |from, to| (Time::from_us(from), Time::from_us(to));
    // Of two flows the short one needs 10 us for 40 packets.
    for ((from, to), share) in [(span(1, 10), 1.0), (span(11, 20), 0.5), (span(25, 450), 1.0)] {
        let expected = at_the_whole_rate(to.since(from)) * share;
        let sent = left(&scene, 1, from, to)[0] as f64;
        assert!((sent - expected).abs() <= 1.0 + expected * 0.001, "{sent} for {expected} from {from}");
    }
    assert!(scene.delivered_at(short).unwrap() < Time::from_us(25));
}

#[test]
fn refreshes_go_over_trees_that_share_no_path_in_turn() {
    let config = Config { refresh: Some(Duration::from_us(50)), ..Config::default() };
    let mut scene = scene(3, config, &[]);
    scene.send(Time::ZERO, 0, 1, packets(4_000));
    scene.run_until(Time::from_us(320));
    let trees: Vec<u8> = announced(&scene).iter().map(|of| of.2.tree).collect();
    let [one, other] = [TREES_MAX, TREES_MAX + 1];
    assert_eq!(trees, [0, one, other, one, other, one, other]);
    assert_eq!(count(&scene, 2, "known_at_end"), 1);
}
