//! Training jobs: times that arithmetic gives, on any number of threads, and what happens when something fails.

use run::{Data, Table};
use scenario::{Scenario, read};

use crate::{NONE, RunResult, column, names, run_alone, run_both, scenario, table};

/// Hosts at 100 Gbps on one switch, packets of 1,460 B and 40 B of headers. Wires and the switch alone take time:
/// a packet's first byte arrives 2 us and a store-and-forward of 120 ns after it has left.
fn star(transport: &str, hosts: u32, job: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        host = {{ mtu = "1500B", header = "40B", delay = "0s" }}
        switch = {{ buffer = {{ per_port = {{ bytes = "100MB" }} }} }}
        fabric.star = {{ hosts = {hosts}, rate = "100Gbps", propagation = "1us", switch_delay = "0s" }}
        measure.interval = "0s"
        [[job]]
        name = "train"
        {job}
        "#
    )
}

/// Picoseconds that bytes take at 100 Gbps, each packet with its header.
fn wire_ps(bytes: u64) -> u64 {
    (bytes + bytes.div_ceil(1460) * 40) * 80
}

/// From when the last byte of a message has left until it is there: two wires and a packet's store-and-forward.
const LATENCY_PS: u64 = 2_000_000 + 120_000;

fn job_time(result: &RunResult) -> u64 {
    let jobs = table(result, "jobs");
    assert_eq!(jobs.len(), 1, "one iteration");
    column(jobs, "time_ps")[0]
}

/// The time of one collective, in a run whose audit is clean and whose parts sum to the whole.
fn time_of(hosts: u32, operation: &str) -> u64 {
    let result = run_both(&star("udp", hosts, &format!("steps = [{{ {operation} }}]")));
    assert_eq!(result.info.ended, "goal");
    let (time, critical) = (job_time(&result), table(&result, "critical"));
    let sum: u64 =
        column(critical, "end_ps").iter().zip(column(critical, "begin_ps")).map(|(end, begin)| end - begin).sum();
    assert_eq!(sum, time, "the critical path is the whole time");
    time
}

/// Chosen before the first run.
const WITHIN: f64 = 0.01;

fn assert_close(ours: u64, theirs: u64) {
    let off = ours as f64 / theirs as f64 - 1.0;
    assert!(off.abs() <= WITHIN, "{ours} ps for {theirs} ps: {:+.2}%", off * 100.0);
}

/// 2(n-1) messages of S/n follow each other.
#[test]
fn a_ring_all_reduce_takes_2_n_minus_1_times_a_part() {
    for (hosts, bytes) in [(2, 2_920_000), (8, 5_840_000), (7, 2_044_000), (16, 23_360)] {
        let part = bytes / u64::from(hosts);
        let expected = 2 * (u64::from(hosts) - 1) * (wire_ps(part) + LATENCY_PS);
        assert_close(time_of(hosts, &format!("all_reduce = {{ bytes = \"{bytes}B\" }}")), expected);
    }
}

/// Half of that each.
#[test]
fn a_reduce_scatter_and_an_all_gather_take_half_of_it_each() {
    let expected = 7 * (wire_ps(730_000) + LATENCY_PS);
    assert_close(time_of(8, "reduce_scatter = { bytes = \"5840000B\" }"), expected);
    assert_close(time_of(8, "all_gather = { bytes = \"5840000B\" }"), expected);
}

/// log2 n steps of S/2, S/4, ..., and back.
#[test]
fn halving_and_doubling_take_log_n_steps_each() {
    let bytes = 5_840_000;
    let steps: u64 = (1..=3).map(|step| wire_ps(bytes >> step) + LATENCY_PS).sum();
    let time = time_of(8, &format!("all_reduce = {{ bytes = \"{bytes}B\", algorithm = \"halving_doubling\" }}"));
    assert_close(time, 2 * steps);
}

/// Four ranks: a parent receives the halves of two children at once, sends its sum to the root, and all that comes
/// back. So 2 + 1 halves go up one after the other, and 1 + 2 down.
#[test]
fn two_trees_take_the_time_of_their_depth() {
    let half = 2_920_000;
    let two = 2 * wire_ps(half) + LATENCY_PS;
    let one = wire_ps(half) + LATENCY_PS;
    let time = time_of(4, "all_reduce = { bytes = \"5840000B\", algorithm = \"tree\" }");
    assert_close(time, 2 * (two + one));
}

