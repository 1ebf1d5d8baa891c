//! R2C2 end to end: what its paper and arithmetic say.

use std::sync::Arc;

use clearway_sim::RunResult;
use fabric::{Fabric, Failures, Routes, Routing, RoutingTables};
use proptest::prelude::*;
use proptest::sample::select;
use run::Data;
use units::HostId;

use crate::{column, counter, names, of_flows, of_link, run_alone, run_both, run_on, table};

/// A full packet on a link between switches (10 Gbps), and on a host's (60 Gbps).
const PACKET_PS: u64 = 1_200_000;
const HOST_PS: u64 = 200_000;
/// In flight between two switches.
const FLIGHT_PS: u64 = 100_000;
/// What a flow may have of one link: 5% is left free (section 5.2).
const LINK_GBPS: f64 = 9.5;
/// Bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;

/// A run over a fabric, with settings of the transport.
fn scene(fabric: &str, settings: &str, traffic: &str) -> String {
    format!("transport = {{ r2c2 = {{ {settings} }} }}\nfabric.{fabric}\n{traffic}")
}

/// One flow of so many bytes from time zero.
fn flow(name: &str, src: u32, dst: u32, bytes: &str) -> String {
    format!(
        r#"
        [[traffic]]
        name = "{name}"
        sizes.constant = "{bytes}"
        arrivals = "all_at_once"
        senders = "{src}"
        receivers = "{dst}"
        flows = 1
        "#
    )
}

/// What was measured of one flow.
fn measured(result: &RunResult, flow: u32, what: &str) -> u64 {
    let measures = table(result, "measures");
    let Data::U32(flows) = &measures.column("flow").unwrap().data else { panic!("numbers") };
    let row = flows.iter().zip(names(measures, "measure")).position(|row| row == (&flow, what));
    column(measures, "value")[row.unwrap_or_else(|| panic!("no {what} of flow {flow}"))]
}

/// The hosts between which each flow goes.
fn ends(result: &RunResult) -> Vec<(HostId, HostId)> {
    let hosts = |name| match &table(result, "flows").column(name).unwrap().data {
        Data::U32(hosts) => hosts.clone(),
        _ => panic!("{name} is no host"),
    };
    hosts("src").into_iter().zip(hosts("dst")).map(|(src, dst)| (HostId(src), HostId(dst))).collect()
}

fn statuses(result: &RunResult) -> Vec<&str> {
    names(table(result, "flows"), "status")
}

fn all_completed(result: &RunResult) {
    assert_eq!(result.info.flows_completed, result.info.flows, "{}", result.scenario_toml);
    assert_eq!(counter(result, "flows_failed"), 0);
    assert_eq!(counter(result, "malformed") + counter(result, "switch_malformed"), 0);
}

/// The fabric of a scenario, and what each protocol puts where.
fn network(toml: &str) -> (Arc<Fabric>, RoutingTables) {
    let fabric = Arc::new(crate::scenario(toml).fabric.build().unwrap());
    let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
    (fabric.clone(), RoutingTables::new(fabric, routes))
}

/// Links between switches from source to destination.
fn apart(tables: &RoutingTables, (src, dst): (HostId, HostId)) -> u64 {
    u64::from(tables.routes().distance(tables.routes().home(src), dst).expect("a path")) - 1
}

/// What happens between two times, in ms: the difference of two runs that have one history.
struct Span {
    ms: [u64; 2],
    until: [RunResult; 2],
}

impl Span {
    fn of(toml: &str, ms: [u64; 2]) -> Span {
        let until = ms.map(|ms| run_alone(&format!("measure.end = '{ms}ms'\n{toml}")));
        assert_eq!(until[1].info.ended, "horizon", "{toml}");
        Span { ms, until }
    }

    fn secs(&self) -> f64 {
        (self.ms[1] - self.ms[0]) as f64 * 1e-3
    }

    /// Gbps of a link.
    fn gbps(&self, from: &str, to: &str) -> f64 {
        let [early, late] = self.until.each_ref().map(|result| of_link(result, from, to, "sent_bytes"));
        (late - early) as f64 * 8e-9 / self.secs()
    }

    /// Bytes of every link.
    fn bytes(&self) -> Vec<u64> {
        let [early, late] = self.until.each_ref().map(|result| column(table(result, "links"), "sent_bytes"));
        late.iter().zip(early).map(|(late, early)| late - early).collect()
    }

    fn counted(&self, name: &str) -> u64 {
        counter(&self.until[1], name) - counter(&self.until[0], name)
    }

    /// Up to so many packets more or less.
    fn slack(&self, packets: f64) -> f64 {
        packets * PACKET_BITS * 1e-9 / self.secs()
    }
}

#[test]
fn a_lone_flow_has_the_links_of_its_shortest_paths_less_the_headroom() {
    let packets = 10_000u64;
    for (dst, dims) in [(1, 1), (1 + 4, 2), (1 + 4 + 16, 3)] {
        let toml = scene("torus.dims = [4, 4, 4]", "", &flow("lone", 0, dst, &format!("{}B", packets * 1465)));
        let result = run_alone(&toml);
        all_completed(&result);
        // As many first links as there are dimensions to go, and as many last ones, each with an equal share.
        let rate = LINK_GBPS * dims as f64;
        let least =
            ((packets - 1) as f64 * PACKET_BITS / rate * 1e3) as u64 + 2 * HOST_PS + dims * (PACKET_PS + FLIGHT_PS);
        let fct = of_flows(&result, "fct_ps")[0];
        // One path has no queues; over several, packets draw theirs, and the last has waited for some.
        let most = if dims == 1 { least + 50_000 } else { least + least / 100 };
        assert!((least..=most).contains(&fct), "{dims} dimensions: {fct} for {least}");
        let mean = measured(&result, 0, "rate_mean_bps") as f64 * 1e-9;
        assert!((mean / rate - 1.0).abs() < 1e-6, "{mean} Gbps for {rate}");
        let reordered = measured(&result, 0, "reordered_max_packets");
        assert_eq!(reordered > 0, dims > 1, "{dims} dimensions: {reordered} packets waited");
    }
}

