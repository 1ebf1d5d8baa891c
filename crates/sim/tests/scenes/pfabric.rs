//! pFabric in whole networks, its switches with it: what arithmetic says.

use run::{Data, Plan};

use crate::{counter, names, of_flows, of_link, of_links, run_both, scenario, table};

/// A full packet on a host's link, and its way across racks.
const PACKET_PS: u64 = 120_000;
const FAR_PS: u64 = 2 * (120_000 + 30_000) + 4 * 200_000 + 3 * 450_000;
/// Two bandwidth-delay products: a packet there and an acknowledgement of 40 B back, at 12.5 B/ns.
const QUEUE_BYTES: u64 = 2 * ((FAR_PS + 2 * (3_200 + 800) + 4 * 200_000 + 3 * 450_000) * 125 / 10_000);

fn messages(size: &str, rest: &str) -> String {
    format!(
        "transport = \"pfabric\"\nmeasure.interval = \"0s\"\nfabric.leaf_spine = {{}}\n{rest}\n\
         [[traffic]]\nsizes = {{ constant = \"{size}\" }}\n"
    )
}

#[test]
fn a_lone_message_takes_what_its_packets_take() {
    let lone = "arrivals = \"all_at_once\"\nsenders = \"5\"\nreceivers = \"143\"\nflows = 1\n";
    let result = run_both(&(messages("1460KB", "") + lone));
    assert_eq!(of_flows(&result, "delivered_ps"), [999 * PACKET_PS + FAR_PS]);
    assert_eq!(of_flows(&result, "sent_packets"), [1_000]);
}

#[test]
fn an_incast_of_50_takes_the_time_of_its_bytes_and_its_flows_one_after_the_other() {
    let incast = "arrivals = \"all_at_once\"\npattern = { incast = { degree = 50 } }\nreceivers = \"0\"\nflows = 50\n";
    let result = run_both(&(messages("292KB", "") + incast));
    assert_eq!(result.info.flows_completed, 50);
    assert!(counter(&result, "evicted") > 0 && of_links(&result, "overflow_packets") > 0);
    let longest = of_link(&result, "leaf0", "host0", "queued_bytes_max");
    assert!(longest <= QUEUE_BYTES && longest + 1_500 > QUEUE_BYTES, "{longest} B of {QUEUE_BYTES}");
    let mut delivered = of_flows(&result, "delivered_ps").to_vec();
    delivered.sort_unstable();
    // The link has always something to send but when all that are left wait for their timers (section 4.3).
    let busy = 50 * 200 * PACKET_PS;
    assert!(delivered[49] < busy + busy / 5, "{} ps for {busy}", delivered[49]);
    // The first half of them is there in about half of the time: nobody shares.
    assert!(delivered[24] < delivered[49] * 6 / 10, "{delivered:?}");
}

#[test]
fn a_short_message_passes_long_ones_at_each_hop() {
    // Eight hosts of other racks send to host 0 without end; a short message meets one packet at each link, and its own
    // queue never.
    let text = "transport = \"pfabric\"\nmeasure = { interval = \"0s\", drain = \"20us\" }\nfabric.leaf_spine = {}\n\
         [[traffic]]\nname = \"long\"\nsizes = { constant = \"20MB\" }\narrivals = \"all_at_once\"\n\
         pattern = { incast = { degree = 8 } }\nsenders = \"16-23\"\nreceivers = \"0\"\nflows = 8\n\
         [[traffic]]\nname = \"short\"\nsizes = { constant = \"14600B\" }\n\
         arrivals = { periodic = { every = \"50us\" } }\n\
         senders = \"40\"\nreceivers = \"0\"\nstart = \"100us\"\nflows = 20\n";
    let result = run_both(text);
    let classes = names(table(&result, "flows"), "class");
    let (fct, alone) = (of_flows(&result, "fct_ps"), 9 * PACKET_PS + FAR_PS);
    let short: Vec<u64> = classes.iter().zip(fct).filter(|of| *of.0 == "short").map(|of| *of.1).collect();
    assert_eq!(short.len(), 20);
    // A packet that is being sent at each of the three links that it shares, and acknowledgements.
    let late = alone + PACKET_PS + 2 * 30_000 + 20 * 3_200;
    assert!(short.iter().all(|&fct| fct <= late), "{short:?} for {alone}");
}

