//! The round trips that papers print for their fabrics, as runs of one packet and its answer, derived term by term.

use run::Plan;
use units::{Duration, HostId, Rate};

use crate::{of_flows, run_alone, scenario};

/// A full packet from one host to another, and the control packet that answers it.
fn lone_packet(fabric: &str, host: &str, src: u32, dst: u32) -> String {
    format!(
        r#"
        transport = "udp"
        measure = {{ completion = "acknowledged" }}
        host = {{ {host} }}
        fabric = {{ {fabric} }}
        [[traffic]]
        sizes = {{ constant = "1460B" }}
        arrivals = "all_at_once"
        senders = "{src}"
        receivers = "{dst}"
        "#
    )
}

/// Rounded as papers print: microseconds with one decimal.
fn printed(ps: u64) -> String {
    format!("{:.1}", Duration::from_ps(ps).us_f64())
}

#[test]
fn leaf_spine_4_6_us() {
    // Harmony section 5: 144 hosts at 100 Gbps, spines at 400 Gbps, 200 ns a link, 450 ns a switch.
    let scene = lone_packet("leaf_spine = {}", "", 0, 143);
    // One way across racks: host, leaf, spine, leaf, host.
    let one_way = 4 * 200_000 + 3 * 450_000;
    // 80 ps a byte at 100 Gbps and 20 at 400; host link, two spine links, host link.
    let data = 1500 * (80 + 20 + 20 + 80);
    let answer = 40 * (80 + 20 + 20 + 80);
    let result = run_alone(&scene);
    assert_eq!(of_flows(&result, "delivered_ps"), [one_way + data]);
    assert_eq!(of_flows(&result, "fct_ps"), [2 * one_way + data + answer]);
    assert_eq!(printed(of_flows(&result, "fct_ps")[0]), "4.6");
    // What hosts are told, and what slowdown divides by, is the same.
    let plan = Plan::new(&scenario(&scene)).unwrap();
    assert_eq!(plan.sites[0].data_rtt.ps(), 2 * one_way + data + answer);
    assert_eq!(plan.sites[0].control_rtt.ps(), 2 * one_way + 2 * answer);
    assert_eq!(of_flows(&result, "ideal_ps"), of_flows(&result, "fct_ps"));
    // Nothing else is in it: four links each way.
    assert_eq!(result.info.packet_hops, 8);
}

#[test]
fn fat_tree_7_6_us() {
    // Harmony section 5: 1,024 hosts, all links 100 Gbps; host, edge, aggregation, core, aggregation, edge, host.
    let result = run_alone(&lone_packet("fat_tree = {}", "", 0, 1023));
    let one_way = 6 * 200_000 + 5 * 450_000;
    assert_eq!(of_flows(&result, "fct_ps"), [2 * one_way + 6 * 80 * (1500 + 40)]);
    assert_eq!(printed(of_flows(&result, "fct_ps")[0]), "7.6");
    assert_eq!(result.info.packet_hops, 12);
}

/// dcPIM's simulator puts 650 ns on every link: 200 ns of propagation and 450 ns of the node that the bits come from,
/// a host as well as a switch. So each packet is delayed once by 450 ns in a host, which is 225 ns at either end.
const DCPIM_HOST: &str = r#"delay = "225ns""#;

#[test]
fn dcpim_data_5_8_us() {
    // dcPIM section 3.4's "unloaded RTT for data packets", a full packet each way: twice 4 x 650 ns, and 300 ns of
    // transmission. It makes the bandwidth-delay product of 72.5 KB.
    let there = run_alone(&lone_packet("leaf_spine = {}", DCPIM_HOST, 0, 143));
    let back = run_alone(&lone_packet("leaf_spine = {}", DCPIM_HOST, 143, 0));
    let rtt = of_flows(&there, "delivered_ps")[0] + of_flows(&back, "delivered_ps")[0];
    assert_eq!(rtt, 2 * (4 * 650_000 + 1500 * (80 + 20 + 20 + 80)));
    assert_eq!(printed(rtt), "5.8");
    assert_eq!(Rate::from_gbps(100).bytes_in(Duration::from_ps(rtt)), 72_500);
}

#[test]
fn dcpim_control_5_2_us() {
    let scene = lone_packet("leaf_spine = {}", DCPIM_HOST, 0, 143);
    let plan = Plan::new(&scenario(&scene)).unwrap();
    let control = 40 * (80 + 20 + 20 + 80);
    assert_eq!(plan.sites[0].control_rtt.ps(), 2 * (4 * 650_000 + control));
    assert_eq!(printed(plan.sites[0].control_rtt.ps()), "5.2");
    // Half of it is the way back of a lone packet's answer.
    let result = run_alone(&scene);
    assert_eq!(of_flows(&result, "return_ps"), [4 * 650_000 + control]);
}

#[test]
fn a_train_of_packets_is_paced_by_its_slowest_link() {
    // Ten full packets and 100 B more: the tenth arrives 9 x 120 ns after the first, and the short one, which has
    // waited for it at the last link at the latest, as much later as its 140 B take there.
    let scene = lone_packet("leaf_spine = {}", "", 0, 143).replace("1460B", "14700B");
    let result = run_alone(&scene);
    let short = 140 * 80;
    assert_eq!(of_flows(&result, "delivered_ps"), [2_150_000 + 300_000 + 9 * 120_000 + short]);
}

#[test]
fn cut_through_waits_for_headers_only() {
    // Each switch forwards when 64 B are in; the last link ends with the packet's last bit.
    let scene =
        lone_packet("leaf_spine = {}", "", 0, 143).replace("[[traffic]]", "switch.cut_through = true\n[[traffic]]");
    let result = run_alone(&scene);
    assert_eq!(of_flows(&result, "delivered_ps"), [2_150_000 + 64 * (80 + 20 + 20) + 1500 * 80]);
}

#[test]
fn hosts_of_one_rack_and_of_a_star_have_one_switch_between_them() {
    let near = 2 * 200_000 + 450_000 + 1500 * 2 * 80;
    for (fabric, dst) in [("leaf_spine = {}", 15), ("star = {}", 7), ("fat_tree = {}", 7)] {
        let result = run_alone(&lone_packet(fabric, "", 0, dst));
        assert_eq!(of_flows(&result, "delivered_ps"), [near], "{fabric}");
    }
}

#[test]
fn a_torus_takes_the_short_way_round() {
    // R2C2 section 5.2: 512 nodes, 10 Gbps and 100 ns a link. Host 7 is at (7, 0, 0): one hop from host 0 around the
    // ring.
    let scene = |dst| lone_packet("torus = { host_rate = \"10Gbps\" }", "", 0, dst);
    let hop = 100_000 + 1500 * 800;
    let host_links = 2 * 1500 * 800;
    assert_eq!(of_flows(&run_alone(&scene(7)), "delivered_ps"), [host_links + hop]);
    // The farthest node is four hops away in each dimension: (4, 4, 4).
    assert_eq!(of_flows(&run_alone(&scene(4 + 8 * (4 + 8 * 4))), "delivered_ps"), [host_links + 12 * hop]);
    // Nobody is farther, so that this is also the round trip that transports are told of.
    let plan = Plan::new(&scenario(&scene(7))).unwrap();
    assert_eq!(
        plan.sites[HostId(5).index()].data_rtt.ps(),
        host_links + 12 * hop + 2 * 40 * 800 + 12 * (100_000 + 40 * 800)
    );
    // A mesh has no way round: seven hops.
    let mesh = scene(7).replace("torus", "mesh");
    assert_eq!(of_flows(&run_alone(&mesh), "delivered_ps"), [host_links + 7 * hop]);
}