/// Four nodes in a row, of which two flows share the middle link.
fn in_a_row(allocations: &str) -> String {
    let settings = format!("recompute = '100us', allocations = [{allocations}]");
    scene("mesh.dims = [4]", &settings, &(flow("left", 0, 2, "1GB") + &flow("right", 1, 3, "1GB")))
}

#[test]
fn flows_that_share_a_link_share_it_by_weight() {
    let weight = |class: &str, weight: u32| format!("{{ traffic = '{class}', weight = {weight} }},");
    for (weights, left) in
        [("".to_owned(), 0.5), (weight("left", 2), 2.0 / 3.0), (weight("right", 9) + &weight("left", 3), 0.25)]
    {
        let span = Span::of(&in_a_row(&weights), [1, 5]);
        let rates = [span.gbps("host0", "switch0"), span.gbps("host1", "switch1")];
        for (rate, share) in rates.into_iter().zip([left, 1.0 - left]) {
            assert!((rate - LINK_GBPS * share).abs() <= span.slack(2.0), "{weights}: {rates:?}");
        }
    }
}

#[test]
fn a_flow_of_lower_priority_waits_for_what_the_other_leaves() {
    let settings = "recompute = '100us', allocations = [{ traffic = 'right', priority = 1 }]";
    // The first has sent all after 5 ms.
    let bytes = format!("{}B", (LINK_GBPS * 5e6 / PACKET_BITS) as u64 * 1465);
    let toml = scene("mesh.dims = [4]", settings, &(flow("left", 0, 2, &bytes) + &flow("right", 1, 3, "1GB")));
    let span = Span::of(&toml, [1, 4]);
    assert!((span.gbps("host0", "switch0") - LINK_GBPS).abs() <= span.slack(2.0));
    assert_eq!(span.gbps("host1", "switch1"), 0.0);
    let after = Span::of(&toml, [6, 8]);
    assert!((after.gbps("host1", "switch1") - LINK_GBPS).abs() <= after.slack(2.0));
}

#[test]
fn what_a_slow_application_does_not_use_the_other_flow_gets() {
    let span = Span::of(&in_a_row("{ traffic = 'right', produced_at = '1Gbps' }"), [3, 7]);
    // 1 Gbps of message; its estimate is announced when it is off by more than 5%.
    let slow = 1500.0 / 1465.0;
    let rates = [span.gbps("host0", "switch0"), span.gbps("host1", "switch1")];
    assert!((rates[1] - slow).abs() <= span.slack(2.0), "{rates:?}");
    assert!((rates[0] - (LINK_GBPS - slow)).abs() <= 0.06 * slow, "{rates:?}");
    assert!((1..=5).contains(&counter(&span.until[1], "demands_announced")));
}

#[test]
fn a_slow_application_is_noticed_whoever_computes_rates_and_when() {
    for how in
        ["recompute = '0s', refresh = '500us'", "recompute = '100us', control = { centralised = { controller = 3 } }"]
    {
        let settings = format!("{how}, allocations = [{{ traffic = 'right', produced_at = '1Gbps' }}]");
        let toml = scene("mesh.dims = [4]", &settings, &(flow("left", 0, 2, "1GB") + &flow("right", 1, 3, "1GB")));
        let span = Span::of(&toml, [4, 8]);
        let (slow, rate) = (1500.0 / 1465.0, span.gbps("host0", "switch0"));
        assert!((rate - (LINK_GBPS - slow)).abs() <= 0.06 * slow, "{how}: {rate}");
    }
}

#[test]
fn a_starved_flow_does_not_say_how_its_backlog_grows() {
    // Produced at 1 Gbps, and alone for 2 ms; then starved for 30 ms by a flow that is served before it.
    let settings = "refresh = '1s', allocations = [{ traffic = 'slow', priority = 1, produced_at = '1Gbps' }]";
    let urgent = flow("urgent", 0, 2, &format!("{}B", (LINK_GBPS * 30e6 / PACKET_BITS) as u64 * 1465));
    let flows = flow("slow", 1, 3, "6MB") + &urgent.replace("flows = 1", "flows = 1\nstart = '2ms'");
    let toml = scene("mesh.dims = [4]", settings, &flows);
    let until = |ms: u32| run_alone(&format!("measure.end = '{ms}ms'\n{toml}"));
    let demands = |result: &RunResult| counter(result, "demands_announced");
    let (before, starved, after) = (until(3), until(31), until(60));
    assert!((1..=3).contains(&demands(&before)), "{}", demands(&before));
    assert_eq!(demands(&starved), demands(&before), "all have heard what it can use; it gets nothing of that");
    // 30 ms at 1 Gbps are 3.75 MB, which it may send at once now: it says so, and takes it back when that is done. By
    // half of the way each period: up to the 20 Gbps of its host's link within 5% in five, and down to 1 Gbps in nine.
    assert!(demands(&after) > demands(&starved) && demands(&after) <= demands(&starved) + 14, "{}", demands(&after));
    all_completed(&after);
    // Of 6 MB at 1 Gbps the last byte is there after 48 ms: it has caught up long before.
    let slow = names(table(&after, "flows"), "class").iter().position(|class| *class == "slow").unwrap();
    let fct_ms = of_flows(&after, "fct_ps")[slow] as f64 * 1e-9;
    assert!((48.0..48.1).contains(&fct_ms), "{fct_ms} ms");
}