/// Each link carries n-1 parts.
#[test]
fn an_all_to_all_takes_what_a_link_takes_for_all_other_parts() {
    let part = 730_000;
    let time = time_of(8, "all_to_all = { bytes = \"5840000B\", library = { slots = 100 } }");
    assert_close(time, 7 * wire_ps(part) + LATENCY_PS);
}

/// One after the other, the last of n-1 hops.
#[test]
fn a_broadcast_round_the_ring_passes_n_minus_1_hops_chunk_by_chunk() {
    let (chunk, chunks) = (292_000u64, 10);
    let job = "broadcast = { bytes = \"2920000B\", library = { chunk = \"292000B\", slots = 100 } }";
    assert_close(time_of(5, job), wire_ps(chunk * chunks) + LATENCY_PS + 3 * (wire_ps(chunk) + LATENCY_PS));
}

/// LL128 sends 16 bytes for 15, and a library's latency comes once for each message on the way.
#[test]
fn a_protocol_and_a_latency_have_their_terms() {
    let library = "{ protocol = \"ll128\", latency = \"3us\" }";
    let time = time_of(4, &format!("all_reduce = {{ bytes = \"5475000B\", library = {library} }}"));
    assert_close(time, 2 * 3 * (wire_ps(1_460_000) + LATENCY_PS + 3_000_000));
}

/// Ranks of a host use links of their own: eight ranks on two hosts, and the ring crosses once in each direction.
#[test]
fn ranks_of_one_host_do_not_use_the_network() {
    let job = "ranks_per_host = 4\nlocal = { rate = \"100Gbps\", delay = \"500ns\" }\n\
               steps = [{ all_reduce = { bytes = \"5840000B\" } }]";
    let result = run_both(&star("udp", 2, job));
    assert_eq!(table(&result, "flows").len(), 2 * 14, "two of eight ranks send to the other host, 14 times");
    // Of 14 hops in a row on the ring, 4 may cross, and 10 take 730 kB at 100 Gbps and 500 ns.
    assert_close(job_time(&result), 4 * (wire_ps(730_000) + LATENCY_PS) + 10 * (58_400_000 + 500_000));
}

/// The slowest rank sets the time of all; what others wait is exposed.
#[test]
fn a_straggler_holds_everybody_up_and_its_computation_is_on_the_critical_path() {
    let job = "iterations = 3\nsteps = [{ compute = \"100us\" }, { all_reduce = { bytes = \"584000B\" } }]\n\
               stragglers = [{ rank = 2, factor = 1.5 }]";
    let result = run_both(&star("udp", 4, job));
    let jobs = table(&result, "jobs");
    assert_eq!(jobs.len(), 3);
    let reduce = 6 * (wire_ps(146_000) + LATENCY_PS);
    assert_close(column(jobs, "time_ps")[0], 150_000_000 + reduce);
    for row in 0..3 {
        // The straggler may be done with an iteration a message before the last rank, and is ahead by that in the next.
        let early = 150_000_000 + reduce - column(jobs, "time_ps")[row].min(150_000_000 + reduce);
        assert!(early <= reduce / 6 && column(jobs, "time_ps")[row] <= 151_500_000 + reduce, "row {row}: {early}");
        let exposed = column(jobs, "time_ps")[row] - column(jobs, "computing_ps")[row];
        assert_eq!(column(jobs, "exposed_ps")[row], exposed);
    }
    // A rank that is done early computes before the iteration has ended for all.
    let computing: u64 = column(jobs, "computing_ps").iter().sum();
    assert!(computing.abs_diff(3 * 112_500_000) <= 3, "(3 x 100 + 150) / 4 in each iteration: {computing}");
    let critical = table(&result, "critical");
    let parts: Vec<&str> = names(critical, "part");
    let ranks = ids(critical, "rank");
    assert_eq!(parts.iter().zip(&ranks).filter(|of| *of.0 == "compute").map(|of| *of.1).collect::<Vec<_>>(), [2, 2, 2]);
}

