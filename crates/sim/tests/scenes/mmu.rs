//! A switch with pools, groups, queues and weights as operators configure it.

use clearway_sim::RunResult;
use run::Data;

use crate::{column, counter, names, of_link, of_links, run_both, table};

const MEASURED: &str = "
    flow_control.mmu = { lossless = [3, 4], pool = [
        { name = 'in', side = 'ingress', bytes = 'POOL' },
        { name = 'out', side = 'egress', bytes = 'POOL' },
        { name = 'rest_in', side = 'ingress', bytes = '100MB' },
        { name = 'rest_out', side = 'egress', bytes = '100MB' },
    ], group = [
        { groups = [3, 4], pool = 'in', alpha = 1.0, xon_offset = '20KB' },
        { groups = [0, 1, 2, 5, 6, 7], pool = 'rest_in' },
    ], queue = [
        { queues = [1, 2], pool = 'out', alpha = 1.0 },
        { queues = [0, 3, 4, 5, 6, 7], pool = 'rest_out' },
    ], schedule = [{ queues = [3, 4, 1, 2, 0, 5, 6, 7], weights = [2, 1, 1, 1, 1, 1, 1, 1] }] }
    fabric.star = { hosts = 4, rate = '400Gbps' }
    host.mtu = '4096B'
    switch.buffer = { shared = { bytes = '200MB' } }
";

/// Messages of one host to host 0 in a class, for the whole run.
fn stream(class: u8, sender: u32, rate: &str) -> String {
    format!(
        "[[traffic]]\nname = 'q{class}'\ntransport = {{ udp = {{ class = {class}{rate} }} }}\nsizes.constant = '1GB'\n\
         arrivals = 'all_at_once'\nsenders = '{sender}'\nreceivers = '0'\nflows = 1\n"
    )
}

/// By class of packets: bytes that left a port from `from_ps` on, and how long they had been in the switch at the mean.
fn passed(result: &RunResult, class: u8, from_ps: u64) -> (u64, f64) {
    let packets = table(result, "packets");
    let (mut bytes, mut waited, mut count) = (0, 0, 0u64);
    let came = column(packets, "came_ps").iter().zip(column(packets, "last_ps"));
    let Data::U32(classes) = &packets.column("class").unwrap().data else { panic!("a number") };
    let of = classes.iter().zip(column(packets, "bytes")).zip(names(packets, "lost"));
    for ((came, last), ((of, size), lost)) in came.zip(of) {
        if *of == u32::from(class) && *last >= from_ps && lost.is_empty() {
            bytes += size;
            waited += last - came;
            count += 1;
        }
    }
    (bytes, waited as f64 / count as f64)
}

/// The switch that was measured for sonic-mgmt's pull request 25347 (2026): three senders at line rate into one port,
/// two lossless and two lossy flows, no congestion control. Inferred from the bytes: weights 2:1:1:1, and two lossy
/// flows of half a line rate each, since each of them sent half of the port's bytes. Inferred from the first latency:
/// with a port of 400 Gbps each queue is held at 12.57 MB, a third of a pool that two of them share with alpha 1. The
/// other three latencies, the shares and the losses follow.
#[test]
fn the_measured_switch_with_two_lossless_and_two_lossy_flows() {
    const BYTES: [f64; 4] = [1_278_997_926_552.0, 639_510_016_514.0, 639_521_198_020.0, 639_521_181_316.0];
    const SENT: [f64; 2] = [1_598_664_090_162.0, 1_598_675_587_032.0];
    const LATENCY_NS: [f64; 4] = [628_721.0, 1_260_756.0, 1_257_219.0, 1_257_202.0];
    let all: f64 = BYTES.iter().sum();
    let held = BYTES[0] / all * 400e9 / 8.0 * LATENCY_NS[0] / 1e9;
    let pool = format!("{}B", (3.0 * held) as u64);
    let half = ", rate = '200Gbps'";
    let result = run_both(&format!(
        "measure = {{ interval = '0s', end = '8ms', packets = {{ links = ['switch0-host0'] }} }}\n{}{}{}{}{}",
        MEASURED.replace("POOL", &pool),
        stream(3, 1, ""),
        stream(4, 2, ""),
        stream(1, 3, half),
        stream(2, 3, half),
    ));
    let passed: Vec<(u64, f64)> = [3, 4, 1, 2].map(|class| passed(&result, class, 4_000_000_000)).to_vec();
    let bytes: u64 = passed.iter().map(|of| of.0).sum();
    for (flow, (own, latency)) in passed.iter().enumerate() {
        let (share, expected) = (*own as f64 / bytes as f64, BYTES[flow] / all);
        assert!((share / expected - 1.0).abs() < 0.05, "flow {flow}: share {share} for {expected}");
        let ns = latency / 1e3;
        assert!((ns / LATENCY_NS[flow] - 1.0).abs() < 0.05, "flow {flow}: {ns} ns for {}", LATENCY_NS[flow]);
    }
    // Of each lossy flow 40% arrive, at half a line rate.
    let sent = 25e9 * 4e-3;
    for (flow, all_sent) in SENT.iter().enumerate() {
        let (arrived, expected) = (passed[2 + flow].0 as f64 / sent, BYTES[2 + flow] / all_sent);
        assert!((arrived / expected - 1.0).abs() < 0.05, "lossy flow {flow}: {arrived} for {expected}");
    }
    assert_eq!(counter(&result, "lossless_losses"), 0);
    assert!(of_links(&result, "overflow_packets") > 0 && counter(&result, "pfc_pauses") > 0);
}