#[test]
fn a_route_too_long_for_its_packet_is_drawn_again_or_shortened() {
    // In a ring of 40 each half of VLB's way has 20 hops at most, and a packet has room for 42. Where one link is dead
    // it is a row: from 0 to 1 over waypoint w it is w there, w - 1 back and one to the host, so that 22 to 39 are too
    // far: 18 of 40.
    let packets = 13_650u64;
    let failure = "reroute_delay = '30us'\nfailure = [{ at = '1us', link = ['switch0', 'switch39'] }]";
    let traffic = flow("near", 0, 1, &format!("{}B", packets * 1465));
    let toml = scene("torus.dims = [40]", "routing = 'vlb', recompute = '50us', patience = '200us'", &traffic);
    let result = run_alone(&format!("{failure}\n{toml}"));
    all_completed(&result);
    let [again, shortened] = ["routes_drawn_again", "routes_shortened"].map(|name| counter(&result, name) as f64);
    let (unfit, count) = (18.0 / 40.0, packets as f64);
    // Of the first 31 us a few packets have gone round the whole ring.
    let (all, mean) = (count * unfit, count * f64::powi(unfit, 9));
    assert!(
        (again + shortened - all).abs() <= 4.0 * (all * (1.0 - unfit)).sqrt() + 100.0,
        "{again} + {shortened} of {all}"
    );
    assert!(shortened > 0.0 && (shortened - mean).abs() <= 4.0 * mean.sqrt(), "{shortened} for {mean}");
    let whole = run_alone(&toml);
    assert_eq!(["routes_drawn_again", "routes_shortened"].map(|name| counter(&whole, name)), [0, 0]);
}

#[test]
fn a_flow_with_no_route_that_its_packets_have_room_for_fails_and_says_why() {
    // 40 hops round a ring of 80, and with a dead link 79.
    let failure = "reroute_delay = '30us'\nfailure = [{ at = '100us', link = ['switch0', 'switch79'] }]";
    let traffic = flow("far", 0, 79, "10MB") + &flow("near", 0, 30, "1MB");
    let toml = scene("torus.dims = [80]", "recompute = '50us', patience = '100us', probes = 3", &traffic);
    let result = run_alone(&format!("{failure}\n{toml}"));
    let flows = table(&result, "flows");
    let ended: Vec<_> =
        names(flows, "class").into_iter().zip(names(flows, "status")).zip(names(flows, "reason")).collect();
    let why = "every path to its receiver has more hops than a source route can hold";
    assert!(ended.contains(&(("far", "failed"), why)) && ended.contains(&(("near", "completed"), "")), "{ended:?}");
    assert_eq!(counter(&result, "flows_failed"), 1);
}

#[test]
fn a_node_s_flows_have_their_rates_though_they_wait_for_each_other_at_its_nic() {
    // Five flows of one node over one link, whose packets meet at the NIC again and again.
    let weights = [1, 2, 3, 5, 7];
    let all: String =
        weights.iter().map(|weight| format!("{{ traffic = 'of {weight}', weight = {weight} }},")).collect();
    let flows: String = weights.iter().map(|weight| flow(&format!("of {weight}"), 0, 1, "1GB")).collect();
    let toml = scene("mesh.dims = [2]", &format!("recompute = '100us', allocations = [{all}]"), &flows);
    let span = Span::of(&toml, [1, 21]);
    let rate = span.gbps("host0", "switch0");
    assert!((rate / LINK_GBPS - 1.0).abs() < 0.001, "{rate} Gbps");
}

#[test]
fn an_end_is_heard_at_once_if_rates_are_computed_at_every_event() {
    // Two flows of one node, and two of different ones: the second has all of the link when the first has sent its last
    // packet.
    for src in [0, 1] {
        let flows = flow("short", src, 2, "1465KB") + &flow("long", 0, 2, "2930KB");
        let result = run_alone(&scene("mesh.dims = [3]", "recompute = '0s'", &flows));
        all_completed(&result);
        let fct = |class: &str| {
            let flow = names(table(&result, "flows"), "class").iter().position(|of| *of == class).unwrap();
            of_flows(&result, "fct_ps")[flow] as f64 * 1e-12
        };
        // Half of the link for 2,000 packets together, then all of it for 1,000.
        let (short, long) = (2_000.0 * PACKET_BITS / LINK_GBPS * 1e-9, 3_000.0 * PACKET_BITS / LINK_GBPS * 1e-9);
        for (fct, due) in [(fct("short"), short), (fct("long"), long)] {
            assert!((fct / due - 1.0).abs() < 0.01, "from {src}: {fct} s for {due} s");
        }
    }
}

#[test]
fn rates_oversubscribe_no_link_and_queues_are_as_short_as_flows_are_few() {
    // Dimension order on odd rings: one path a flow, so that a link's load is the sum of its flows' rates.
    let traffic = "[[traffic]]\nsizes.constant = '1GB'\narrivals = 'all_at_once'\nflows = 50";
    let toml = scene("torus.dims = [5, 5]", "routing = 'destination_tag', recompute = '20us'", traffic);
    let span = Span::of(&toml, [10, 20]);
    let (fabric, tables) = network(&toml);
    let mut flows = vec![0u64; fabric.links.len()];
    for (src, dst) in ends(&span.until[1]) {
        tables.weights(Routing::DestinationTag, src, dst).iter().for_each(|weight| flows[weight.link.index()] += 1);
    }
    let most = *flows.iter().max().unwrap();
    assert!(most > 4, "{most}");
    let announced = span.counted("broadcasts") * 16;
    let mut full = 0;
    for (link, bytes) in span.bytes().into_iter().enumerate().filter(|&(link, _)| flows[link] > 0) {
        let due = LINK_GBPS * 1e9 / 8.0 * span.secs();
        assert!(bytes as f64 <= due + (announced + flows[link] * 1500) as f64, "link {link}: {bytes} for {due}");
        full += u64::from(bytes as f64 >= due * 0.99);
    }
    assert!(full > 0, "a bottleneck is used");
    // A packet of each flow of a link may come at once, and announcements between them; the link is faster than all
    // together.
    let queues = table(&span.until[1], "queues");
    let settled =
        column(queues, "time_ps").iter().zip(column(queues, "longest_bytes")).filter(|row| *row.0 >= 10_000_000_000);
    let longest = *settled.map(|row| row.1).max().unwrap();
    assert!(longest <= (most + 1) * 1500, "{longest} B with {most} flows");
}

