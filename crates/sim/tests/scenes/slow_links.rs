//! Every transport on networks that its constants were not chosen for: links of 1 Mbps, links of 10 ms, both, hosts far
//! slower than the core, a lone message, incasts at 1 Gbps and 1 Mbps, losses. Every message
//! ends, in a time that the busiest link explains; nothing is sent again without a loss, but by transports that measure
//! their timeouts; and control packets stay in proportion to data.

use clearway_sim::{RunResult, run};

use crate::{column, names, of_flows, of_links, scenario, table};

/// A transport, and what it sends again although nothing was lost: so many packets for each data packet.
struct Case {
    transport: &'static str,
    needless: f64,
}

const fn case(transport: &'static str, needless: f64) -> Case {
    Case { transport, needless }
}

/// Needless repetitions: TCP and Falcon know the unloaded round trip only, until they have measured one; dcPIM, pHost
/// and pFabric count round trips by their papers; what UET and NDP repeat was trimmed. IRN's low timeout has room for
/// 5/16 of a full buffer, by its paper, and a needless one sends a packet again.
const CASES: [Case; 27] = [
    case("'dcpim'", 1.0),
    case("'phost'", 0.8),
    case("'pfabric'", 0.5),
    case("'newreno'", 0.8),
    case("'cubic'", 0.8),
    case("'dctcp'", 0.8),
    case("'swift'", 0.8),
    case("'illinois'", 0.8),
    case("'bbr'", 0.8),
    case("'rdma'", 0.0),
    case("{ rdma = { recovery = 'irn' } }", 0.1),
    case("'dcqcn'", 0.0),
    case("'timely'", 0.0),
    case("'hpcc'", 0.0),
    case("'harmony'", 0.0),
    case("'rsvp'", 0.0),
    case("'fastpass'", 0.0),
    case("'homa'", 0.0),
    case("'homa_aeolus'", 1.0),
    case("'r2c2'", 0.0),
    case("'ndp'", 1.0),
    case("'uet'", 1.0),
    case("{ uet = { congestion_control = 'rccc' } }", 1.3),
    case("{ uet = { congestion_control = 'both' } }", 1.3),
    case("{ uet = { trimming = false } }", 0.0),
    case("'udp'", 0.0),
    case("'falcon'", 0.8),
];

/// Two racks of four hosts, and two spines.
fn racks([hosts, spines, delay]: [&str; 3]) -> String {
    format!(
        "fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 2, host_rate = '{hosts}', spine_rate = \
         '{spines}', propagation = '{delay}' }}\n"
    )
}

/// 24 messages among all hosts, and two incasts of seven.
fn mix(bytes: u64, incast: u64) -> String {
    format!(
        "[[traffic]]\nname = 'all'\nsizes.constant = '{bytes}B'\narrivals = 'all_at_once'\nflows = 24\n[[traffic]]\n\
         name = 'incast'\nsizes.constant = '{incast}B'\npattern.incast.degree = 7\narrivals.periodic.every = \
         '200us'\nflows = 14\n"
    )
}

fn lone() -> String {
    "[[traffic]]\nsizes.constant = '20KB'\nsenders = '0'\nreceivers = '5'\narrivals = 'all_at_once'\nflows = 1\n".into()
}

/// 3 KB from each of so many hosts to one.
fn incast(senders: u32, rate: &str) -> String {
    format!(
        "fabric.star = {{ hosts = {}, rate = '{rate}' }}\n[[traffic]]\nsizes.constant = '3KB'\npattern.incast.degree = \
         {senders}\narrivals = 'all_at_once'\nflows = {senders}\n",
        senders + 1
    )
}

/// One packet in a hundred is lost on every link.
fn losses() -> String {
    let core = (0..2).flat_map(|leaf| (0..2).map(move |spine| (format!("leaf{leaf}"), format!("spine{spine}"))));
    let hosts = (0..8).map(|host| (format!("host{host}"), format!("leaf{}", host / 4)));
    let one = |(a, b): (String, String)| format!("[[failure]]\nlink = ['{a}', '{b}']\nat = '0us'\nloss = 0.01\n");
    core.chain(hosts).map(one).collect()
}