/// One sender and a receiver of a tenth of its rate, over links of 2 us: a group with this threshold and headroom.
fn one_group(threshold: u64, headroom: u64, offset: u64) -> RunResult {
    run_both(&format!(
        "timing = 'ideal'\nmeasure = {{ interval = '0s', end = '2ms', packets = {{ links = ['switch0-host0'] }} }}\n\
         flow_control.mmu = {{ lossless = [3], pool = [\n\
         {{ name = 'in', side = 'ingress', bytes = '2MB' }}, {{ name = 'out', side = 'egress', bytes = '4MB' }} ],\n\
         group = [{{ groups = [0, 1, 2, 3, 4, 5, 6, 7], pool = 'in', threshold = '{threshold}B', \
         headroom = '{headroom}B', xon_offset = '{offset}B' }}],\n\
         queue = [{{ queues = [0, 1, 2, 4, 5, 6, 7], pool = 'out' }}, \
         {{ queues = [3], pool = 'out', max_rate = '10Gbps', burst = '3000B' }}] }}\n\
         fabric.star = {{ hosts = 2, propagation = '2us', switch_delay = '0ns' }}\n\
         switch.buffer = {{ shared = {{ bytes = '8MB' }} }}\n{}",
        stream(3, 1, "")
    ))
}

/// Headroom of a round trip and the packets that have begun suffices, to the packet; less loses. And a queue with a
/// greatest rate sends it.
#[test]
fn headroom_is_what_arrives_after_a_pause_and_no_less() {
    // 4 us both ways at 100 Gbps.
    let round_trip = 50_000;
    let enough = one_group(200_000, round_trip + 2 * 1_500 + 64, 60_000);
    assert_eq!((counter(&enough, "lossless_losses"), of_links(&enough, "overflow_packets")), (0, 0));
    assert!(counter(&enough, "pfc_pauses") > 5);
    let short = one_group(200_000, round_trip - 3_000, 60_000);
    assert!(counter(&short, "lossless_losses") > 0);
    let (bytes, _) = passed(&enough, 3, 1_000_000_000);
    let expected = 10e9 / 8.0 * 1e-3;
    assert!((bytes as f64 - expected).abs() <= 1_500.0, "{bytes} for {expected}");
}

/// `cases/pyrrha/p3` and `p4`: lossy traffic fills what it may, and a lossless class beside it loses nothing.
#[test]
fn a_lossless_group_beside_lossy_traffic_loses_nothing() {
    let traffic = "[[traffic]]\nname = 'lossy'\ntransport = 'udp'\nsizes.constant = '20MB'\nsenders = '0-1'\n\
        receivers = '4'\npattern.incast.degree = 2\narrivals = 'all_at_once'\nflows = 2\n\
        [[traffic]]\nname = 'roce'\ntransport.rdma.window = 'unlimited'\nsizes.constant = '2MB'\nsenders = '2-3'\n\
        receivers = '5'\npattern.incast.degree = 2\narrivals = 'all_at_once'\nstart = '500us'\nflows = 2\n";
    for (lossy, lost) in [("alpha = 8.0", true), ("threshold = '100KB'", true)] {
        let result = run_both(&format!(
            "measure = {{ interval = '10us', drain = '30ms' }}\nfabric.star = {{ hosts = 6 }}\n\
             flow_control.mmu = {{ lossless = [3], cell = '256B', pool = [\n\
             {{ name = 'in', side = 'ingress', bytes = '1.5MB', headroom = '200KB' }},\n\
             {{ name = 'out', side = 'egress', bytes = '2MB' }} ], group = [\n\
             {{ groups = [3], pool = 'in', reserved = '10KB', alpha = 1.0 }},\n\
             {{ groups = [0, 1, 2, 4, 5, 6, 7], pool = 'in', {lossy} }} ],\n\
             queue = [{{ queues = [0, 1, 2, 3, 4, 5, 6, 7], pool = 'out' }}] }}\n\
             switch.buffer = {{ shared = {{ bytes = '2MB' }} }}\n{traffic}"
        ));
        assert_eq!(counter(&result, "lossless_losses"), 0);
        assert_eq!(of_link(&result, "switch0", "host5", "overflow_packets"), 0);
        assert_eq!(of_link(&result, "switch0", "host4", "overflow_packets") > 0, lost);
        let of = names(table(&result, "flows"), "status");
        assert_eq!(&of[2..], ["completed", "completed"]);
    }
}