#[test]
fn sprayed_flows_load_links_as_their_weights_say_and_queue_less_than_at_random() {
    let traffic = "[[traffic]]\nsizes.constant = '1GB'\narrivals = 'all_at_once'\npattern = 'permutation'\nflows = 16";
    let toml = scene("torus.dims = [4, 4]", "recompute = '20us'", traffic);
    let span = Span::of(&toml, [20, 60]);
    let (fabric, tables) = network(&toml);
    let mut load = vec![(0.0, 0.0); fabric.links.len()];
    for (src, dst) in ends(&span.until[1]) {
        let (from, to) = (format!("host{}", src.0), format!("switch{}", src.0));
        let packets = span.gbps(&from, &to) * 1e9 * span.secs() / PACKET_BITS;
        for weight in tables.weights(Routing::RandomPacketSpraying, src, dst).iter() {
            let (share, load) = (f64::from(weight.weight), &mut load[weight.link.index()]);
            *load = (load.0 + packets * share, load.1 + packets * share * (1.0 - share));
        }
    }
    let bytes = span.bytes();
    let announced = span.counted("broadcasts") as f64 * 16.0;
    for (link, &(mean, variance)) in load.iter().enumerate().filter(|load| load.1.0 > 0.0) {
        let capacity = LINK_GBPS * 1e9 * span.secs() / PACKET_BITS;
        assert!(mean <= capacity + 4.0, "link {link}: {mean} packets for {capacity}");
        // Some are in queues at the beginning, and others at the end.
        let slack = 5.0 * f64::sqrt(variance) + 100.0 + announced / 1500.0;
        let packets = bytes[link] as f64 / 1500.0;
        assert!((packets - mean).abs() <= slack, "link {link}: {packets} packets for {mean}, {slack} more or less");
    }
    // At 0.95 a queue of equal packets that come at random holds 0.95^2 / 2 / 0.05 = 9 on average and beyond that each
    // 10 packets more are e times as rare. Sprayed flows are smoother; but a switch's longest queue is that of four.
    let queues = table(&span.until[1], "queues");
    let settled =
        column(queues, "time_ps").iter().zip(column(queues, "longest_bytes")).filter(|row| *row.0 >= 20_000_000_000);
    let mut longest: Vec<u64> = settled.map(|row| *row.1).collect();
    longest.sort_unstable();
    let mean = longest.iter().sum::<u64>() as f64 / longest.len() as f64;
    assert!(mean <= (9.0 + 10.0 * 4f64.ln()) * 1500.0, "{mean} B");
    let tail = longest[longest.len() - longest.len() / 100];
    assert!(tail as f64 <= (9.0 + 10.0 * 400f64.ln()) * 1500.0, "{tail} B");
}

/// Short flows, and one long after them between the nodes that are farthest apart, by whose end all have heard of all.
fn short_flows(count: u32, from: u32, to: u32) -> String {
    format!(
        r#"
        [[traffic]]
        name = "short"
        sizes = {{ uniform = {{ min = "1B", max = "100KB" }} }}
        arrivals = {{ poisson = {{ every = "5us" }} }}
        flows = {count}
        [[traffic]]
        name = "last"
        sizes.constant = "10KB"
        arrivals = "all_at_once"
        start = "9ms"
        senders = "{from}"
        receivers = "{to}"
        flows = 1
        "#
    )
}

#[test]
fn a_start_and_an_end_are_sixteen_bytes_on_each_link_of_a_tree_and_no_byte_is_unaccounted_for() {
    for (fabric, from, to, links) in [
        ("torus.dims = [4, 4]", 0, 10, 15..=15),
        ("mesh = { dims = [3, 3], hosts_per_node = 2 }", 0, 17, 8..=8),
        ("leaf_spine = { racks = 3, hosts_per_rack = 3, spines = 2, spine_rate = '40Gbps' }", 0, 8, 3..=4),
        ("fat_tree = { k = 4 }", 0, 15, 12..=19),
        ("star.hosts = 4", 0, 3, 0..=0),
    ] {
        let toml = format!("measure.completion = 'acknowledged'\n{}", scene(fabric, "", &short_flows(200, from, to)));
        let result = run_alone(&toml);
        all_completed(&result);
        assert_eq!(counter(&result, "broadcasts"), 2 * 201);
        // To each switch with hosts; in a Clos, over one spine or core, or several.
        let copies = counter(&result, "broadcast_copies");
        assert!((2 * 201 * links.start()..=2 * 201 * links.end()).contains(&copies), "{fabric}: {copies}");
        assert_eq!(counter(&result, "broadcast_copied_bytes"), 16 * copies, "{fabric}");
        assert_eq!((counter(&result, "known_at_end"), counter(&result, "busy_at_end")), (0, 0), "{fabric}");
        assert_eq!(counter(&result, "probes"), 0, "{fabric}");
        let (fabric, tables) = network(&toml);
        // Its packets, and that all is here.
        let bytes = ends(&result).into_iter().zip(of_flows(&result, "bytes"));
        let data: u64 =
            bytes.map(|(ends, bytes)| apart(&tables, ends) * (bytes + 35 * bytes.div_ceil(1465) + 40)).sum();
        let between =
            |link: usize| fabric.links[link].from.0 >= fabric.hosts && fabric.links[link].to.0 >= fabric.hosts;
        let sent = column(table(&result, "links"), "sent_bytes").iter().enumerate();
        let sent: u64 = sent.filter(|&(link, _)| between(link)).map(|link| link.1).sum();
        assert_eq!(sent, data + 16 * copies, "{toml}");
    }
}