fn ids(table: &Table, name: &str) -> Vec<u32> {
    match &table.column(name).expect("it has this column").data {
        Data::U32(values) => values.clone(),
        data => panic!("{name}: {data:?}"),
    }
}

fn rates(table: &Table, name: &str) -> Vec<f64> {
    match &table.column(name).expect("it has this column").data {
        Data::F64(values) => values.clone(),
        data => panic!("{name}: {data:?}"),
    }
}

/// Bus bandwidth is the payload's share of the link's rate (NCCL's tests, PERFORMANCE.md).
#[test]
fn bus_bandwidth_of_a_long_all_reduce_is_the_rate_of_the_link() {
    let result = run_alone(&star("udp", 4, "steps = [{ all_reduce = { bytes = \"58400000B\" } }]"));
    let collectives = table(&result, "collectives");
    let bus = rates(collectives, "bus_bps")[0] / (100e9 * 1460.0 / 1500.0);
    assert!((0.99..=1.0).contains(&bus), "{bus}");
    assert!((rates(collectives, "algorithm_bps")[0] * 1.5 / rates(collectives, "bus_bps")[0] - 1.0).abs() < 1e-9);
}

/// What goes on beside computation is hidden by it.
#[test]
fn an_all_reduce_beside_computation_is_not_exposed() {
    let job = "steps = [{ all_reduce = { bytes = \"584000B\", beside = true } }, { compute = \"1ms\" }]";
    let result = run_both(&star("udp", 4, job));
    let jobs = table(&result, "jobs");
    assert_eq!((column(jobs, "time_ps")[0], column(jobs, "exposed_ps")[0]), (1_000_000_000, 0));
}

/// Every transport carries a job to its end, with the same digest on one thread and on two; none is faster than wires.
#[test]
fn every_transport_carries_a_job() {
    for transport in catalogue::Transport::NAMES.iter().filter(|name| **name != "harmony") {
        let job = "iterations = 2\nsteps = [{ compute = \"5us\" }, { all_reduce = { bytes = \"584000B\" } }, \
                   { all_to_all = { bytes = \"58400B\" } }]";
        let result = run_both(&star(transport, 4, job));
        assert_eq!(result.info.ended, "goal", "{transport}");
        let least = 2 * (5_000_000 + 6 * wire_ps(146_000) + 3 * wire_ps(14_600));
        let jobs = table(&result, "jobs");
        let time: u64 = column(jobs, "time_ps").iter().sum();
        assert!(time > least && time < 8 * least, "{transport}: {time} for {least}");
    }
}

/// Flows of a class beside jobs come first, and are the same with and without them.
#[test]
fn other_traffic_does_not_change_when_a_job_is_added() {
    let web = "[[traffic]]\nname = \"web\"\nsizes.constant = \"100KB\"\narrivals.poisson.load = 0.3\nflows = 50\n";
    let alone = run::Plan::new(&scenario(&format!("fabric.star = {{ hosts = 4 }}\n{web}"))).expect("it can be planned");
    let job = "[[job]]\nsteps = [{ all_reduce = { bytes = \"584000B\" } }]";
    let beside = run::Plan::new(&scenario(&format!("fabric.star = {{ hosts = 4 }}\n{web}{job}"))).expect("planned");
    let first: Vec<_> = beside.flows.iter().take(alone.flows.len()).collect();
    assert_eq!(first, alone.flows.iter().collect::<Vec<_>>());
    assert_eq!(beside.flows.len(), 50 + 24);
}

/// A message that is given up stops its job; the result says which iteration never ended, and the run is over.
#[test]
fn a_job_whose_host_is_cut_off_never_ends_and_says_so() {
    let toml = star("udp", 4, "iterations = 2\nsteps = [{ all_reduce = { bytes = \"5840000B\" } }]");
    let toml = format!("{toml}\n[[failure]]\nlink = [\"host1\", \"switch0\"]\nat = \"100us\"\n");
    let result = run_both(&format!("measure.end = \"10ms\"\n{toml}"));
    assert_ne!(result.info.ended, "goal");
    let jobs = table(&result, "jobs");
    assert_eq!(column(jobs, "end_ps"), [NONE, NONE]);
    assert_eq!(column(table(&result, "collectives"), "time_ps"), [NONE, NONE]);
}

