//! Hosts whose software costs time, beside arithmetic.

use clearway_sim::{Execution, RunResult, run};

use crate::{column, of_flows, run_alone, run_both, run_on, scenario, table};

/// One switch that takes 300 ns, links of 50 ns with 25 Gbps, and packets of 1,500 B with 40 B of headers.
fn star(hosts: u32, cpu: &str, rest: &str) -> String {
    format!(
        "host.cpu = {{ {cpu} }}\nmeasure.interval = '0s'\nswitch.buffer.per_port.bytes = '10MB'\n\
         fabric.star = {{ hosts = {hosts}, rate = '25Gbps', propagation = '50ns', switch_delay = '300ns' }}\n{rest}"
    )
}

fn message(transport: &str, bytes: u64, from: u32, at_us: u64) -> String {
    format!(
        "[[traffic]]\nname = \"{transport} {bytes} {from} {at_us}\"\ntransport = {transport}\nsizes.constant = \
         '{bytes}B'\narrivals = 'all_at_once'\nflows = 1\nsenders = '{from}'\nreceivers = '1'\nstart = '{at_us}us'\n"
    )
}

/// Nanoseconds of bytes on a link of 25 Gbps.
fn wire(bytes: u64) -> u64 {
    bytes * 8 / 25
}

const EACH: &str = "per_message_send = '300ns', per_packet_send = '500ns', pcie_rate = '64Gbps', pcie_latency = \
                    '700ns', interrupt_moderation = '4us', interrupt = '900ns', per_packet_receive = '200ns', \
                    hand_over = '550ns', per_batch_receive = '1us', wake_up = '2us', per_message_receive = '600ns'";

#[test]
fn a_message_alone_takes_the_sum_of_its_stages() {
    let result = run_alone(&star(2, EACH, &message("'udp'", 960, 0, 3)));
    let network = 2 * (wire(1_000) + 50) + 300;
    let bus = 2 * (1_000 * 8 / 64 + 700);
    let right = 300 + 500 + bus + network + 4_000 + 900 + 200 + 550 + 1_000 + 2_000 + 600;
    assert_eq!(of_flows(&result, "fct_ps"), [right * 1_000]);
    assert_eq!(of_flows(&result, "ideal_ps"), [right * 1_000]);
    // Until the packet was on the link, then all the rest.
    let until_link = 300 + 500 + bus / 2;
    assert_eq!(of_flows(&result, "wait_ps"), [until_link * 1_000]);
    assert_eq!(of_flows(&result, "serialised_ps"), [2 * wire(1_000) * 1_000]);
}

#[test]
fn an_answer_waits_for_no_application() {
    // Software takes what it takes twice, but that of applications; the control packet has 40 B.
    let text = star(2, EACH, &message("'dctcp'", 960, 0, 0));
    let result = run_alone(&format!("measure.completion = 'acknowledged'\n{text}"));
    let way = |bytes: u64| 500 + 2 * (bytes * 8 / 64 + 700) + 4_000 + 900 + 200 + 550 + 1_000;
    let network = |bytes: u64| 2 * (wire(bytes) + 50) + 300;
    let both = 300_000u64 + (way(1_000) + network(1_000)) * 1_000 + (way(40) + 400) * 1_000 + 2 * 12_800;
    assert_eq!(of_flows(&result, "completed_ps"), [both]);
    assert_eq!(of_flows(&result, "ideal_ps"), [both]);
}

#[test]
fn the_measured_timeline_comes_out() {
    // HomaModule's notes, item 33: 15,770 ns there and back for 100 B, of which 682 are the server's application.
    let text = star(2, "like = 'linux_xl170'", &message("'homa'", 100, 0, 5));
    // No thread polls before the first message, so that no sibling is busy.
    let result = run_alone(&format!("host.header = '60B'\n{text}"));
    let there_ns = of_flows(&result, "fct_ps")[0] as f64 / 1e3;
    let both = 2.0 * there_ns + 682.0;
    assert!((both / 15_770.0 - 1.0).abs() < 0.002, "{both} ns");
}

/// Microseconds until all messages have been received.
fn last_us(result: &RunResult) -> u64 {
    of_flows(result, "delivered_ps").iter().max().unwrap() / 1_000_000
}

#[test]
fn one_core_takes_in_a_packet_each_so_often_and_more_cores_more_flows() {
    let flows: String = (0..16).map(|at| message("'udp'", 146_000, 2 + at % 4, u64::from(at))).collect();
    let run = |cores| run_both(&star(6, &format!("cores = {cores}, per_packet_receive = '1us'"), &flows));
    let (one, eight) = (last_us(&run(1)), last_us(&run(8)));
    // 1,600 packets of a microsecond; the link alone needs half a microsecond for each.
    assert!((1_600..1_610).contains(&one), "{one} us");
    assert!((768..1_000).contains(&eight), "{eight} us");
}

