//! Whole runs on the real clock. The machine may be busy, so what is asserted here holds however late things are; that
//! nothing was late is asserted only where it was not.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catalogue::Transport;
use clearway_live::frame::{Codec, Frame, Refusal};
use clearway_live::{RunResult, run, run_at};
use run::{Data, Journey, Plan, Table};
use scenario::Scenario;
use units::{HostId, LinkId, Time};

/// 8 hosts on a switch at 50 Mbps; every host sends one message and gets one, so no queue grows.
const PERMUTATION: &str = r#"
[fabric.star]
rate = "50Mbps"
propagation = "200us"
switch_delay = "200us"
[measure]
end = "2s"
interval = "10ms"
[[traffic]]
sizes = { constant = "100KB" }
arrivals = "all_at_once"
pattern = "permutation"
"#;

fn read(text: &str, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<(String, String)> = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    scenario::read(text, "test", &sets).unwrap_or_else(|error| panic!("{error}"))
}

fn column<'a>(tables: &'a [Table], table: &str, name: &str) -> &'a [u64] {
    let column = tables.iter().find(|known| known.name == table).and_then(|table| table.column(name));
    match column.map(|column| &column.data) {
        Some(Data::U64(values) | Data::OptU64(values)) => values,
        _ => panic!("{table}.{name}"),
    }
}

fn finding(result: &RunResult, name: &str) -> bool {
    result.info.audit.iter().find(|finding| finding.name == name).expect(name).ok
}

/// Neither time nor frames were lost, which a busy machine may do to us.
fn undisturbed(result: &RunResult) -> bool {
    result.info.lost_ps == 0 && finding(result, "sockets lost nothing")
}

/// Whatever the machine did: nothing wrong was taken for right, and nothing is unaccounted for.
fn sound(result: &RunResult) {
    for name in ["content right", "bytes conserved", "reported once", "delivered after start, completed after delivery"]
    {
        assert!(finding(result, name), "{:#?}", result.info.audit);
    }
    let (fct, ideal) = (column(&result.tables, "flows", "fct_ps"), column(&result.tables, "flows", "ideal_ps"));
    assert!(fct.iter().zip(ideal).all(|(fct, ideal)| fct >= ideal), "no flow is faster than alone in the network");
}

#[test]
fn every_transport_delivers_right_content_over_sockets() {
    for name in Transport::NAMES {
        let scenario = read(PERMUTATION, &[("transport", name)]);
        let result = run(&scenario, |_| false).expect("it can be run");
        sound(&result);
        if undisturbed(&result) {
            assert_eq!((result.info.ended, result.info.flows_completed), ("goal", 8), "{name}: {:#?}", result.info);
            assert!(result.info.content_bytes >= 800_000, "{name}");
            // Each of the same packets takes as long as in simulated time, but for what the machine is late: at most
            // a node's credit at the end, and some of what lies before it if the machine lets a frame be overtaken.
            let simulated = sim::run(&scenario, 1, |_| false).expect("it can be simulated");
            let mean = |tables: &[Table]| column(tables, "flows", "fct_ps").iter().sum::<u64>() as f64 / 8.0 * 1e-12;
            let (there, here) = (mean(&simulated.tables), mean(&result.tables));
            assert!(here >= 0.9 * there && here <= 2.0 * there + 0.01, "{name}: {here} s, simulated {there} s");
        }
    }
}

#[test]
fn what_is_given_up_is_submitted_again() {
    let text = r#"
        switch.buffer.per_port.bytes = "30KB"
        measure.end = "4s"
        [fabric.star]
        rate = "50Mbps"
        propagation = "200us"
        [[traffic]]
        transport = { udp = { patience = "50ms" } }
        resubmit = [{ over = "dctcp" }]
        sizes = { constant = "100KB" }
        arrivals = "all_at_once"
        pattern.incast.degree = 4
        flows = 4
    "#;
    let result = run(&read(text, &[]), |_| false).expect("it can be run");
    sound(&result);
    let given_up = |name: &str| match &result.tables[0].column(name).expect(name).data {
        Data::U32(submissions) => submissions.iter().filter(|times| **times == 2).count(),
        _ => panic!("{name} are counts"),
    };
    // Of 280 packets that come while 70 leave, 20 find room; and who has lost one starts over.
    assert!(
        given_up("submissions") == 4 && result.info.flows_completed == 4 || !undisturbed(&result),
        "{:#?}",
        result.info
    );
}

#[test]
fn several_switches_and_cut_through() {
    let leaf_spine = PERMUTATION.replace(
        "[fabric.star]\nrate = \"50Mbps\"",
        "[switch]\ncut_through = true\nbalancing = \"spray\"\n[fabric.leaf_spine]\nracks = 2\nhosts_per_rack = 4\n\
         spines = 2\nhost_rate = \"20Mbps\"\nspine_rate = \"40Mbps\"",
    );
    let result = run(&read(&leaf_spine, &[]), |_| false).expect("it can be run");
    sound(&result);
    assert!(result.info.flows_completed == 8 || !undisturbed(&result), "{:#?}", result.info);
}