#[test]
fn a_mistake_is_named_by_its_place() {
    let said = |job: &str| {
        let toml = format!("fabric.star = {{ hosts = 4 }}\n[[job]]\n{job}");
        let read = read(&toml, "scene.toml", &[]);
        let planned = |scenario: Scenario| match run::Plan::new(&scenario) {
            Err(problem) => problem.to_string(),
            Ok(_) => panic!("{toml} is sound"),
        };
        read.map_or_else(|error| error.to_string(), planned)
    };
    let reduce = "steps = [{ all_reduce = { bytes = \"1MB\" } }]";
    for (job, message) in [
        ("steps = [{ all_redduce = { bytes = \"1MB\" } }]", "did you mean \"all_reduce\""),
        ("steps = [{ all_reduce = { byte = \"1MB\" } }]", "bytes"),
        (&format!("{reduce}\nhosts = \"0-7\""), "job[0].hosts: there is no host 7"),
        (&format!("{reduce}\nranks = 9"), "job[0].ranks: a job of 9 ranks"),
        (
            "steps = [{ all_reduce = { bytes = \"1MB\", library = { slots = 0 } } }]",
            "job[0].steps[0].all_reduce.library.slots: with 0",
        ),
        (&format!("{reduce}\n[[job]]\n{reduce}"), "job[1].name: \"job\" is also the name of job[0]"),
    ] {
        let error = said(job);
        assert!(error.contains(message), "{error}");
    }
}

/// Two jobs on the same two hosts, each with what one would have, send through one NIC: both take twice as long less
/// the latency that they share. Alone each takes what arithmetic gives, and measuring that moves no packet.
#[test]
fn a_job_is_slowed_down_by_another_and_not_by_itself() {
    let (part, steps) = (1_460_000, "steps = [{ all_reduce = { bytes = \"2920000B\" } }]");
    let two = format!("{steps}\n[[job]]\nname = \"other\"\n{steps}");
    let plain = run_both(&star("udp", 2, &two));
    assert_eq!(column(table(&plain, "jobs"), "alone_ps"), [NONE, NONE], "not unless asked");
    let measured =
        run_both(&star("udp", 2, &two).replace("measure.interval", "measure.alone = true\nmeasure.interval"));
    assert_eq!(plain.info.digest, measured.info.digest);
    let jobs = table(&measured, "jobs");
    assert_eq!(column(jobs, "time_ps"), column(table(&plain, "jobs"), "time_ps"));
    for row in 0..2 {
        let (time, alone) = (column(jobs, "time_ps")[row], column(jobs, "alone_ps")[row]);
        assert_close(alone, 2 * (wire_ps(part) + LATENCY_PS));
        assert_close(time, 2 * (2 * wire_ps(part) + LATENCY_PS));
        assert_eq!(ratios(jobs, "slowdown")[row], time as f64 / alone as f64);
    }
}

/// Where there is nothing else, the slowdown is exactly 1. A job that never ends has none.
#[test]
fn a_job_that_is_alone_has_a_slowdown_of_one_and_one_that_never_ends_has_none() {
    let steps = "iterations = 2\nsteps = [{ all_reduce = { bytes = \"584000B\" } }]";
    let run = |measure: &str| {
        let text = star("udp", 4, steps).replace("measure.interval", &format!("measure.{measure}\nmeasure.interval"));
        run_both(&text)
    };
    let jobs = run("alone = true");
    assert_eq!(ratios(table(&jobs, "jobs"), "slowdown"), [1.0, 1.0]);
    let cut = run("alone = true\nmeasure.end = \"10us\"");
    let slowdown = ratios(table(&cut, "jobs"), "slowdown");
    assert!(slowdown.iter().all(|of| of.is_nan()), "{slowdown:?}");
    assert_eq!(column(table(&cut, "jobs"), "alone_ps"), [NONE, NONE]);
}