#[test]
fn the_bus_bounds_the_rate() {
    let run = |rate| run_both(&star(2, &format!("pcie_rate = '{rate}'"), &message("'udp'", 1_460_000, 0, 0)));
    // 1,000 packets of 1,500 B at the rate of the bus, once more over each of the other three.
    assert_eq!(last_us(&run("10Gbps")), 1_201 + 1);
    assert!((480..483).contains(&last_us(&run("100Gbps"))));
}

#[test]
fn batches_make_a_long_message_cheaper_and_none_is_faster_than_ideal() {
    let of = |transport, batches| {
        let cpu = format!("per_packet_send = '2us', per_batch_receive = '2us', interrupt = '1us'{batches}");
        let result = run_both(&star(3, &cpu, &(message(transport, 730_000, 0, 0) + &message(transport, 90, 2, 9))));
        (last_us(&result), of_flows(&result, "ideal_ps")[0] / 1_000_000)
    };
    for transport in ["'dctcp'", "'homa'", "'rdma'", "'linux'"] {
        let (single, batched) = (of(transport, ""), of(transport, ", tso = '30KB', gro = 16"));
        // 500 packets of 2 us each, for a sender and for a receiver.
        assert!(single.0 >= 1_000 && single.1 >= 1_000, "{transport}: {single:?}");
        assert!(batched.0 < single.0 && batched.1 < single.1, "{transport}: {batched:?} and {single:?}");
    }
}

#[test]
fn all_histories_are_one_on_any_number_of_threads() {
    let traffic = "seed = 3\n[[traffic]]\nsizes = 'hadoop'\narrivals.poisson.load = 0.5\nflows = 300\ntransport = ";
    let fabric = "fabric.leaf_spine = { racks = 4, hosts_per_rack = 3, spines = 2, host_rate = '25Gbps' }";
    for transport in ["'homa'", "'dctcp'", "'uet'", "'falcon'"] {
        let cpu = "host.cpu = { like = 'linux_xl170', cores = 3, threads = 4, ports = 2 }";
        let text = format!("timing = 'real'\n{cpu}\n{fabric}\n{traffic}{transport}");
        let result = run_both(&text);
        assert_eq!(result.info.ended, "goal", "{transport}");
        let without = run_on(1, &text.replace(cpu, ""));
        let mean = |result: &RunResult| column(table(result, "flows"), "fct_ps").iter().sum::<u64>();
        assert!(mean(&result) > mean(&without), "{transport}");
    }
}

#[test]
fn a_job_waits_for_its_hosts() {
    let job = "[[job]]\nhosts = '0-3'\nranks = 4\nsteps = [{ all_reduce = { bytes = '400KB' } }]\n";
    let time = |cpu| column(table(&run_both(&star(4, cpu, job)), "jobs"), "time_ps")[0];
    let (free, costly) = (time(""), time("per_message_send = '10us', per_message_receive = '5us'"));
    // Six steps of a ring, one behind the other; threads of one step may begin while packets of another leave.
    let more = costly - free;
    assert!((89_000_000..=90_000_000).contains(&more), "{more} ps");
}

#[test]
fn what_is_wrong_is_refused_before_anything_runs() {
    let refused = |cpu: &str| {
        let text = star(2, cpu, &message("'udp'", 960, 0, 0));
        let read = scenario::read(&text, "scene.toml", &[]).map_err(|error| error.to_string());
        match read {
            Err(error) => error,
            Ok(scenario) => run(&scenario, Execution::from(1), |_| false).map(|_| ()).unwrap_err().to_string(),
        }
    };
    for (cpu, words) in [
        ("cores = 0", ["host.cpu.cores", "from 1 to 1024"]),
        ("per_paket_send = '1us'", ["per_paket_send", "per_packet_send"]),
        ("pcie_rate = '0Gbps'", ["host.cpu.pcie_rate", "leave it out"]),
        ("nic_queue = '0B'", ["host.cpu.nic_queue", "at least a packet"]),
        ("interrupt = '2s'", ["host.cpu.interrupt", "1s"]),
        ("gro = 0", ["host.cpu.gro", "from 1 to 1024"]),
        ("like = 'linux_xl710'", ["host.cpu.like", "linux_xl170"]),
    ] {
        let error = refused(cpu);
        assert!(words.iter().all(|word| error.contains(word)), "{cpu}: {error}");
    }
    let idle = scenario(&star(2, "gro = 8", &message("'udp'", 960, 0, 0)));
    assert!(idle.advice().iter().any(|advice| advice.key == "host.cpu.gro"));
}