/// What no transport can beat: the time that the busiest host's link needs for the messages alone.
fn least_ps(result: &RunResult) -> u64 {
    let (flows, links) = (table(result, "flows"), table(result, "links"));
    let hosts = names(links, "from_node").into_iter().zip(column(links, "rate_bps"));
    let rate = hosts.filter(|(from, _)| from.starts_with("host")).map(|(_, rate)| *rate).min().unwrap();
    let mut bytes = std::collections::BTreeMap::new();
    for (way, column) in ["src", "dst"].into_iter().enumerate() {
        let ends = match &flows.column(column).unwrap().data {
            run::Data::U32(ends) => ends.clone(),
            _ => panic!("hosts are numbers"),
        };
        for (end, size) in ends.into_iter().zip(of_flows(result, "bytes")) {
            *bytes.entry((way, end)).or_insert(0u128) += u128::from(*size);
        }
    }
    (bytes.into_values().max().unwrap() * 8_000_000_000_000 / u128::from(rate)) as u64
}

/// Runs it under each of these, and checks what the head of this file says: messages take no longer than `factor` times
/// what the busiest link needs and four round trips.
fn check(name: &str, network: &str, cases: &[Case], factor: f64) {
    for Case { transport, needless } in cases {
        let toml = format!("transport = {transport}\nmeasure = {{ drain = '1000s', interval = '0s' }}\n{network}");
        let what = format!("{name}: {transport}");
        let result = match run(&scenario(&toml), 1, |_| false) {
            // Who guarantees that nothing waits for long needs room for that.
            Err(problem) if problem.key == "switch.buffer" => continue,
            // Who has no room for headers says so.
            Err(problem) if problem.message.contains("host.mtu") => continue,
            result => result.unwrap_or_else(|problem| panic!("{what}: {problem}")),
        };
        crate::check(&result);
        let lost: u64 = LOSSES.iter().map(|column| of_links(&result, column)).sum();
        let status = names(table(&result, "flows"), "status");
        // UDP repeats nothing.
        let ended = |status: &&str| matches!(*status, "completed" | "rejected") || lost > 0 && *transport == "'udp'";
        assert!(status.iter().all(ended), "{what}: {status:?}");
        let data: u64 = of_flows(&result, "bytes").iter().map(|bytes| bytes.div_ceil(payload(network))).sum();
        let again: u64 = of_flows(&result, "resent_packets").iter().filter(|&&again| again < u64::MAX).sum();
        assert!(lost > 0 || again as f64 <= needless * data as f64, "{what}: {again} of {data} again");
        let (rtt, least) = (result.info.data_rtt_ps, least_ps(&result));
        let last = of_flows(&result, "delivered_ps").iter().filter(|&&at| at < u64::MAX).max().unwrap();
        let most = (least as f64 + 4.0 * rtt as f64) * factor;
        assert!((*last as f64) < most, "{what}: {last} ps, and {most} are enough");
        // dcPIM's hosts ask in each phase, and a phase may carry as few as four packets.
        let sent = from_hosts(&result);
        let most = 6 * (data + again) + 20 * status.len() as u64;
        assert!(sent <= most, "{what}: {sent} packets for {data}, {again} again");
    }
}

/// Message bytes in a full packet.
fn payload(network: &str) -> u64 {
    if network.contains("mtu = '64B'") { 24 } else { 1_460 }
}

/// Packets that hosts have sent, control packets among them.
fn from_hosts(result: &RunResult) -> u64 {
    let links = table(result, "links");
    let sent = names(links, "from_node").into_iter().zip(column(links, "sent_packets"));
    sent.filter(|(from, _)| from.starts_with("host")).map(|(_, sent)| *sent).sum()
}

const LOSSES: [&str; 4] = ["overflow_packets", "trimmed_packets", "lossy_packets", "dead_packets"];
const SLOW: [&str; 3] = ["1Mbps", "1Mbps", "200ns"];
const LONG: [&str; 3] = ["10Gbps", "10Gbps", "10ms"];

#[test]
fn messages_over_links_of_1_mbps_take_what_the_busiest_link_takes() {
    check("1 Mbps", &(racks(SLOW) + &mix(10_000, 3_000)), &CASES, 2.0);
    check("one message at 1 Mbps", &(racks(SLOW) + &lone()), &CASES, 2.0);
}

