//! Fastpass in whole networks: what arithmetic and its promise of empty queues say.

use clearway_sim::RunResult;
use run::Plan;

use crate::{column, counter, of_flows, of_link, of_links, run_alone, run_both, scenario, table};

/// A slot of the paper's fabric: 120 ns, 1% for control, and a multiple of the four lanes of its spine links.
const SLOT_PS: u64 = 121_216;
/// A control packet's way within a rack and across racks.
const NEAR_PS: u64 = 2 * (3_200 + 200_000) + 450_000;
const FAR_PS: u64 = 2 * (3_200 + 800) + 4 * 200_000 + 3 * 450_000;
/// From a decision to its slot: the longest way of a control packet, and of slack a slot a switch and eight.
const LEAD_PS: u64 = FAR_PS + (3 + 8) * SLOT_PS;

/// Alone in a network, no data packet waited for more than control packets of 40 B on the slowest links of the longest
/// way, two of them hosts', no link had more than one waiting, and nothing was lost. (That nothing exceeds what is
/// guaranteed beside others, the audit sees.)
fn assert_nothing_waits(result: &RunResult) {
    let plan = Plan::new(&scenario(&result.scenario_toml)).unwrap();
    let switches = plan.sites[0].data_rtts.iter().map(|of| u64::from(of.0)).max().unwrap();
    let header = u64::from(plan.sites[0].header_bytes);
    let slowest = plan.fabric.narrowest_rate().transmit(header).ps();
    let waited = *column(table(result, "guaranteed_waits"), "wait_ps").iter().max().unwrap();
    assert!(waited <= (switches + 1) * slowest, "{waited} ps\n{}", result.scenario_toml);
    let queued = *column(table(result, "guarantees"), "queue_max_bytes").iter().max().unwrap();
    assert!(queued <= u64::from(plan.sites[0].mtu_bytes), "{queued} B\n{}", result.scenario_toml);
    assert_eq!((of_links(result, "overflow_packets"), of_links(result, "dead_packets")), (0, 0));
}

fn messages(size: &str, rest: &str) -> String {
    format!(
        "transport = \"fastpass\"\nmeasure.interval = \"0s\"\n{rest}\n[[traffic]]\n\
         sizes = {{ constant = \"{size}\" }}\n"
    )
}

#[test]
fn a_lone_message_takes_what_arithmetic_says() {
    // 128,000 B are 88 packets, from the arbiter's rack to another.
    let lone = "arrivals = \"all_at_once\"\nsenders = \"5\"\nreceivers = \"143\"\nflows = 1\n";
    let result = run_both(&(messages("128KB", "") + lone));
    let begin = (NEAR_PS + LEAD_PS).next_multiple_of(SLOT_PS);
    let way = 2 * (120_000 + 30_000) + 4 * 200_000 + 3 * 450_000;
    assert_eq!(of_flows(&result, "delivered_ps"), [begin + 87 * SLOT_PS + way]);
    assert_eq!(of_flows(&result, "completed_ps"), [begin + 87 * SLOT_PS + way + FAR_PS]);
    assert_eq!(of_flows(&result, "sent_packets"), [88]);
}

#[test]
fn a_permutation_fills_the_links() {
    let text = messages("1460KB", "fabric.star = { hosts = 17 }");
    let permutation =
        "arrivals = \"all_at_once\"\npattern = \"permutation\"\nsenders = \"1-16\"\nreceivers = \"1-16\"\n";
    let result = run_both(&(text + permutation));
    let delivered = of_flows(&result, "delivered_ps");
    // All at once, 1,000 slots each: 99% of the link's rate. (Hosts that were asked of later begin a slot later.)
    let slot = 121_213;
    let begin = |delivered: u64| delivered - 999 * slot - 2 * 320_000 - 450_000;
    let begins: Vec<u64> = delivered.iter().map(|&at| begin(at)).collect();
    let (first, last) = (*begins.iter().min().unwrap(), *begins.iter().max().unwrap());
    assert!(begins.len() == 16 && last - first <= slot && first % slot == 0, "{begins:?}");
    assert_nothing_waits(&result);
}