/// Some of the transports overrun a short queue; whichever does, what is left of its packets arrives without content.
#[test]
fn a_switch_cuts_real_content_off() {
    let incast = PERMUTATION.replace("\"permutation\"", "{ incast = { degree = 7 } }");
    let mut trimmed = 0;
    // Where nothing may be cut off, as its headers would go in a class that is taken, the scenario is refused.
    let plan = |name| Plan::new(&read(PERMUTATION, &[("transport", name)])).expect("it can be planned");
    let trimmable = Transport::NAMES.iter().filter(|name| plan(name).reserved.is_none());
    for name in trimmable {
        let short = [("switch.overflow", "trim"), ("switch.buffer.per_port.bytes", "10KB"), ("measure.end", "200ms")];
        let result =
            run(&read(&incast, &[&short[..], &[("transport", name)]].concat()), |_| false).expect("it can be run");
        sound(&result);
        trimmed += column(&result.tables, "links", "trimmed_packets").iter().sum::<u64>();
    }
    assert!(trimmed > 0);
}

#[test]
fn it_ends_when_told_and_at_the_horizon() {
    let long = read(PERMUTATION, &[("traffic.0.sizes.constant", "1MB")]);
    let stopped = run(&long, |progress| progress.now > Time::from_ms(5)).expect("it can be run");
    assert_eq!(stopped.info.ended, "interrupted");
    sound(&stopped);
    let short = run(&read(PERMUTATION, &[("measure.end", "5ms")]), |_| false).expect("it can be run");
    assert_eq!((short.info.ended, short.info.flows_completed), ("horizon", 0));
    sound(&short);
}

#[test]
fn failures_are_refused() {
    let failing = format!("{PERMUTATION}[[failure]]\nlink = [\"host0\", \"switch0\"]\nat = \"1ms\"\n");
    let problem = run(&read(&failing, &[]), |_| false).expect_err("links do not fail here");
    assert_eq!(problem.key, "failure");
}

/// A stranger sends garbage, damaged frames, and whole ones that only its address gives away, to every node.
#[test]
fn hostile_bytes_are_counted_and_dropped() {
    let scenario = read(PERMUTATION, &[("traffic.0.sizes.constant", "300KB")]);
    let plan = Plan::new(&scenario).expect("it can be planned");
    let mut host = plan.host(HostId(0));
    host.wake(Time::ZERO);
    let packet = host.pull(Time::ZERO).expect("it has something to say");
    let codec = Codec { transports: &plan.transports, flow_control: &plan.scenario.flow_control, hosts: 8, links: 16 };
    let content = vec![7; packet.payload_bytes.into()];
    let stop = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let stop = &stop;
        let bound = |addresses: &[std::net::SocketAddr]| {
            let addresses = addresses.to_vec();
            scope.spawn(move || {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
                let mut random = units::Stream::new(7, 0, "hostile");
                while !stop.load(Ordering::Relaxed) {
                    for (node, &address) in addresses.iter().enumerate() {
                        // A link that does lead there: host i and the switch share links 2i and 2i + 1.
                        let link = LinkId(if node < 8 { 2 * node as u32 + 1 } else { 0 });
                        let journey = Journey::default();
                        let gone = Time::ZERO;
                        let frame = Frame {
                            link,
                            number: u64::MAX - 1,
                            gone,
                            tail_lag_ps: 0,
                            packet,
                            journey,
                            queue: 0,
                            telemetry: node::Telemetry::default(),
                            content: &content,
                        };
                        let mut bytes = Vec::new();
                        codec.emit(&frame, &mut bytes);
                        match random.below(5) {
                            0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
                            1 => bytes[random.below(8 * 4) as usize / 8] ^= 1,
                            2 => bytes[100] ^= 1 << random.below(8),
                            3 => bytes = (0..random.below(1_500)).map(|_| random.bits() as u8).collect(),
                            _ => {}
                        }
                        let _ = socket.send_to(&bytes, address);
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        };
        let result = run_at(&scenario, |_| false, bound);
        stop.store(true, Ordering::Relaxed);
        result.expect("it can be run")
    });
    sound(&result);
    assert!(result.info.flows_completed == 8 || !undisturbed(&result), "{:#?}", result.info);
    let refused = column(&result.tables, "refused", "datagrams");
    assert_eq!(refused.iter().sum::<u64>(), result.info.refused_datagrams);
    for refusal in [Refusal::Magic, Refusal::Checksum, Refusal::Stranger] {
        assert!(refused[refusal as usize] > 0, "{refusal}: {refused:?}");
    }
}
