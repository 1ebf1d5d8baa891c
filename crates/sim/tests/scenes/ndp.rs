//! NDP in whole networks: what its paper and arithmetic say.

use clearway_sim::RunResult;

use crate::{column, names, of_flows, of_link, run_alone, run_on, table};

fn counter(result: &RunResult, name: &str) -> u64 {
    let counters = table(result, "counters");
    let row = names(counters, "counter").iter().position(|known| *known == name);
    row.map_or(0, |row| column(counters, "value")[row])
}

fn sum(result: &RunResult, name: &str) -> u64 {
    column(table(result, "links"), name).iter().sum()
}

/// The same on one thread and on two.
fn run_both(toml: &str) -> RunResult {
    let (alone, together) = (run_alone(toml), run_on(2, toml));
    assert_eq!(alone.info.digest, together.info.digest, "{toml}");
    assert!(format!("{:?}", alone.tables) == format!("{:?}", together.tables), "{toml}");
    alone
}

fn messages(size: &str, rest: &str) -> String {
    format!(
        "transport = \"ndp\"\nmeasure.interval = \"0s\"\n{rest}\n[[traffic]]\nsizes = {{ constant = \"{size}\" }}\n"
    )
}

#[test]
fn a_lone_message_goes_at_line_rate() {
    // 1,000 packets from rack to rack, of which 65 are pushed and the others pulled: the last leaves 999 packets after the first.
    let lone = "arrivals = \"all_at_once\"\nsenders = \"5\"\nreceivers = \"143\"\nflows = 1\n";
    let result = run_both(&(messages("1460KB", "") + lone));
    let way = 2 * (120_000 + 30_000) + 4 * 200_000 + 3 * 450_000;
    assert_eq!(of_flows(&result, "delivered_ps"), [999 * 120_000 + way]);
    // The last ACK goes at once.
    let back = 2 * (3_200 + 800) + 4 * 200_000 + 3 * 450_000;
    assert_eq!(of_flows(&result, "completed_ps"), [999 * 120_000 + way + back]);
    assert_eq!((of_flows(&result, "sent_packets"), sum(&result, "trimmed_packets")), (&[1_000][..], 0));
}

#[test]
fn print_incast() {
    for n in [4, 16, 50] {
        let text = messages("146KB", "fabric.leaf_spine = {}");
        let incast = format!(
            "arrivals = \"all_at_once\"\npattern = {{ incast = {{ degree = {n} }} }}\nreceivers = \"20\"\nflows = {n}\n"
        );
        let result = run_both(&(text + &incast));
        let last = *of_flows(&result, "delivered_ps").iter().max().unwrap();
        println!(
            "{n}: {last} optimal {} trimmed {} overflow {}",
            n * 100 * 120_000 + 2_450_000,
            sum(&result, "trimmed_packets"),
            sum(&result, "overflow_packets")
        );
    }
}

#[test]
fn print_permutation() {
    for fabric in ["fat_tree = { k = 8, rate = \"10Gbps\" }"] {
        let text = messages("20MB", &format!("fabric.{fabric}\nhost = {{ mtu = \"9000B\", header = \"64B\" }}"));
        let result = run_on(2, &(text + "arrivals = \"all_at_once\"\npattern = \"permutation\"\n"));
        let fct = of_flows(&result, "fct_ps");
        let mut rates: Vec<f64> = fct.iter().map(|&ps| 20e6 * 8.0 / (ps as f64 / 1e12) / 1e9).collect();
        rates.sort_by(f64::total_cmp);
        println!(
            "{} flows mean {} min {} trimmed {}",
            rates.len(),
            rates.iter().sum::<f64>() / rates.len() as f64,
            rates[0],
            sum(&result, "trimmed_packets")
        );
    }
}
