//! What is lost is counted, and what can't be lost is not.

use run::Data;

use crate::{names, of_flows, of_link, of_links, run_alone, run_on, table};

/// `senders` hosts send 150 packets each to host 0 at once, at line rate.
fn incast(senders: u32, settings: &str) -> String {
    format!(
        r#"
        transport = "udp"
        fabric.star = {{ hosts = {} }}
        {settings}
        [[traffic]]
        sizes = {{ constant = "219KB" }}
        arrivals = "all_at_once"
        pattern = {{ incast = {{ degree = {senders} }} }}
        receivers = "0"
        flows = {senders}
        "#,
        senders + 1
    )
}

#[test]
fn an_incast_over_a_small_buffer_loses_what_does_not_fit() {
    let result = run_alone(&incast(4, "switch.buffer.per_port.bytes = \"30KB\""));
    // Of 600 packets that come in within 150 packet times, the link takes 150 in that time and the buffer holds 20; the
    // first packet begins to leave as it comes, and so makes room for one more.
    let (lost, through) = (of_link(&result, "switch0", "host0", "overflow_packets"), 150 + 20);
    assert!((600 - through - 1..=600 - through + 1).contains(&lost), "{lost} lost");
    assert_eq!(of_link(&result, "switch0", "host0", "sent_packets"), 600 - lost);
    assert_eq!(of_link(&result, "switch0", "host0", "queued_bytes_max"), 30_000);
    assert_eq!(of_links(&result, "overflow_packets"), lost);
    // UDP sends nothing again: who lost a packet is never done, and knows it.
    let flows = table(&result, "flows");
    assert!(names(flows, "status").iter().all(|status| *status == "failed"));
    assert!(names(flows, "reason").iter().all(|reason| reason.contains("packets were lost")));
    // All threads lose the same ones.
    let fat_tree = incast(12, "switch.buffer.shared = { bytes = \"40KB\", alpha = 0.5 }")
        .replace("star = { hosts = 13 }", "fat_tree = { k = 4 }");
    assert_eq!(run_on(2, &fat_tree).info.digest, run_on(1, &fat_tree).info.digest);
    assert!(of_links(&run_on(2, &fat_tree), "overflow_packets") > 0);
}

#[test]
fn a_buffer_that_holds_the_incast_loses_nothing() {
    // Three of four senders' 150 packets wait at most; the first of the fourth leaves at once.
    let result = run_alone(&incast(4, "switch.buffer.per_port.bytes = \"675KB\""));
    assert_eq!((of_links(&result, "overflow_packets"), of_links(&result, "dead_packets")), (0, 0));
    assert_eq!(result.info.flows_completed, 4);
    // The link to the receiver never pauses: the last byte is there after 600 packets, one sender's and one link's
    // more.
    let last = of_flows(&result, "delivered_ps").iter().max().unwrap();
    assert_eq!(*last, 601 * 120_000 + 2 * 200_000 + 450_000);
}

#[test]
fn a_shared_buffer_gives_one_queue_its_share() {
    // Choudhury and Hahne: a lone queue stops growing at alpha (B - q), so q = B alpha / (1 + alpha): 50 of 100 KB.
    let result = run_alone(&incast(4, "switch.buffer.shared = { bytes = \"100KB\", alpha = 1.0 }"));
    let longest = of_link(&result, "switch0", "host0", "queued_bytes_max");
    assert!((50_000 - 1_500..=50_000).contains(&longest), "{longest}");
}

#[test]
fn trimmed_packets_go_on_as_headers() {
    let result = run_alone(&incast(4, "switch = { overflow = \"trim\", buffer.per_port.bytes = \"31KB\" }"));
    // Room for twenty packets and the headers of 25.
    let trimmed = of_link(&result, "switch0", "host0", "trimmed_packets");
    assert!(trimmed > 0);
    // Every packet reaches the receiver, whole or as 40 B of headers, but for those that found no room even so.
    let (sent, lost) = (
        of_link(&result, "switch0", "host0", "sent_packets"),
        of_link(&result, "switch0", "host0", "overflow_packets"),
    );
    assert_eq!(sent + lost, 600);
    let whole = sent - trimmed;
    assert_eq!(of_link(&result, "switch0", "host0", "sent_bytes"), whole * 1500 + trimmed * 40);
}

#[test]
fn two_senders_share_a_link_that_is_never_idle() {
    // Overload without loss: utilisation of the shared link is 1 from its first packet to its last.
    let result = run_alone(&incast(2, "measure.interval = \"1us\""));
    let busy = 300 * 1500;
    assert_eq!(of_link(&result, "switch0", "host0", "sent_bytes"), busy);
    let utilisation = table(&result, "utilisation");
    let run::Data::F64(shares) = &utilisation.column("utilisation").unwrap().data else { panic!("a ratio") };
    // One of the star's three links to hosts is full in each whole microsecond of the 36 that it takes, but the first
    // and the last; a packet counts where it begins, so that a sample may have one of 8 1/3 more or less.
    let full = shares.iter().skip(1).take(34).map(|share| share * 3.0);
    assert!(full.clone().count() == 34 && full.into_iter().all(|share| (0.9..=1.1).contains(&share)), "{shares:?}");
}

#[test]
fn data_share_counts_each_byte_once_however_often_it_comes() {
    // Four messages of 150 packets over a buffer of 20: much is lost, and some comes twice. Capacity: 5 links to hosts.
    // An interval ends between the last data packet and its acknowledgement, with which the run does.
    let settings = "switch.buffer.per_port.bytes = \"30KB\"\nmeasure.interval = \"200ns\"";
    let result = run_alone(&incast(4, settings).replace("\"udp\"", "\"cubic\""));
    assert!(names(table(&result, "flows"), "status").iter().all(|status| *status == "completed"));
    let utilisation = table(&result, "utilisation");
    let sum = |column: &str| {
        let Data::F64(values) = &utilisation.column(column).unwrap().data else { panic!("a share") };
        let to_host = names(utilisation, "tier").into_iter().zip(values).filter(|row| row.0 == "to_host");
        to_host.map(|row| row.1).sum::<f64>() * 200e-9 * 5.0 * 100e9 / 8.0
    };
    let once = (4 * 150 * 1_500) as f64;
    assert!((sum("data_share") - once).abs() < 1.0, "{} bytes of {once}", sum("data_share"));
    // Acknowledgements, and what came again.
    assert!(sum("utilisation") > once + 4.0 * 75.0 * 40.0, "{}", sum("utilisation"));
    assert!(of_links(&result, "overflow_packets") > 0);
}