/// Flows that do not end, two from each of 16 nodes.
const ENDLESS: &str = "[[traffic]]\nname = 'endless'\nsizes.constant = '1GB'\narrivals = 'all_at_once'\nflows = 32";
/// What is not heard of for 1.75 ms is forgotten.
const BRISK: &str = "recompute = '50us', refresh = '500us'";

#[test]
fn every_node_knows_every_flow() {
    for trees in [1, 4, 16] {
        for settings in ["", "recompute = '0s', "] {
            let toml = scene("torus.dims = [4, 4]", &format!("{settings}trees = {trees}"), ENDLESS);
            let result = run_alone(&format!("measure.end = '1ms'\n{toml}"));
            assert_eq!(counter(&result, "known_at_end"), 16 * 32);
        }
    }
}

/// A link is dead, and routing does not learn of it. Buffers of 1 GB would take 200 ms to drain.
#[test]
fn flows_are_announced_again_however_large_buffers_are() {
    let toml = "transport = 'r2c2'\nmeasure = { interval = '0s', end = '35ms' }\nreroute_delay = '1ms'\n\
                fabric.torus = { dims = [4, 4], host_rate = '40Gbps' }\nswitch.buffer.shared.bytes = '1GB'\n\
                failure = [{ link = ['switch1', 'switch5'], at = '0s', reroute = false }]\n\
                [[traffic]]\nsizes.constant = '1GB'\nsenders = '1'\nreceivers = '2'\narrivals = 'all_at_once'\n\
                flows = 1";
    let result = run_on(1, toml);
    assert_eq!((counter(&result, "broadcasts"), counter(&result, "known_at_end")), (4, 16));
}

#[test]
fn views_are_of_what_is_there_whatever_fails_and_comes_back() {
    for failure in [
        "[{ at = '1ms', link = ['switch0', 'switch1'] }]",
        "[{ at = '1ms', until = '3ms', link = ['switch5', 'host5'] }]",
        "[{ at = '1ms', until = '11ms', switch = 'switch5' }]",
        "[{ at = '1ms', until = '2ms', switch = 'switch0' }, { at = '1500us', until = '2100us', switch = 'switch10' }]",
    ] {
        for settings in [BRISK, "recompute = '0s', refresh = '500us'"] {
            // Short flows end while nodes are cut off; what lasts is what all have to know of, and no more.
            let short = "[[traffic]]\nname = 'short'\nsizes.constant = '20KB'\narrivals.poisson.every = '20us'\n\
                         duration = '3ms'";
            let toml = format!(
                "measure.end = '16ms'\nreroute_delay = '100us'\nfailure = {failure}\n{}",
                scene("torus.dims = [4, 4]", settings, &format!("{ENDLESS}\n{short}"))
            );
            let result = run_alone(&toml);
            let class = names(table(&result, "flows"), "class");
            let ended = statuses(&result).into_iter().zip(class).filter(|row| row.1 == "short");
            assert!(ended.clone().all(|row| row.0 == "completed"), "{toml}\n{:?}", ended.collect::<Vec<_>>());
            assert_eq!(counter(&result, "flows_failed"), 0, "{toml}");
            assert_eq!(counter(&result, "known_at_end"), 16 * 32, "{toml}");
        }
    }
}

#[test]
fn a_wrong_bit_is_found_by_the_packet_s_own_checksum_and_its_flow_is_whole_in_the_end() {
    let packets = 10_000u64;
    let noise = "failure = [{ at = '0s', link = ['switch0', 'switch1'], bit_error_rate = 1e-5 }]";
    let toml = scene("mesh.dims = [2]", "patience = '20us'", &flow("lone", 0, 1, &format!("{}B", packets * 1465)));
    let result = run_both(&format!("{noise}\n{toml}"));
    all_completed(&result);
    let [corrupted, unnoticed] =
        ["corrupted_packets", "unnoticed_packets"].map(|what| of_link(&result, "switch0", "switch1", what));
    // All that crosses are full packets, but for some 400 broadcasts and questions of 16 and 40 bytes, of which one may
    // be hit.
    let sent = of_flows(&result, "resent_packets")[0] + packets;
    let hit = 1.0 - (1.0f64 - 1e-5).powi(12_000);
    let (due, slack) = (sent as f64 * hit, 4.0 * (sent as f64 * hit * (1.0 - hit)).sqrt() + 3.0);
    assert!(((corrupted + unnoticed) as f64 - due).abs() <= slack, "{corrupted} and {unnoticed} of {due}");
    // Two wrong bits are in one packet of 150: 0.12^2 / 2 / e^0.12. Of these one in 32 is not noticed.
    let missed = sent as f64 * 0.0064 / 32.0;
    assert!(unnoticed as f64 <= missed + 4.0 * missed.sqrt() + 1.0, "{unnoticed} for {missed}");
    assert!(of_flows(&result, "resent_packets")[0] + 3 >= corrupted, "what was lost was sent again");
}