/// Packets that come in a class leave by the queue that the maps give it: class 5 before class 1, and 2 with 1.
#[test]
fn maps_decide_about_queues() {
    let result = run_both(&format!(
        "measure = {{ interval = '0s', end = '1ms', packets = {{ links = ['switch0-host0'] }} }}\n\
         flow_control.mmu = {{ lossless = [], maps = {{ dscp = [0, 8, 8, 0, 0, 46, 0, 0], dscp_to_tc = {:?}, \
         tc_to_queue = [0, 1, 1, 3, 4, 7, 6, 7] }},\n\
         schedule = [{{ queues = [7] }}, {{ queues = [1, 0], weights = [3, 1], by = 'packets' }}] }}\n\
         fabric.star = {{ hosts = 4 }}\nswitch.buffer = {{ shared = {{ bytes = '8MB' }} }}\n{}{}{}",
        (0..64).map(|dscp| if dscp == 46 { 5 } else { u8::from(dscp == 8) }).collect::<Vec<_>>(),
        stream(5, 1, ", rate = '50Gbps'"),
        stream(1, 2, ", rate = '80Gbps'"),
        stream(3, 3, ", rate = '80Gbps'"),
    ));
    let share = |class| passed(&result, class, 500_000_000).0 as f64 * 8.0 / 500e-6 / 1e9;
    for (class, expected) in [(5, 50.0), (1, 37.5), (3, 12.5)] {
        let rate = share(class);
        assert!((rate - expected).abs() < 0.2, "class {class}: {rate} Gbps for {expected}");
    }
}

/// Marks begin at a queue's own profile, at departure too, and nowhere else.
#[test]
fn each_queue_marks_by_its_own_profile() {
    let marked = |class: u8, at: &str| {
        let result = run_both(&format!(
            "measure = {{ interval = '0s', end = '1ms' }}\n\
             flow_control.mmu = {{ pool = [{{ name = 'out', side = 'egress', bytes = '4MB' }}], queue = [\n\
             {{ queues = [3], pool = 'out', ecn = {{ min = '3KB', max = '10KB', probability_max = 0.1{at} }} }},\n\
             {{ queues = [0, 1, 2, 4, 5, 6, 7], pool = 'out' }}] }}\n\
             fabric.star = {{ hosts = 3 }}\nswitch.buffer = {{ shared = {{ bytes = '8MB' }} }}\n\
             [[traffic]]\ntransport.dcqcn.class = {class}\nsizes.constant = '4MB'\n\
             senders = '1-2'\nreceivers = '0'\npattern.incast.degree = 2\narrivals = 'all_at_once'\nflows = 2\n"
        ));
        of_link(&result, "switch0", "host0", "marked_packets")
    };
    assert!(marked(3, "") > 10 && marked(3, ", at_departure = true") > 10);
    assert_eq!(marked(4, ""), 0);
}

