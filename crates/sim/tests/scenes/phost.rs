//! pHost in whole networks: what arithmetic says.

use clearway_sim::RunResult;

use crate::{counter, of_flows, of_link, of_links, run_both};

/// A full packet on a host's link.
const PACKET_PS: u64 = 120_000;
/// A full packet's way across racks and within one; a request to send on a host's link.
const FAR_PS: u64 = 2 * (120_000 + 30_000) + 4 * 200_000 + 3 * 450_000;
const NEAR_PS: u64 = 2 * (120_000 + 200_000) + 450_000;
const REQUEST_PS: u64 = 3_200;

fn messages(size: &str, rest: &str) -> String {
    format!(
        "transport = \"phost\"\nmeasure.interval = \"0s\"\nfabric.leaf_spine = {{}}\n{rest}\n\
         [[traffic]]\nsizes = {{ constant = \"{size}\" }}\n"
    )
}

#[test]
fn a_lone_message_takes_what_its_packets_take() {
    for (receiver, way) in [(143, FAR_PS), (6, NEAR_PS)] {
        let lone = format!("arrivals = \"all_at_once\"\nsenders = \"5\"\nreceivers = \"{receiver}\"\nflows = 1\n");
        let result = run_both(&(messages("1460KB", "") + &lone));
        assert_eq!(of_flows(&result, "delivered_ps"), [REQUEST_PS + 999 * PACKET_PS + way]);
        assert_eq!(of_flows(&result, "sent_packets"), [1_000]);
        assert_eq!(counter(&result, "tokens_expired"), 0);
    }
}

#[test]
fn an_incast_of_50_loses_free_packets_and_then_has_its_link_full() {
    // 50 senders of 200 packets, each of which starts with a bandwidth-delay product, and the paper's queues of 36 KB.
    let text = messages("292KB", "switch.buffer.per_port.bytes = \"36KB\"");
    let incast = "arrivals = \"all_at_once\"\npattern = { incast = { degree = 50 } }\nreceivers = \"0\"\nflows = 50\n";
    let busy = 50 * 200 * PACKET_PS;
    let last = |result: &RunResult| *of_flows(result, "delivered_ps").iter().max().unwrap();
    let result = run_both(&(text.clone() + incast));
    assert_eq!((result.info.flows, result.info.flows_completed), (50, 50));
    assert!(of_links(&result, "overflow_packets") > 0);
    assert!(last(&result) < busy + busy / 20, "{} ps for {busy}", last(&result));
    // Without free tokens for flows that need others nothing waits, and nothing is lost.
    let scheduled = text.replace("\"phost\"", "{ phost = { free_tokens_for = \"short_flows\" } }");
    let result = run_both(&(scheduled + incast));
    assert_eq!((of_links(&result, "overflow_packets"), result.info.flows_completed), (0, 50));
    assert!(last(&result) < busy + busy / 50, "{} ps for {busy}", last(&result));
    assert!(of_link(&result, "leaf0", "host0", "queued_bytes_max") < 10 * 1_500);
}

#[test]
fn a_permutation_fills_the_links() {
    let text = messages("14600KB", "").replace("leaf_spine = {}", "star = { hosts = 16 }");
    let result = run_both(&(text + "arrivals = \"all_at_once\"\npattern = \"permutation\"\n"));
    // Each link carries 10,000 packets, and a token of 40 B for each that goes the other way.
    let (delivered, busy) = (of_flows(&result, "delivered_ps"), 10_000 * (PACKET_PS + REQUEST_PS));
    assert!(delivered.len() == 16 && delivered.iter().all(|&at| at < busy + busy / 500), "{delivered:?} for {busy}");
}

#[test]
fn what_is_asked_of_a_network_beyond_what_it_carries_comes_later_and_nothing_is_lost() {
    let overload = "arrivals = { poisson = { load = 1.5 } }\nflows = 2000\n";
    let result = run_both(&(messages("146KB", "measure.drain = \"20ms\"") + overload));
    assert_eq!(result.info.flows_completed, 2_000);
}

#[test]
fn a_host_that_is_away_gets_its_messages_when_it_is_back() {
    let away =
        "reroute_delay = \"20us\"\nfailure = [{ at = \"20us\", until = \"400us\", link = [\"host3\", \"leaf0\"] }]\n";
    let traffic = "arrivals = { periodic = { every = \"10us\" } }\nreceivers = \"3\"\nflows = 20\n";
    let result = run_both(&(messages("100KB", away) + traffic));
    assert_eq!(result.info.flows_completed, 20);
    assert!(of_links(&result, "dead_packets") > 0);
    // Requests are repeated later and later, so that few went to a host that was not there.
    assert!(counter(&result, "requests_resent") < 20 * 8);
}