/// Requests of small messages are as long as their data, so that a burst of them waits for longer than data do.
#[test]
fn reservations_of_messages_in_tiny_packets_are_not_given_up() {
    let network = "host = { mtu = '64B', header = '40B' }\n".to_owned() + &racks(SLOW) + &mix(10_000, 3_000);
    check("1 Mbps in packets of 64 B", &network, &[case("'rsvp'", 0.0), case("'harmony'", 0.0)], 2.0);
}

#[test]
fn messages_over_links_of_10_ms_take_a_few_round_trips() {
    check("10 ms", &(racks(LONG) + &mix(100_000, 20_000)), &CASES, 2.0);
    check("one message over 10 ms", &(racks(LONG) + &lone()), &CASES, 2.0);
}

#[test]
fn messages_over_slow_and_long_links_take_both() {
    check("1 Mbps and 10 ms", &(racks(["1Mbps", "1Mbps", "10ms"]) + &mix(10_000, 3_000)), &CASES, 2.0);
}

#[test]
fn messages_of_slow_hosts_over_a_fast_core_take_what_hosts_take() {
    check("1 Mbps to 10 Gbps", &(racks(["1Mbps", "10Gbps", "200ns"]) + &mix(10_000, 3_000)), &CASES, 2.5);
}

/// Whoever repeats into overload at a constant interval would fill the link with what it repeats.
#[test]
fn an_incast_of_199_at_a_gigabit_ends() {
    check("199 to one", &incast(199, "1Gbps"), &CASES, 8.0);
}

#[test]
fn an_incast_of_100_at_a_megabit_ends() {
    check("100 to one", &incast(100, "1Mbps"), &CASES, 8.0);
}

#[test]
#[ignore = "a second or two"]
fn messages_over_links_that_lose_packets_end() {
    for (name, network) in [("1 Mbps", SLOW), ("10 ms", LONG)] {
        let network = racks(network) + &mix(10_000, 3_000) + &losses();
        check(&format!("{name} with losses"), &network, &CASES, 50.0);
    }
}

/// A sender's packets lie in its host's limiter for longer than UDP used to wait.
#[test]
fn a_message_waits_in_a_limiter_for_longer_than_a_constant_patience() {
    let toml = "transport = 'udp'\nsharing.rate_limiter.burst = '1514B'\nfabric.star = { hosts = 3, rate = '10Gbps' }\n\
        [[traffic]]\nname = 'probe'\nsizes.constant = '30KB'\nsenders = '0'\nreceivers = '1'\narrivals = \
        'all_at_once'\n[[entity]]\nname = 'probe'\ntraffic = ['probe']\nrequest = [{ position = 'ingress', link = \
        ['host0', 'switch0'], share.absolute = '500Kbps' }]";
    let result = crate::run_alone(toml);
    assert_eq!(names(table(&result, "flows"), "status"), ["completed"]);
    // 21 packets of 30,840 B with headers; 1,514 B pass on the burst.
    let [last] = of_flows(&result, "completed_ps") else { panic!("one message") };
    let least = (30_840 - 1_514) * 8 * 2_000_000;
    assert!((least..least + 100_000_000).contains(last), "{last}");
}

#[test]
fn a_round_trip_longer_than_rdma_s_constant_timeout_has_nothing_sent_again() {
    let slow = racks(["10Gbps", "10Gbps", "15ms"]);
    let toml = format!(
        "transport = 'rdma'\nmeasure.end = '2s'\n{slow}[[traffic]]\nsizes.constant = '50MB'\nsenders = '0'\n\
         receivers = '5'\narrivals = 'all_at_once'\nflows = 1\n"
    );
    let result = crate::run_alone(&toml);
    assert_eq!((of_flows(&result, "resent_packets"), of_links(&result, "overflow_packets")), (&[0][..], 0));
    // 60 ms there, and 50 MB and 1.4 MB of headers at 10 Gbps.
    let [last] = of_flows(&result, "delivered_ps") else { panic!("one message") };
    assert!((100_000_000_000..103_000_000_000).contains(last), "{last}");
}