/// A receiver that takes almost nothing in pauses its switch for ever: a storm. Without a watchdog another flow of the
/// class waits behind it; with one, it is found after its detection time, and the other flow goes on.
#[test]
fn a_watchdog_ends_a_storm_and_frees_what_waits_behind_it() {
    let storm = |watchdog: &str| {
        run_both(&format!(
            "measure = {{ interval = '0s', end = '5ms' }}\n\
             flow_control.mmu = {{ pool = [{{ name = 'in', side = 'ingress', bytes = '400KB' }}]{watchdog} }}\n\
             host = {{ intake_rate = '1Mbps', intake_buffer = '300KB' }}\n\
             fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 1 }}\n\
             switch.buffer = {{ shared = {{ bytes = '8MB' }} }}\n\
             [[traffic]]\nname = 'stormed'\ntransport.udp.class = 3\nsizes.constant = '20MB'\n\
             arrivals = 'all_at_once'\nsenders = '4'\nreceivers = '0'\nflows = 1\n\
             [[traffic]]\nname = 'victim'\ntransport.udp.class = 3\nsizes.constant = '100KB'\n\
             arrivals = 'all_at_once'\nstart = '3ms'\nsenders = '5'\nreceivers = '1'\nflows = 1\n"
        ))
    };
    let (none, with) = (storm(""), storm(", watchdog = { detection = '200us', restoration = '1ms' }"));
    let to_victim = |result: &RunResult| of_link(result, "leaf0", "host1", "sent_packets");
    assert_eq!((to_victim(&none), of_links(&none, "overflow_packets")), (0, 0));
    // All of the victim's 69 packets; the storm is found once at leaf0, and lasts.
    assert_eq!((to_victim(&with), counter(&with, "pfc_storms"), counter(&with, "pfc_storms_over")), (69, 1, 0));
    assert!(of_link(&with, "leaf0", "host0", "overflow_packets") > 0);
    let forwards = storm(", watchdog = { detection = '200us', restoration = '1ms', action = 'forward' }");
    assert_eq!(to_victim(&forwards), 69);
}

/// Leaves and spines with pools of their own: a spine with a small pool pauses, leaves with large ones do not; and each
/// has the memory of its role.
#[test]
fn switches_have_the_settings_of_their_role() {
    let roles = |spine: &str| {
        run_both(&format!(
            "measure = {{ interval = '0s', end = '3ms' }}\n\
             fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 2, spines = 1, spine_rate = '100Gbps' }}\n\
             switch.buffer = {{ shared = {{ bytes = '9MB' }} }}\n\
             flow_control.mmu = {{ pool = [{{ name = 'in', side = 'ingress', bytes = '8MB' }}], role = [\n\
             {{ switches = ['spine*'], buffer = '3MB', pool = [\n\
             {{ name = 'in', side = 'ingress', bytes = '{spine}' }} ] }} ] }}\n\
             [[traffic]]\ntransport.udp.class = 3\nsizes.constant = '400KB'\nsenders = '2-5'\nreceivers = '0'\n\
             pattern.incast.degree = 4\narrivals = 'all_at_once'\nflows = 4\n"
        ))
    };
    let of = |result: &RunResult, from: &str, to: &str| of_link(result, from, to, "pauses");
    let (small, large) = (roles("100KB"), roles("2MB"));
    assert!(of(&small, "leaf1", "spine0") > 0, "a small spine pauses the leaves below it");
    assert_eq!((of(&large, "leaf1", "spine0"), of(&large, "host2", "leaf1")), (0, 0));
    for result in [&small, &large] {
        assert_eq!((counter(result, "lossless_losses"), of_links(result, "overflow_packets")), (0, 0));
    }
}

/// Two senders at 60 Gbps each to one queue with this profile, in class 3, for this number of microseconds.
fn early(more: &str, ecn: &str, us: u64) -> RunResult {
    run_both(&format!(
        "measure = {{ interval = '0s', end = '{us}us' }}\nflow_control.mmu = {{ lossless = [], {more}\
         pool = [{{ name = 'out', side = 'egress', bytes = '40MB' }}], queue = [\n\
         {{ queues = [3], pool = 'out', ecn = {ecn} }}, {{ queues = [0, 1, 2, 4, 5, 6, 7], pool = 'out' }}] }}\n\
         fabric.star = {{ hosts = 3 }}\nswitch.buffer = {{ shared = {{ bytes = '80MB' }} }}\n\
         [[traffic]]\ntransport = {{ udp = {{ class = 3, rate = '60Gbps' }} }}\nsizes.constant = '1GB'\n\
         arrivals = 'all_at_once'\nsenders = '1-2'\nreceivers = '0'\npattern.incast.degree = 2\nflows = 2\n"
    ))
}