/// Alone means without other traffic: the same links, the same failure, the same straggler.
#[test]
fn alone_leaves_out_other_traffic_and_nothing_else() {
    let job = "ranks = 4\nsteps = [{ compute = \"20us\" }, { all_reduce = { bytes = \"584000B\" } }]\n\
               stragglers = [{ rank = 1, factor = 2.0 }]";
    let fails = "[[failure]]\nat = \"30us\"\nuntil = \"50us\"\nlink = [\"host1\", \"switch0\"]\nrate = \"25Gbps\"";
    let alone = run_both(&format!("{}\n{fails}", star("dctcp", 8, job)));
    let traffic =
        "[[traffic]]\nsizes.constant = \"100KB\"\narrivals = { poisson = { load = 0.5 } }\nduration = \"50us\"";
    let text = format!("{}\n{fails}\n{traffic}", star("dctcp", 8, job));
    let beside = run_both(&text.replace("measure.interval", "measure.alone = true\nmeasure.interval"));
    let jobs = table(&beside, "jobs");
    assert_eq!(column(jobs, "alone_ps")[0], job_time(&alone));
    assert!(ratios(jobs, "slowdown")[0] > 1.05, "{:?}", ratios(jobs, "slowdown"));
}

fn ratios(table: &Table, name: &str) -> Vec<f64> {
    match &table.column(name).expect("a column").data {
        Data::F64(values) => values.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

/// Of all flows, with a row or without: bytes delivered, first start, last delivery, packets sent and sent again.
fn totals(result: &RunResult) -> (u64, Option<u64>, Option<u64>, u64, u64) {
    let flows = table(result, "flows");
    let of = |name: &str| column(flows, name).iter().copied();
    let rest = result.info.rest.unwrap_or_default();
    let known = |name: &str| of(name).filter(|&at| at != NONE);
    let delivered = of("bytes").zip(of("delivered_ps")).filter(|of| of.1 != NONE).map(|of| of.0);
    (
        rest.delivered_bytes + delivered.sum::<u64>(),
        known("start_ps").chain(rest.first_start_ps).min(),
        known("delivered_ps").chain(rest.last_delivery_ps).max(),
        rest.sent_packets + of("sent_packets").sum::<u64>(),
        rest.resent_packets + of("resent_packets").sum::<u64>(),
    )
}

/// The packets are the same, and so is all that sums say.
#[test]
fn a_job_with_more_messages_than_rows_is_noted_in_sum() {
    let job = |rows_max: u64| {
        let steps = "ranks_per_host = 2\niterations = 2\nsteps = [{ compute = \"5us\" }, { all_reduce = { bytes = \
                     \"300KB\" } }, { all_to_all = { bytes = \"100KB\" } }]";
        star("udp", 5, steps)
            .replace("measure.interval = \"0s\"", &format!("measure = {{ interval = \"0s\", rows_max = {rows_max} }}"))
    };
    let (singly, in_sum) = (run_both(&job(10_000)), run_both(&job(40)));
    assert_eq!(singly.info.digest, in_sum.info.digest);
    assert_eq!(singly.info.flows_completed, in_sum.info.flows_completed);
    assert_eq!((table(&singly, "flows").len() as u64, table(&in_sum, "flows").len()), (singly.info.flows, 40));
    assert_eq!((singly.info.rest, in_sum.info.rest.map(|rest| rest.flows)), (None, Some(singly.info.flows - 40)));
    assert_eq!(totals(&singly), totals(&in_sum), "goodput and repetitions don't depend on how many rows are kept");
    assert!(in_sum.info.warnings.iter().any(|warning| warning.starts_with("measure.rows_max: the job \"train\"")));
    assert!(in_sum.info.audit.iter().all(|finding| finding.ok), "{:?}", in_sum.info.audit);
    assert!(table(&in_sum, "critical").is_empty());
    for name in ["collectives", "ranks"] {
        assert_eq!(table(&singly, name), table(&in_sum, name));
    }
    assert_eq!(column(table(&singly, "jobs"), "time_ps"), column(table(&in_sum, "jobs"), "time_ps"));
}