#[test]
fn an_incast_is_served_one_after_the_other() {
    let text = messages("146KB", "fabric.leaf_spine = {}");
    // 16 senders of 100 packets: 194 us, so most of it is rejected after 63; with a millisecond of patience all goes.
    let incast = "arrivals = \"all_at_once\"\npattern = { incast = { degree = 16 } }\nreceivers = \"20\"\nflows = 16\n";
    let patient = text.replace("\"fastpass\"", "{ fastpass = { delta_admission = \"1ms\" } }");
    let result = run_both(&(patient + incast));
    assert_nothing_waits(&result);
    let mut delivered = of_flows(&result, "delivered_ps").to_vec();
    delivered.sort_unstable();
    // A sender of another distance may cost a slot between two.
    let gaps: Vec<u64> = delivered.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps.iter().all(|gap| (100 * SLOT_PS..115 * SLOT_PS).contains(gap)), "{gaps:?}");
    let result = run_both(&(text + incast));
    let (rejects, completed) = (counter(&result, "rejects"), result.info.flows_completed);
    // Whoever can begin within 63 us: at 0, 12.1, and so on to 60.6 us.
    assert_eq!((rejects, completed), (10, 6));
}

#[test]
fn at_a_load_of_0_6_no_data_waits_anywhere() {
    let text = messages("128KB", "fabric.leaf_spine = {}");
    let result = run_alone(&(text + "arrivals = { poisson = { load = 0.6 } }\nduration = \"500us\"\n"));
    assert!(result.info.flows > 3_000);
    assert_nothing_waits(&result);
    // Control alone waits in switches, and a data packet for it.
    let longest = column(table(&result, "links"), "queued_bytes_max").iter().max().copied().unwrap();
    assert!(longest < 3_000, "{longest} B");
    assert_eq!(counter(&result, "slots_missed"), 0);
    assert!(result.info.flows_completed * 100 > result.info.flows * 90);
}

#[test]
fn nothing_waits_in_any_fabric() {
    let traffic = "arrivals = { poisson = { load = 0.6 } }\nflows = 300\n";
    for settings in [
        "fabric.leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 2, spine_rate = \"200Gbps\" }",
        "fabric.leaf_spine = \
         { racks = 4, hosts_per_rack = 4, spines = 2, spine_rate = \"100Gbps\", oversubscription = 2.0 }",
        "fabric.leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 2, spine_rate = \"250Gbps\" }",
        "fabric.fat_tree = { k = 4 }",
        "fabric.fat_tree = { k = 4, oversubscription = 4.0 }",
        "fabric.dumbbell = { bottleneck_rate = \"400Gbps\" }",
        "fabric.torus = { dims = [3, 4] }",
        "fabric.leaf_spine = { racks = 4, hosts_per_rack = 4 }\nswitch.cut_through = true",
        "fabric.fat_tree = { k = 4 }\nswitch.cut_through = true\nhost.delay = \"225ns\"",
        "fabric.leaf_spine = { racks = 4, hosts_per_rack = 4 }\nhost = { mtu = \"9000B\", delay = \"1us\" }",
        "fabric.leaf_spine = { racks = 4, hosts_per_rack = 4 }\nhost = { clock_offset_max = \"4us\" }",
    ] {
        for transport in ["\"fastpass\"", "{ fastpass = { granularity = \"packet\", arbiter = 3 } }"] {
            let text = messages("30KB", settings).replace("\"fastpass\"", transport);
            let result = run_both(&(text + traffic));
            assert_nothing_waits(&result);
            assert!(
                result.info.flows_completed * 2 > result.info.flows,
                "{}\n{}",
                result.info.flows_completed,
                result.scenario_toml
            );
        }
    }
}