/// A packet of 1,500 bytes comes each 100 ns and leaves in 120, so the k-th finds 250 k bytes, and the average is
/// 250 (k - 2^n (1 - (1 - 2^-n)^k)). Losses begin when that passes 1 MB, to 1% of the time.
#[test]
fn an_average_length_lags_by_two_to_the_power_of_its_exponent_arrivals() {
    for exponent in [0, 6, 12, 14] {
        let ecn =
            |average: &str| format!("{{ min = '1MB', max = '1.0001MB', probability_max = 1.0, drop = true{average} }}");
        let ecn = if exponent == 0 { ecn("") } else { ecn(&format!(", average = {exponent}")) };
        let span = f64::from(1 << exponent);
        let lag = |k: f64| if exponent == 0 { 0.0 } else { span * (1.0 - (1.0 - 1.0 / span).powf(k)) };
        let first = (0..100_000).map(f64::from).find(|&k| 250.0 * (k - lag(k)) > 1e6).unwrap();
        let lost = |share: f64| {
            let result = early("", &ecn, (first * 0.1 * share) as u64);
            of_link(&result, "switch0", "host0", "overflow_packets")
        };
        assert!(lost(0.99) == 0 && lost(1.01) > 0, "2^{exponent}: {} and {}", lost(0.99), lost(1.01));
    }
}

/// A meter at each sender's port, of 15 Gbps committed and 25 at the peak, of 60 that come. With yellow and red packets
/// lost, the committed rate goes on; with red ones lost, the peak rate.
#[test]
fn a_two_rate_meter_and_profiles_by_colour_let_pass_what_they_say() {
    let meter = "meter = [{ classes = [3], cir = '15Gbps', cbs = '15KB', pir = '25Gbps', pbs = '25KB' }], ";
    let colours = "yellow = { min = '0B', max = '1B', probability_max = 1.0, drop = true }, \
                   red = { min = '0B', max = '1B', probability_max = 1.0, drop = true, mark = false }";
    for (yellow_passes, gbps) in [(false, 15.0), (true, 25.0)] {
        let own = if yellow_passes { colours.replacen("drop = true", "drop = false", 1) } else { colours.to_string() };
        let ecn = format!("{{ min = '10MB', max = '20MB', probability_max = 0.1, {own} }}");
        let result = early(meter, &ecn, 2_000);
        let sent = of_link(&result, "switch0", "host0", "sent_packets") as f64;
        // And the bursts.
        let expected = 2.0 * (gbps * 1e9 / 8.0 * 2e-3 + if yellow_passes { 25e3 } else { 15e3 }) / 1_500.0;
        assert!((sent / expected - 1.0).abs() < 0.005, "{sent} for {expected}");
    }
}

/// A meter's colour stays with a packet until it leaves: yellow packets of DCQCN are marked then, and no others.
#[test]
fn a_colour_is_kept_until_departure() {
    let marked = |committed: &str| {
        let result = run_both(&format!(
            "measure = {{ interval = '0s', end = '300us' }}\nflow_control.mmu = {{ lossless = [],\n\
             meter = [{{ classes = [3], cir = '{committed}', cbs = '3KB', ebs = '1MB' }}],\n\
             pool = [{{ name = 'out', side = 'egress', bytes = '4MB' }}], queue = [\n\
             {{ queues = [3], pool = 'out', ecn = {{ min = '3MB', max = '4MB', probability_max = 0.1, \
             at_departure = true, yellow = {{ min = '0B', max = '1KB', probability_max = 1.0 }} }} }},\n\
             {{ queues = [0, 1, 2, 4, 5, 6, 7], pool = 'out' }}] }}\n\
             fabric.star = {{ hosts = 4 }}\nswitch.buffer = {{ shared = {{ bytes = '8MB' }} }}\n\
             [[traffic]]\ntransport.dcqcn = {{ class = 3, window = 'unlimited' }}\nsizes.constant = '500KB'\n\
             senders = '1-3'\nreceivers = '0'\npattern.incast.degree = 3\narrivals = 'all_at_once'\nflows = 3\n"
        ));
        of_link(&result, "switch0", "host0", "marked_packets")
    };
    assert_eq!(marked("100Gbps"), 0);
    assert!(marked("50Gbps") > 50);
}

