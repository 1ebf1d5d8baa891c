//! What Harmony guarantees, on fabrics of all kinds, with best effort beneath it and while links fail.

use clearway_sim::RunResult;
use run::Data;

use crate::{column, counter, names, run_alone, run_on, table};

/// Messages of 64 KB from all to all at this load, and what else the scenario says.
fn messages(load: f64, settings: &str) -> String {
    format!(
        r#"
        {settings}
        [[traffic]]
        name = "messages"
        transport = "harmony"
        sizes.constant = "64KB"
        arrivals.poisson.load = {load}
        flows = 400
        "#
    )
}

const BENEATH: &str = r#"
    [[traffic]]
    name = "beneath"
    transport = "dctcp"
    sizes = "websearch"
    arrivals.poisson.load = 0.4
    flows = 60
"#;

/// A column of hosts, by number.
fn hosts<'a>(flows: &'a run::Table, column: &str) -> &'a [u32] {
    let Data::U32(hosts) = &flows.column(column).unwrap().data else { panic!("{column} is of hosts") };
    hosts
}

fn shares(result: &RunResult) -> &[f64] {
    let Data::F64(shares) = &table(result, "guarantees").column("share").unwrap().data else { panic!("a ratio") };
    shares
}

#[test]
fn bounds_hold_on_every_fabric_with_and_without_best_effort_beneath() {
    for fabric in [
        "fabric.leaf_spine = { racks = 3, hosts_per_rack = 4, spines = 2 }",
        "fabric.fat_tree.k = 4",
        "fabric.star.hosts = 8",
    ] {
        for beneath in ["", BENEATH] {
            let result = run_alone(&(messages(0.6, fabric) + beneath));
            let most = shares(&result).iter().copied().fold(0.0, f64::max);
            assert!(most > 0.0 && most <= 1.0, "{most}");
            let waits = column(table(&result, "guaranteed_waits"), "wait_ps");
            assert!(waits.is_sorted() && waits.last() > Some(&0));
        }
    }
}

#[test]
fn best_effort_may_overflow_and_what_is_guaranteed_does_not() {
    let fabric =
        "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 2 }\nswitch.buffer.per_port.bytes = '400KB'";
    let burst = r#"
        [[traffic]]
        name = "burst"
        transport = "udp"
        sizes.constant = "300KB"
        arrivals = "all_at_once"
        pattern.incast.degree = 6
        flows = 24
    "#;
    let result = run_on(2, &(messages(0.5, fabric) + burst));
    let lost: u64 = column(table(&result, "links"), "overflow_packets").iter().sum();
    assert!(lost > 100, "{lost}");
    let flows = table(&result, "flows");
    let ended = |(class, status): &(&str, &str)| *class == "messages" && ["completed", "rejected"].contains(status);
    let count = names(flows, "class").into_iter().zip(names(flows, "status")).filter(ended).count();
    assert_eq!(count, 400);
}

#[test]
fn what_fails_with_a_link_is_no_breach() {
    let fabric = "fabric.leaf_spine = { racks = 3, hosts_per_rack = 4, spines = 2 }\nreroute_delay = '50us'";
    let failing = "[[failure]]\nat = '100us'\nlink = ['leaf0', 'spine1']\n[[failure]]\nat = '150us'\nuntil = '400us'\n\
                   link = ['spine0', 'leaf2']\n";
    let text = messages(0.5, fabric).replacen("[[traffic]]", &format!("{failing}[[traffic]]"), 1);
    for text in [text.clone(), text.clone() + BENEATH] {
        // The audit passes, and the failures did meet what is guaranteed: packets were missed and messages tried again.
        let result = run_alone(&text);
        let dead: u64 = column(table(&result, "links"), "dead_packets").iter().sum();
        assert!(dead > 0 && counter(&result, "failures_seen") > 0 && counter(&result, "attempts_failed") > 0);
        assert!(shares(&result).iter().all(|share| *share <= 1.0));
        // All messages that there is a way for complete. From 150 to 400 us racks 0 and 2 have no spine in common: most
        // of what comes then between them ends rejected, after 63 us.
        let flows = table(&result, "flows");
        let (src, dst) = (hosts(flows, "src"), hosts(flows, "dst"));
        let (mut cut_off, mut found_no_slot) = (0, 0);
        for (flow, (class, ended)) in names(flows, "class").into_iter().zip(names(flows, "status")).enumerate() {
            if class != "messages" || ended == "completed" {
                continue;
            }
            let between = [src[flow] / 4, dst[flow] / 4];
            assert!(["rejected", "failed"].contains(&ended), "{ended}");
            // Hosts of rack 0 keep slots for messages whose packets are lost. So one within the rack may find none.
            if between == [0, 0] {
                assert_eq!(ended, "rejected");
                found_no_slot += 1;
                continue;
            }
            assert!(between == [0, 2] || between == [2, 0], "{between:?}: {ended}");
            cut_off += 1;
        }
        assert!((50..80).contains(&cut_off) && found_no_slot <= 1, "{cut_off} {found_no_slot}");
    }
}

#[test]
fn rejected_messages_come_over_harmony_or_best_effort_in_the_end() {
    let fabric = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 2 }";
    let overload = messages(1.3, fabric);
    let rejected = |result: &RunResult| {
        names(table(result, "flows"), "status").iter().filter(|status| **status == "rejected").count()
    };
    let without = run_alone(&overload);
    assert!(rejected(&without) > 0);
    let with = |resubmit: &str| run_alone(&overload.replacen("sizes", &format!("resubmit = {resubmit}\nsizes"), 1));
    let again = with("[{ times = 1000, after = '100us' }]");
    assert_eq!((rejected(&again), again.info.flows_completed), (0, 400));
    let beneath = with("[{ over = 'dctcp' }]");
    assert_eq!((rejected(&beneath), beneath.info.flows_completed), (0, 400));
    let over = names(table(&beneath, "flows"), "delivered_over");
    assert!(over.contains(&"harmony") && over.contains(&"dctcp"));
}