#[test]
fn failures_cost_time_and_no_message() {
    let patient = "transport = { fastpass = { delta_admission = \"100ms\", patience = \"20ms\" } }\n\
                   measure.interval = \"0s\"\nreroute_delay = \"20us\"\n\
                   fabric.leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 2, spine_rate = \"200Gbps\" }\n";
    let traffic = "[[traffic]]\nsizes = { uniform = { min = \"1KB\", max = \"300KB\" } }\n\
                   arrivals = { poisson = { load = 0.5 } }\nflows = 300\n";
    for failure in [
        "failure = [{ at = \"30us\", until = \"150us\", switch = \"spine0\" }]\n",
        "failure = [{ at = \"30us\", link = [\"leaf1\", \"spine1\"] }]\n",
        "failure = [{ at = \"30us\", until = \"500us\", link = [\"host3\", \"leaf0\"] }]\n",
        "failure = [{ at = \"30us\", until = \"500us\", link = [\"host0\", \"leaf0\"] }]\n",
    ] {
        let result = run_both(&format!("{patient}{failure}{traffic}"));
        assert!(of_links(&result, "dead_packets") > 0, "the failure met nothing");
        assert_eq!(result.info.flows_completed, result.info.flows, "{failure}");
    }
}

#[test]
fn what_it_can_t_do_is_refused() {
    let refused = |settings: &str| {
        let text = messages("30KB", settings) + "arrivals = \"all_at_once\"\n";
        Plan::new(&scenario(&text)).err().expect("it is refused")
    };
    let problem = refused("fabric.torus = { dims = [20, 3] }");
    assert!(problem.key == "transport.fastpass" && problem.message.contains("8"), "{problem}");
    let nobody = messages("30KB", "").replace("\"fastpass\"", "{ fastpass = { arbiter = 144 } }");
    let problem = Plan::new(&scenario(&(nobody + "arrivals = \"all_at_once\"\n"))).err().unwrap();
    assert_eq!(problem.key, "transport.fastpass.arbiter");
}

#[test]
fn every_other_message_of_the_arbiter_s_host_leaves_room_for_control() {
    // Its link out carries at most seven of eight slots of data.
    let text = messages("1460KB", "fabric.star = { hosts = 3 }");
    let result = run_both(&(text + "arrivals = \"all_at_once\"\nsenders = \"0\"\nreceivers = \"1\"\nflows = 1\n"));
    let delivered = of_flows(&result, "delivered_ps")[0];
    let (slots, way) = (1_000 * 8 / 7, 2 * 320_000 + 450_000);
    let began = delivered - way - slots * 121_213;
    assert!(began < 5_000_000, "{began}");
    assert_eq!(of_link(&result, "host0", "switch0", "sent_packets"), 1_000);
}

/// Rejected messages go over DCTCP, whose packets are in the way. A packet that they make late may find one before it
/// that is on time: one waits for longer than a packet a link of its path, and for no longer than is guaranteed.
#[test]
fn a_late_packet_may_wait_for_one_that_is_on_time() {
    let text = r#"
        seed = 10
        transport = "fastpass"
        measure = { drain = "150ms", interval = "20us", completion = "acknowledged" }
        host.delay = "225ns"
        switch.buffer.per_port.bytes = "500KB"
        fabric.fat_tree = { k = 8 }
        [[traffic]]
        name = "all"
        sizes = "imc10"
        duration = "1ms"
        arrivals.poisson.load = 0.9
        resubmit = [{ times = 2, after = "100us" }, { after = "0s", over = "dctcp" }]
    "#;
    let result = run_alone(text);
    let waited = *column(table(&result, "guaranteed_waits"), "wait_ps").iter().max().unwrap();
    assert!(waited > 6 * 120_000, "{waited} ps");
    let finding = result.info.audit.iter().find(|finding| finding.name == "waits are within what is guaranteed");
    assert!(finding.is_some_and(|finding| finding.ok), "{:#?}", result.info.audit);
}