/// Colours by DSCP: class 3 is red and marked from the first byte on, class 4 is green and never.
#[test]
fn a_map_colours_by_dscp() {
    let marked = |class: u8| {
        let colours: Vec<u8> = (0..64).map(|dscp| if dscp == 26 { 2 } else { 0 }).collect();
        let tc: Vec<u8> = (0..64)
            .map(|dscp| {
                if dscp == 26 {
                    3
                } else if dscp == 34 {
                    4
                } else {
                    0
                }
            })
            .collect();
        let result = run_both(&format!(
            "measure = {{ interval = '0s', end = '1ms' }}\nflow_control.mmu = {{ lossless = [],\n\
             maps = {{ dscp = [0, 0, 0, 26, 34, 0, 0, 0], dscp_to_tc = {tc:?}, dscp_to_colour = {colours:?}, \
             tc_to_queue = [0, 1, 2, 3, 3, 5, 6, 7] }},\n\
             pool = [{{ name = 'out', side = 'egress', bytes = '4MB' }}], queue = [\n\
             {{ queues = [3], pool = 'out', ecn = {{ min = '3MB', max = '4MB', probability_max = 0.1, \
             red = {{ min = '0B', max = '1B', probability_max = 1.0 }} }} }},\n\
             {{ queues = [0, 1, 2, 4, 5, 6, 7], pool = 'out' }}] }}\n\
             fabric.star = {{ hosts = 2 }}\nswitch.buffer = {{ shared = {{ bytes = '8MB' }} }}\n\
             [[traffic]]\ntransport.dcqcn.class = {class}\nsizes.constant = '1MB'\n\
             senders = '1'\nreceivers = '0'\narrivals = 'all_at_once'\nflows = 1\n"
        ));
        (of_link(&result, "switch0", "host0", "marked_packets"), of_link(&result, "switch0", "host0", "sent_packets"))
    };
    let (marked_of_3, sent) = marked(3);
    assert_eq!(marked_of_3, sent);
    assert_eq!(marked(4).0, 0);
}

/// Both queues of a port share 40 Gbps by 1 : 3, to a burst; a fabric's other links are as they were.
#[test]
fn a_port_keeps_its_greatest_rate() {
    let result = run_both(&format!(
        "measure = {{ interval = '0s', end = '2ms', packets = {{ links = ['switch0-host0'] }} }}\n\
         flow_control.mmu = {{ lossless = [], max_rate = '40Gbps', burst = '3000B', \
         schedule = [{{ queues = [1, 2, 0, 3, 4, 5, 6, 7], weights = [1, 3, 1, 1, 1, 1, 1, 1] }}] }}\n\
         fabric.star = {{ hosts = 3 }}\nswitch.buffer = {{ shared = {{ bytes = '8MB' }} }}\n{}{}",
        stream(1, 1, ", rate = '60Gbps'"),
        stream(2, 2, ", rate = '60Gbps'"),
    ));
    let (one, three) = (passed(&result, 1, 1_000_000_000).0, passed(&result, 2, 1_000_000_000).0);
    let expected = 40e9 / 8.0 * 1e-3;
    assert!(((one + three) as f64 - expected).abs() <= 2.0 * 1_500.0, "{one} and {three} for {expected}");
    // A turn of 2,048 bytes for each weight, and a packet.
    assert!((three as f64 - 3.0 * one as f64).abs() <= 3.0 * (2_048.0 + 2.0 * 1_500.0), "{one} and {three}");
}

#[test]
fn profiles_meters_and_rates_that_make_no_sense_are_refused() {
    let problem = |mmu: &str| {
        let text = format!(
            "flow_control.mmu = {{ {mmu} }}\n[[traffic]]\nsizes.constant = '1KB'\narrivals = 'all_at_once'\nflows = 1"
        );
        scenario::read(&text, "scene.toml", &[]).unwrap_err().to_string()
    };
    let ecn = |more: &str| {
        format!("queue = [{{ queues = [3], ecn = {{ min = '1KB', max = '2KB', probability_max = 0.1, {more} }} }}]")
    };
    let meter = |more: &str| format!("meter = [{{ classes = [1], cir = '1Gbps', cbs = '9KB', {more} }}]");
    for (mmu, words) in [
        (ecn("average = 16"), "16 is not between 1 and 15"),
        (ecn("red = { min = '2KB', max = '1KB', probability_max = 0.1 }"), "min < max"),
        (meter("pir = '2Gbps'"), "pir and pbs go together"),
        (meter("pir = '0.5Gbps', pbs = '9KB'"), "is below cir"),
        (meter("pir = '2Gbps', pbs = '9KB', ebs = '9KB'"), "has pbs instead"),
        ("burst = '9KB'".to_string(), "goes with max_rate"),
        ("max_rate = '0bps'".to_string(), "0 is no rate"),
        (format!("maps.dscp_to_colour = {:?}", [1; 64]), "goes with dscp"),
    ] {
        let said = problem(&mmu);
        assert!(said.contains(words), "{mmu}: {said}");
    }
}