#[test]
fn beyond_what_a_network_carries_short_messages_still_pass() {
    let text = "transport = \"pfabric\"\nmeasure = { interval = \"0s\", drain = \"100ms\" }\n\
                fabric.leaf_spine = { racks = 4, hosts_per_rack = 8, spines = 2, spine_rate = \"400Gbps\" }\n\
                [[traffic]]\nsizes = \"websearch\"\narrivals = { poisson = { load = 1.3 } }\nflows = 400\n";
    let result = run_both(text);
    assert_eq!(result.info.flows_completed, 400);
    let Data::F64(slowdown) = &table(&result, "flows").column("slowdown").unwrap().data else { panic!("a ratio") };
    let sizes = of_flows(&result, "bytes");
    let mean = |chosen: &dyn Fn(u64) -> bool| {
        let of: Vec<f64> = sizes.iter().zip(slowdown).filter(|of| chosen(*of.0)).map(|of| *of.1).collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    let (short, long) = (mean(&|bytes| bytes <= 100_000), mean(&|bytes| bytes > 10_000_000));
    assert!(short < 1.5 && long > 2.0, "{short} and {long}");
}

#[test]
fn a_host_that_is_away_is_probed_and_gets_its_messages_when_it_is_back() {
    let away =
        "reroute_delay = \"20us\"\nfailure = [{ at = \"20us\", until = \"400us\", link = [\"host3\", \"leaf0\"] }]\n";
    let traffic = "arrivals = { periodic = { every = \"10us\" } }\nreceivers = \"3\"\nflows = 20\n";
    let result = run_both(&(messages("100KB", away) + traffic));
    assert_eq!(result.info.flows_completed, 20);
    assert!(of_links(&result, "dead_packets") > 0 && counter(&result, "probes") > 0);
}

#[test]
fn beside_another_transport_its_packets_go_first() {
    let text = "measure = { interval = \"0s\", drain = \"50ms\" }\nfabric.star = { hosts = 3 }\n\
                [[traffic]]\nname = \"pfabric\"\ntransport = \"pfabric\"\nsizes = { constant = \"1460KB\" }\n\
                arrivals = \"all_at_once\"\n\
                senders = \"0\"\nreceivers = \"2\"\nflows = 1\nstart = \"20us\"\n\
                [[traffic]]\nname = \"udp\"\ntransport = \"udp\"\nsizes = { constant = \"7300KB\" }\n\
                arrivals = \"all_at_once\"\n\
                senders = \"1\"\nreceivers = \"2\"\nflows = 1\n";
    let result = run_both(text);
    // As if alone, but for a packet of the other that is being sent.
    let alone = 999 * PACKET_PS + 2 * (120_000 + 200_000) + 450_000;
    let row = names(table(&result, "flows"), "class").iter().position(|class| *class == "pfabric").unwrap();
    let fct = of_flows(&result, "fct_ps")[row];
    assert!(fct <= alone + PACKET_PS, "{fct} for {alone}");
}

#[test]
fn its_queues_have_no_flow_control_and_no_levels() {
    let text = |settings: &str| messages("30KB", settings) + "arrivals = \"all_at_once\"\n";
    let refused = Plan::new(&scenario(&text("flow_control = \"pfc\""))).err().expect("it is refused");
    assert_eq!(refused.key, "flow_control");
    let said = run_both(&text("switch.levels = [[0, 1]]")).info.warnings;
    assert!(said.iter().any(|said| said.starts_with("switch: pfabric replaces the queues")), "{said:?}");
}
