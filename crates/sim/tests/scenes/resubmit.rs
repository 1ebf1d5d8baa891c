//! Messages that were given up are submitted again (Harmony, section 4).

use clearway_sim::RunResult;
use run::Data;
use scenario::read;

use crate::{NONE, column, names, of_flows, run_alone, run_on, table};

/// Four hosts send 150 packets each to host 0 at once, at line rate, into a buffer of 20: what UDP loses it gives up.
fn incast(resubmit: &str) -> String {
    format!(
        r#"
        fabric.star.hosts = 5
        switch.buffer.per_port.bytes = "30KB"
        [[traffic]]
        name = "burst"
        transport = "udp"
        {resubmit}
        sizes.constant = "219KB"
        arrivals = "all_at_once"
        pattern.incast.degree = 4
        receivers = "0"
        flows = 4
        "#
    )
}

fn submissions(result: &RunResult) -> &[u32] {
    match &table(result, "flows").column("submissions").unwrap().data {
        Data::U32(values) => values,
        _ => panic!("submissions are counts"),
    }
}

fn counter(result: &RunResult, transport: &str, counter: &str) -> u64 {
    let counters = table(result, "counters");
    let row = names(counters, "transport")
        .iter()
        .zip(names(counters, "counter"))
        .position(|row| row == (&transport, counter));
    column(counters, "value")[row.unwrap_or_else(|| panic!("{transport} does not count {counter}"))]
}

#[test]
fn what_is_given_up_goes_over_best_effort_in_the_end() {
    let without = run_alone(&incast(""));
    assert_eq!((without.info.flows_completed, submissions(&without)), (0, &[1; 4][..]));
    let result = run_alone(&incast("resubmit = [{ over = 'dctcp' }]"));
    assert_eq!((result.info.flows_completed, submissions(&result)), (4, &[2; 4][..]));
    let flows = table(&result, "flows");
    assert_eq!((names(flows, "transport"), names(flows, "delivered_over")), (vec!["udp"; 4], vec!["dctcp"; 4]));
    assert_eq!(counter(&result, "dctcp", "messages_submitted_again"), 4);
    assert_eq!(counter(&result, "udp", "messages_submitted_again"), 0);
    // The message's own time runs from the first submission: UDP gives up 10 ms after its last packet.
    assert!(of_flows(&result, "fct_ps").iter().all(|fct| (10_000_000_000..20_000_000_000).contains(fct)));
    assert_eq!(of_flows(&result, "start_ps"), [0; 4]);
    // Any cut of the network does the same.
    let fat_tree = incast("resubmit = [{ over = 'dctcp' }]").replace("star.hosts = 5", "fat_tree.k = 4");
    assert_eq!(run_on(2, &fat_tree).info.digest, run_on(1, &fat_tree).info.digest);
}

#[test]
fn entries_are_tried_one_after_another_and_then_it_ends() {
    let tried = |until: &str| {
        let dead = format!("failure = [{{ at = '0s', {until}link = ['switch0', 'host0'] }}]");
        let steps =
            "resubmit = [{ times = 2, after = '3ms' }, { over = { udp = { patience = '1ms', rate = '20Gbps' } } }]";
        let text = incast(steps).replace("\"udp\"", "{ udp = { patience = '1ms' } }");
        run_alone(&text.replacen("[[traffic]]", &format!("{dead}\n[[traffic]]"), 1))
    };
    let result = tried("");
    assert_eq!((result.info.flows_completed, submissions(&result)), (0, &[4; 4][..]));
    assert!(names(table(&result, "flows"), "status").iter().all(|status| *status == "failed"));
    assert!(of_flows(&result, "delivered_ps").iter().all(|at| *at == NONE));
    // Three times 150 packets of 120 ns, once of 600 ns, each with 1 ms of patience from the last packet's departure;
    // and 3 ms before the second and the third.
    let last = 3 * (149 * 120_000) + 149 * 600_000 + 4 * 1_000_000_000 + 2 * 3_000_000_000;
    assert!((last..last + 1_000_000).contains(&result.info.end_ps), "{}", result.info.end_ps);
    // The third begins after 8 ms; by the last, after 9, the link is back and routes lead over it. Four times 20 Gbit/s
    // is less than it has.
    let result = tried("until = '8.05ms', ");
    assert_eq!((result.info.flows_completed, submissions(&result)), (4, &[4; 4][..]));
}

/// Host 0's message arrives whole, but the answer to it does not get back through what others send to host 0: so it is
/// submitted again, and arrives again.
#[test]
fn what_had_arrived_all_the_same_is_not_delivered_twice() {
    let text = r#"
        fabric.star.hosts = 6
        switch.buffer.per_port.bytes = "30KB"
        [[traffic]]
        name = "message"
        transport = { udp = { patience = "100us" } }
        resubmit = [{ over = "dctcp" }]
        sizes.constant = "10KB"
        arrivals = "all_at_once"
        senders = "0"
        receivers = "1"
        start = "20us"
        flows = 1
        [[traffic]]
        name = "others"
        transport = "udp"
        sizes.constant = "1MB"
        arrivals = "all_at_once"
        pattern.incast.degree = 4
        senders = "2-5"
        receivers = "0"
        flows = 4
    "#;
    let result = run_alone(text);
    let flows = table(&result, "flows");
    let message = names(flows, "class").iter().position(|class| *class == "message").unwrap();
    assert_eq!(names(flows, "status")[message], "completed");
    assert_eq!((submissions(&result)[message], names(flows, "delivered_over")[message]), (2, "udp"));
    assert_eq!(counter(&result, "dctcp", "messages_delivered_again"), 1);
    // The application has had it since the first time; the sender knows later.
    let (delivered, completed) =
        (of_flows(&result, "delivered_ps")[message], of_flows(&result, "completed_ps")[message]);
    assert!(delivered < 30_000_000 && completed > 120_000_000, "{delivered} {completed}");
}

#[test]
fn what_waits_for_a_message_waits_until_it_has_ended_for_good() {
    let closed = incast("resubmit = [{ over = 'dctcp' }]")
        .replace("\"all_at_once\"", "{ closed_loop = {} }")
        .replace("pattern.incast.degree = 4", "pattern = 'all_to_all'")
        .replace("flows = 4", "flows = 8");
    let result = run_alone(&closed);
    assert_eq!(result.info.flows_completed, 8);
}

#[test]
fn what_can_t_be_submitted_again_is_refused_and_what_never_is_is_advice() {
    for (wrong, key, words) in [
        ("resubmit = [{ times = 0 }]", "traffic[0].resubmit[0].times", "0 is not between 1"),
        ("resubmit = [{ times = 600 }, { times = 600 }]", "traffic[0].resubmit[1].times", "all entries together"),
        ("resubmit = [{ over = { udp = { class = 9 } } }]", "traffic[0].resubmit[0].over.udp.class", "0 to 7"),
        ("resubmit = [{ after = '100000s' }]", "traffic[0].resubmit[0].after", "at most"),
    ] {
        let error = read(&incast(wrong), "scene.toml", &[]).unwrap_err();
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(words), "{words} is not in {error}");
    }
    // A transport that delivers every message never submits one again.
    for (text, key) in [
        (incast("resubmit = [{}]").replace("\"udp\"", "\"dctcp\""), "traffic[0].resubmit[0]"),
        (incast("resubmit = [{ over = 'dctcp' }, {}]"), "traffic[0].resubmit[1]"),
    ] {
        let advice = read(&text, "scene.toml", &[]).unwrap().advice();
        assert!(advice[0].key == key && advice[0].message.contains("dctcp neither rejects"), "{advice:?}");
    }
}
