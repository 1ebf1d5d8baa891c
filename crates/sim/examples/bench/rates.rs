//! How long a node of R2C2 computes rates (its paper's section 5.1, Figure 8): the solver alone, on one core, with what
//! a node knows beforehand at hand (link weights). The paper's Xeon E5-2665 is of 2012: the ratios compare programs on
//! their machines.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use fabric::{Routing, RoutingTables};
use run::Plan;
use transports::r2c2::rates::replay::{self, Message, NetworkView};
use transports::r2c2::rates::{Allocator, Flow};
use units::Duration;

/// The paper's times at 1 us between flows, by rho: median and 99th percentile of the interval (section 5.1).
const PAPER: [(u64, f64, f64); 2] = [(100, 0.176, 0.739), (500, 0.017, 0.079)];
/// The times of the interval of 500 us in us, as a yardstick where the paper has none.
const PAPER_US: [f64; 2] = [8.5, 39.5];
/// Section 5.2: 2,241 flows at most when one begins every 100 ns.
const AT_ONCE: usize = 2241;

pub fn bench() {
    println!(
        "{:<40} {:>7} {:>13} {:>17} {:>17} {:>21}",
        "R2C2's rates, 512 nodes", "", "flows", "us", "% of rho", "times as fast as"
    );
    println!(
        "{:<40} {:>7} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10}",
        "", "rho", "50%", "99%", "50%", "99%", "50%", "99%", "paper 50%", "99%"
    );
    for (every, flows, step) in [("1us", 200_000, 2), ("100ns", 500_000, 10)] {
        replay(every, flows, Duration::from_us(step));
    }
    at_once();
}

/// Section 5.2's traffic.
fn plan(every: &str, flows: usize) -> Plan {
    let text = format!(
        r#"
        fabric.torus = {{}}
        transport = "r2c2"
        [[traffic]]
        sizes = {{ pareto = {{ shape = 1.05, mean = "100KB" }} }}
        arrivals = {{ poisson = {{ every = "{every}" }} }}
        flows = {flows}
        "#
    );
    Plan::new(&scenario::read(&text, "bench", &[]).expect("a sound scenario")).expect("a sound scenario")
}

fn tables(plan: &Plan) -> (RoutingTables, Vec<f64>) {
    let capacity = plan.fabric.links.iter().map(|link| link.rate.bps() as f64 * 0.95).collect();
    (RoutingTables::new(plan.fabric.clone(), plan.routes.clone()), capacity)
}

fn replay(every: &str, flows: usize, step: Duration) {
    let plan = plan(every, flows);
    let (tables, capacity_bps) = tables(&plan);
    let network = NetworkView { tables: &tables, routing: Routing::RandomPacketSpraying, capacity_bps: &capacity_bps };
    let message = |flow: run::FlowInfo| Message { start: flow.start, src: flow.src, dst: flow.dst, bytes: flow.bytes };
    let messages: Vec<Message> = plan.flows.iter().map(message).collect();
    let lifetimes = replay::lifetimes(&network, &messages, step);
    for rho_us in [100, 250, 500, 1000] {
        let once = || replay::recompute(&network, &lifetimes, Duration::from_us(rho_us), microseconds);
        let runs = [once(), once(), once()];
        let flows = runs[0].iter().map(|one| one.flows as f64).collect();
        let best = (0..runs[0].len()).map(|at| runs.iter().map(|run| run[at].took).fold(f64::INFINITY, f64::min));
        let paper = PAPER.iter().find(|(rho, ..)| every == "1us" && *rho == rho_us);
        let paper = paper.map(|(rho, median, tail)| [median * *rho as f64, tail * *rho as f64]);
        line(
            &format!("a flow every {every}"),
            Some(rho_us as f64),
            percentiles(flows),
            percentiles(best.collect()),
            paper,
        );
    }
}

/// As many flows as the paper ever had, between random nodes.
fn at_once() {
    let plan = plan("1us", AT_ONCE);
    let (tables, capacity_bps) = tables(&plan);
    let links: Vec<_> =
        plan.flows.iter().map(|flow| tables.weights(Routing::RandomPacketSpraying, flow.src, flow.dst)).collect();
    let flow = |links| Flow { links, weight: 1.0, priority: 0, demand: f64::INFINITY };
    let mut allocator = Allocator::new(&capacity_bps);
    let took = (0..200).map(|_| {
        microseconds(&mut || {
            let flows: Vec<Flow<'_>> = links.iter().map(|links| flow(links)).collect();
            black_box(allocator.allocate(&flows));
        })
    });
    line("2,241 flows at once", None, [AT_ONCE as f64; 2], percentiles(took.collect()), Some(PAPER_US));
}

fn microseconds(work: &mut dyn FnMut()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e6
}

/// The median and the 99th percentile.
fn percentiles(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    [0.5, 0.99].map(|share| values[((values.len() - 1) as f64 * share).round() as usize])
}

fn line(name: &str, rho_us: Option<f64>, flows: [f64; 2], us: [f64; 2], paper_us: Option<[f64; 2]>) {
    let mut text = format!("{name:<40} ");
    let rho = rho_us.map_or(String::new(), |rho| format!("{rho} us"));
    write!(text, "{rho:>7} {:>6} {:>6} {:>8.2} {:>8.2}", flows[0], flows[1], us[0], us[1]).expect("a string takes all");
    for us in us {
        let share = rho_us.map_or(String::new(), |rho| format!("{:.2}", us / rho * 100.0));
        write!(text, " {share:>8}").expect("a string takes all");
    }
    for (us, paper) in us.into_iter().zip(paper_us.into_iter().flatten()) {
        write!(text, " {:>10.3}", paper / us).expect("a string takes all");
    }
    println!("{text}");
}
