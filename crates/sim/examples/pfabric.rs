//! Normalised flow completion times of a scenario, mean and 99th percentile by size, beside those of the ideal
//! scheduler (pFabric, figures 8 and 9). The last argument is a load:
//!
//! ```text
//! cargo run --release -p clearway-sim --example pfabric python/clearway/papers/pfabric/figure-9-websearch.toml 0.8
//! ```

use clearway_sim::run;
use run::{Data, Plan};
use scenario::Source;
use transports::pfabric::ideal::{Flow, ideal};
use units::Time;

/// Sizes as the paper groups them: more than so many bytes, and up to so many.
const GROUPS: [(&str, u64, u64); 4] = [
    ("(0, 100KB]", 0, 100_000),
    ("(100KB, 10MB]", 100_000, 10_000_000),
    ("(10MB, -)", 10_000_000, u64::MAX),
    ("all", 0, u64::MAX),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), load) = (arguments.next(), arguments.next()) else { panic!("a scenario, and a load if you like") };
    let mut source = Source::open(path.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    source.sets.extend(load.map(|load| ("traffic.all.arrivals.poisson.load".to_owned(), load)));
    let scenario = source.read().unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(&scenario).unwrap_or_else(|problem| panic!("{problem}"));
    let site = &plan.sites[0];
    let wire = |bytes: u64| {
        let packets = bytes.div_ceil(u64::from(site.payload_max()));
        site.nic_rate.transmit(bytes + packets * u64::from(site.header_bytes))
    };
    let flow = |flow: run::FlowInfo| Flow { src: flow.src, dst: flow.dst, start: flow.start, work: wire(flow.bytes) };
    let flows: Vec<Flow> = plan.flows.iter().map(flow).collect();
    let flow_bytes: Vec<u64> = plan.flows.iter().map(|flow| flow.bytes).collect();
    let best = ideal(&flows);
    let result = run(&scenario, 2, |_| false).unwrap_or_else(|problem| panic!("{problem}"));
    let table = result.tables.iter().find(|table| table.name == "flows").expect("there always is");
    let (Data::OptU64(fct), Data::U64(alone)) =
        (&table.column("fct_ps").expect("there").data, &table.column("ideal_ps").expect("there").data)
    else {
        panic!("times");
    };
    println!("{:14} {:>6} {:>16} {:>16}", "size", "flows", "ours", "ideal");
    for (group, from, to) in GROUPS {
        let done = |at: &usize| fct[*at] != Time::MAX.ps() && (from + 1..=to).contains(&flow_bytes[*at]);
        let chosen: Vec<usize> = (0..flows.len()).filter(done).collect();
        let ours = chosen.iter().map(|&at| fct[at] as f64 / alone[at] as f64).collect();
        let waits = |at: usize| best[at].since(flows[at].start).saturating_sub(flows[at].work);
        let theirs = chosen.iter().map(|&at| 1.0 + waits(at).ps() as f64 / alone[at] as f64).collect();
        println!("{group:14} {:>6} {:>16} {:>16}", chosen.len(), mean_and_tail(ours), mean_and_tail(theirs));
    }
    println!("{} of {} flows completed", result.info.flows_completed, result.info.flows);
}

fn mean_and_tail(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let tail = values.get(values.len() * 99 / 100).copied().unwrap_or(f64::NAN);
    format!("{:.3} / {tail:.2}", values.iter().sum::<f64>() / values.len() as f64)
}