#[test]
fn broadcasts_that_wrong_bits_hit_are_heard_of_when_they_are_said_again() {
    // Of 128 bits one is wrong in 12% of all broadcasts over two links, for 3 ms.
    let noise = "failure = [{ at = '0s', until = '3ms', link = ['switch0', 'switch1'], bit_error_rate = 1e-3 }, \
                 { at = '0s', until = '3ms', link = ['host5', 'switch5'], bit_error_rate = 1e-3 }]";
    let toml = scene("torus.dims = [4, 4]", BRISK, ENDLESS);
    let result = run_both(&format!("measure.end = '6ms'\n{noise}\n{toml}"));
    assert!(of_link(&result, "switch0", "switch1", "corrupted_packets") > 0);
    assert_eq!(counter(&result, "known_at_end"), 16 * 32);
    assert_eq!(counter(&result, "flows_failed"), 0);
}

#[test]
fn flows_whose_packets_are_lost_with_a_switch_ask_for_them_and_finish() {
    let traffic = "[[traffic]]\nsizes.constant = '5MB'\narrivals = 'all_at_once'\nflows = 32";
    let toml = scene("torus.dims = [4, 4]", "recompute = '50us'", traffic);
    let toml =
        format!("reroute_delay = '100us'\nfailure = [{{ at = '1ms', until = '3ms', switch = 'switch5' }}]\n{toml}");
    let result = run_alone(&toml);
    all_completed(&result);
    assert!(counter(&result, "probes") > 0 && column(table(&result, "links"), "dead_packets").iter().sum::<u64>() > 0);
    assert!(of_flows(&result, "resent_packets").iter().sum::<u64>() > 0);
}

#[test]
fn what_is_sent_again_keeps_to_the_rates_too() {
    // What the first flow sends for half a millisecond is lost; when it sends that again, the other is there, and the
    // two share.
    let flows =
        flow("lossy", 0, 1, "2MB") + &flow("other", 0, 2, "1GB").replace("flows = 1", "flows = 1\nstart = '2500us'");
    let toml = scene("mesh.dims = [3]", "recompute = '20us', first_rate = 'alone'", &flows);
    let failure = "{ at = '1ms', until = '1500us', link = ['host1', 'switch1'] }";
    let result = run_alone(&format!("measure.end = '30ms'\nreroute_delay = '50ms'\nfailure = [{failure}]\n{toml}"));
    let resent = of_flows(&result, "resent_packets")[0];
    // One packet each 12,000 bits / 9.5 Gbps.
    assert!((394..=398).contains(&resent), "{resent}");
    // 1,370 packets alone; of the others at most 20 us each time that up to 128 are asked for.
    let (alone, shared) =
        (1_370.0 * PACKET_BITS / LINK_GBPS, resent as f64 * PACKET_BITS / (LINK_GBPS / 2.0) - 4.0 * 20e3);
    let most = (1_370 + resent) as f64 * PACKET_BITS / (alone + shared);
    let mean = measured(&result, 0, "rate_mean_bps") as f64 * 1e-9;
    assert!(mean <= most, "{mean} Gbps, and at most {most} by what the other leaves");
}

#[test]
fn a_dead_link_is_no_reason_to_say_anything_twice() {
    // Another node's host is gone, before routes change and after.
    let toml = scene("mesh.dims = [3]", BRISK, &flow("lone", 0, 1, "1GB"));
    let failure = "reroute_delay = '2ms'\nfailure = [{ at = '0s', link = ['switch2', 'host2'] }]";
    let result = run_alone(&format!("measure.end = '4250us'\n{failure}\n{toml}"));
    // Its start, every 500 us that it is there, and when routes change, from which on it is 500 us again.
    assert_eq!((counter(&result, "broadcasts"), counter(&result, "announced_again")), (1 + 8, 0));
}

#[test]
fn a_node_that_is_cut_off_for_good_is_forgotten_and_flows_to_it_fail() {
    let toml = format!(
        "measure.end = '20ms'\nreroute_delay = '100us'\nfailure = [{{ at = '1ms', switch = 'switch5' }}]\n{}",
        scene("torus.dims = [4, 4]", &format!("{BRISK}, patience = '100us', probes = 4"), ENDLESS)
    );
    let result = run_alone(&toml);
    let cut = ends(&result).iter().map(|&(src, dst)| src == HostId(5) || dst == HostId(5)).collect::<Vec<_>>();
    for (flow, status) in statuses(&result).into_iter().enumerate() {
        assert_eq!(status, if cut[flow] { "failed" } else { "unfinished" }, "flow {flow}");
    }
    let left = cut.iter().filter(|cut| !**cut).count() as u64;
    assert!(left <= 30);
    assert_eq!(counter(&result, "known_at_end"), 15 * left);
}

#[test]
fn a_flow_waits_for_its_path_as_long_as_patience_says() {
    // 0.1 ms x (2 + 4 + 8 + 16), by the clock and not by how often rates are computed.
    let lone = flow("lone", 0, 1, "1GB");
    let toml = scene("mesh.dims = [2]", "recompute = '10us', patience = '100us', probes = 4", &lone);
    for (until, fails) in [("3800us", false), ("5ms", true)] {
        let failure = format!("[{{ at = '1ms', until = '{until}', link = ['switch0', 'switch1'] }}]");
        let result = run_alone(&format!("measure.end = '9ms'\nreroute_delay = '10us'\nfailure = {failure}\n{toml}"));
        assert_eq!(counter(&result, "flows_failed"), u64::from(fails), "until {until}");
    }
}

#[test]
fn broadcasts_that_find_no_room_are_said_again_and_all_ends_well() {
    let traffic = r#"
        [[traffic]]
        name = "burst"
        sizes.constant = "30KB"
        arrivals = "all_at_once"
        flows = 480
        [[traffic]]
        name = "late"
        sizes.constant = "1MB"
        arrivals = "all_at_once"
        start = "100ms"
        pattern.stride.by = 1
        flows = 16
        [[traffic]]
        name = "last"
        sizes.constant = "1MB"
        arrivals = "all_at_once"
        start = "110ms"
        senders = "0"
        receivers = "10"
        flows = 1
    "#;
    // Late flows share no link; by their end what no node has unsaid is forgotten.
    let late = "allocations = [{ traffic = 'late', routing = 'destination_tag' }]";
    let toml = scene("torus.dims = [4, 4]", &format!("{BRISK}, first_rate = 'alone', {late}"), traffic);
    let toml = format!("measure.completion = 'acknowledged'\nswitch.buffer.per_port.bytes = '10KB'\n{toml}");
    let result = run_alone(&toml);
    all_completed(&result);
    let [dropped, again] = ["broadcasts_dropped", "announced_again"].map(|name| counter(&result, name));
    assert!(dropped > 0 && again > 0, "{dropped} dropped, {again} said again");
    // A broadcast that several nodes drop is said again once.
    assert!(again < dropped, "{dropped} dropped, {again} said again");
    assert_eq!((counter(&result, "known_at_end"), counter(&result, "busy_at_end")), (0, 0));
}

#[test]
fn packets_of_each_protocol_pass_links_as_often_as_its_weights_say() {
    let packets = 20_000u64;
    for (code, name) in Routing::NAMES.iter().enumerate() {
        let settings = format!("routing = '{name}', refresh = '1s'");
        let toml =
            scene("torus.dims = [4, 4, 4]", &settings, &flow("lone", 0, 1 + 4 * 2, &format!("{}B", packets * 1465)));
        let result = run_alone(&toml);
        all_completed(&result);
        let (fabric, tables) = network(&toml);
        let weights = tables.weights(Routing::ALL[code], HostId(0), HostId(9));
        let mut share = vec![0.0; fabric.links.len()];
        weights.iter().for_each(|weight| share[weight.link.index()] = f64::from(weight.weight));
        let sent = column(table(&result, "links"), "sent_packets");
        for (link, of) in fabric.links.iter().enumerate() {
            if fabric.as_switch(of.from).is_none() || fabric.as_switch(of.to).is_none() {
                continue;
            }
            // A packet that may pass a link in both phases counts up to two; a start, an end and an acknowledgement are
            // no data.
            let mean = packets as f64 * share[link];
            let slack = if share[link] == 1.0 { 3.0 } else { 3.0 + 5.0 * (2.0 * mean).sqrt() };
            assert!((sent[link] as f64 - mean).abs() <= slack, "{name}, link {link}: {} for {mean}", sent[link]);
        }
        let rate = share.iter().map(|share| LINK_GBPS / share).fold(57.0, f64::min);
        let mean = measured(&result, 0, "rate_mean_bps") as f64 * 1e-9;
        assert!((mean / rate - 1.0).abs() < 1e-6, "{name}: {mean} Gbps for {rate}");
    }
}

#[test]
fn one_controller_gives_the_rates_that_all_would_compute() {
    let traffic = "[[traffic]]\nsizes.constant = '1GB'\narrivals = 'all_at_once'\npattern = 'permutation'\nflows = 16";
    let span = |control: &str| {
        let settings = format!("recompute = '50us', refresh = '1s', control = {control}");
        Span::of(&scene("torus.dims = [4, 4]", &settings, traffic), [1, 6])
    };
    let [each, one] = [span("'decentralised'"), span("{ centralised = { controller = 0 } }")];
    for host in 0..16 {
        let [each, one] = [&each, &one].map(|span| span.gbps(&format!("host{host}"), &format!("switch{host}")));
        assert!(each > 1.0 && (each / one - 1.0).abs() < 0.01, "host {host}: {each} and {one} Gbps");
    }
    // The controller's own flow it knows of. From every other node a start of 16 bytes, and to it a message of one
    // flow's rate, over as many links as it is away: 32 for all together.
    assert_eq!(counter(&one.until[1], "rate_messages"), 15);
    assert_eq!(counter(&one.until[1], "unicast_control_bytes"), 2 * 16 * 32);
    assert_eq!((counter(&one.until[1], "broadcasts"), counter(&one.until[1], "broadcast_copies")), (15, 0));
}

#[test]
fn switched_networks_carry_it_too() {
    // Two spines: twice a link's rate, less the headroom; 200 ns a link and 450 ns a switch.
    let fabric = "leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 2, spine_rate = '10Gbps' }";
    let result = run_alone(&scene(fabric, "", &flow("lone", 0, 2, "14650KB")));
    all_completed(&result);
    let due = 10_000.0 * PACKET_BITS / (2.0 * LINK_GBPS) * 1e-9;
    let fct = of_flows(&result, "fct_ps")[0] as f64 * 1e-12;
    assert!((fct / due - 1.0).abs() < 0.01, "{fct} s for {due} s");
    for fabric in
        ["fat_tree = { k = 4 }", "leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 2, spine_rate = '200Gbps' }"]
    {
        for routing in ["rps", "vlb"] {
            let toml = scene(fabric, &format!("routing = '{routing}'"), &short_flows(300, 0, 15));
            let toml = format!("measure.completion = 'acknowledged'\n{toml}");
            let (alone, together) = (run_alone(&toml), run_on(2, &toml));
            assert_eq!(alone.info.digest, together.info.digest);
            all_completed(&alone);
            assert_eq!((counter(&alone, "known_at_end"), counter(&alone, "busy_at_end")), (0, 0));
        }
    }
}

fn fabrics() -> impl Strategy<Value = &'static str> {
    select(vec![
        "torus.dims = [3, 3]",
        "torus.dims = [4, 3, 2]",
        "mesh.dims = [3, 3]",
        "mesh = { dims = [2, 2, 2], hosts_per_node = 2 }",
        "leaf_spine = { racks = 3, hosts_per_rack = 3, spines = 2, spine_rate = '40Gbps' }",
    ])
}

/// Links and switches that every fabric here has, or a run without the failure.
fn failures() -> impl Strategy<Value = String> {
    let what = select(vec![
        "link = ['switch0', 'switch1']",
        "link = ['host2', 'switch2']",
        "switch = 'switch4'",
        "link = ['leaf0', 'spine1']",
        "switch = 'leaf1'",
    ]);
    (what, 0u64..400, proptest::option::of(10u64..900)).prop_map(|(what, at, lasts)| {
        let until = lasts.map_or(String::new(), |lasts| format!(", until = '{}us'", at + lasts));
        format!("{{ at = '{at}us'{until}, {what} }}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    /// Every flow ends, one thread as two, and what went well without failures has no flow failed.
    #[test]
    fn whatever_is_set_and_whatever_fails_every_flow_ends(
        seed: u32, fabric in fabrics(), (routing, first) in (select(Routing::NAMES.to_vec()), select(vec!["fair",
            "alone"])), recompute in select(vec!["0s", "20us", "500us"]),
        control in select(vec!["'decentralised'", "'decentralised'", "{ centralised = { controller = 1 } }"]),
        (trees, headroom) in (1u8..6, select(vec!["0.0", "0.05", "0.3"])), failure in proptest::option::of(failures()),
        terms in select(vec!["weight = 200", "priority = 1", "produced_at = '1Gbps'", "routing = 'vlb'"]),
        buffer in select(vec!["500KB", "10KB"]), drift in select(vec![0, 200_000]),
        size in select(vec!["1B", "1465B", "20KB", "400KB"]), every in select(vec!["1us", "10us"]),
    ) {
        let scene = |failure: Option<&String>, routing: &str| format!(
            r#"
            seed = {seed}
            {}
            host = {{ clock_offset_max = "3us", clock_drift_ppb_max = {drift} }}
            switch.buffer.per_port.bytes = "{buffer}"
            {}
            [[traffic]]
            name = "some"
            sizes.constant = "{size}"
            arrivals.poisson.every = "{every}"
            flows = 60
            [[traffic]]
            name = "others"
            sizes = {{ uniform = {{ min = "1B", max = "200KB" }} }}
            arrivals = "all_at_once"
            flows = 20
            "#,
            failure.map_or(String::new(), |failure| format!("reroute_delay = '30us'\nfailure = [{failure}]")),
            scene(fabric, &format!(
                "routing = '{routing}', first_rate = '{first}', recompute = '{recompute}', control = {control}, trees \
                 = {trees}, headroom = {headroom}, \
                 patience = '50us', probes = 12, refresh = '300us', allocations = [{{ traffic = 'some', {terms} }}]"
            ), ""),
        );
        // What this fabric lacks is left out.
        let plans = |text: &str| run::Plan::new(&crate::scenario(text)).map(|_| ());
        let failure = failure.filter(|failure| !plans(&scene(Some(failure), "rps"))
            .is_err_and(|problem| problem.key.starts_with("failure")));
        let routing = if plans(&scene(failure.as_ref(), routing)).is_ok() { routing } else { "rps" };
        let text = scene(failure.as_ref(), routing);
        let (alone, together) = (run_on(1, &text), run_on(2, &text));
        prop_assert_eq!(&alone.info.digest, &together.info.digest, "{}", text);
        for (alone, together) in alone.tables.iter().zip(&together.tables) {
            prop_assert!(format!("{alone:?}") == format!("{together:?}"), "table {}\n{}\n{:?}\n\
                {:?}", alone.name, text, alone, together);
        }
        prop_assert!(statuses(&alone).iter().all(|status| *status == "completed" || failure.is_some()
            && *status == "failed"), "{}\n{:?}", text, statuses(&alone));
        prop_assert_eq!(counter(&alone, "malformed") + counter(&alone, "switch_malformed"), 0, "{}", text);
    }
}

#[test]
fn a_flow_that_lasts_is_routed_for_the_good_of_all_and_everybody_knows() {
    // Between neighbours there is one shortest path, of 9.5 Gbps; over random waypoints there is more while nobody else
    // is there.
    for turns in ["token", "random"] {
        let adapt =
            format!("recompute = '100us', adapt = {{ every = '100us', older_than = '300us', turns = '{turns}' }}");
        let toml = scene("torus = { dims = [4, 4] }", &adapt, &flow("long", 0, 1, "20MB"));
        let result = run_alone(&toml);
        all_completed(&result);
        let (_, tables) = network(&toml);
        let weights = tables.weights(Routing::Vlb, HostId(0), HostId(1));
        let heaviest = weights.iter().map(|of| f64::from(of.weight)).fold(0.0, f64::max);
        let (before, after) = (LINK_GBPS, LINK_GBPS / heaviest);
        assert!(after > 2.0 * before, "{after} Gbps over waypoints");
        // Somebody looks every 100 us; by chance it may take a while.
        let bits = (20_000_000.0f64 / 1_465.0).ceil() * PACKET_BITS;
        let ends_at = |changed_us: f64| changed_us + (bits * 1e-3 - before * changed_us) / after;
        let fct_us = of_flows(&result, "fct_ps")[0] as f64 * 1e-6;
        let latest = if turns == "token" { 600.0 } else { 3_000.0 };
        assert!(fct_us > ends_at(300.0) && fct_us < ends_at(latest) + 20.0, "{turns}: {fct_us} us");
        assert_eq!((counter(&result, "assignments"), counter(&result, "flows_rerouted")), (1, 1), "{turns}");
        assert!(counter(&result, "searches") >= 1);
        // Five bytes to each of fifteen other nodes, beside the flow's start and end.
        assert_eq!(counter(&result, "broadcast_copied_bytes"), 15 * (16 + 16 + 5), "{turns}");
    }
}
