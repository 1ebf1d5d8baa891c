//! What a run will take, estimated before it, beside what it took: on the scenarios of `make bench`, shortened.

use run::{Estimate, Plan};

macro_rules! bench {
    ($name:literal) => {
        include_str!(concat!("../examples/bench/scenarios/", $name, ".toml"))
    };
}

/// Estimated over actual.
struct Ratio {
    hops: f64,
    end: f64,
    plan: Plan,
}

fn ratio(toml: &str, transport: &str, flow_control: &str, sets: &[(&str, &str)]) -> Ratio {
    let text = format!("transport = \"{transport}\"\nflow_control = \"{flow_control}\"\n{toml}");
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let plan = Plan::new(&scenario::read(&text, "test", &sets).expect("sound")).expect("sound");
    let estimate = Estimate::of(&plan);
    let info = clearway_sim::run_plan(&plan, 1, |_| false).info;
    let ratio = Ratio {
        hops: estimate.packet_hops as f64 / info.packet_hops as f64,
        end: estimate.end.ps() as f64 / info.end_ps as f64,
        plan,
    };
    println!(
        "{transport:>12} {flow_control:>12} hops {:>9} x{:.3} end x{:.3} {:?}",
        info.packet_hops, ratio.hops, ratio.end, estimate.memory
    );
    ratio
}

#[test]
fn print_all() {
    for transport in catalogue::Transport::NAMES {
        if let Ok(()) = std::panic::catch_unwind(|| {
            print!("leaf-spine ");
            ratio(bench!("leaf-spine"), transport, "none", &[("traffic.0.flows", "150")]);
        }) {}
    }
    for transport in ["harmony", "fastpass", "dcpim"] {
        print!("rpcs ");
        ratio(bench!("rpcs"), transport, "none", &[("traffic.0.flows", "1000")]);
    }
    for transport in ["r2c2", "newreno"] {
        print!("rack ");
        ratio(bench!("rack"), transport, "none", &[("traffic.0.flows", "300")]);
    }
    for control in catalogue::LinkControl::NAMES {
        print!("storm ");
        ratio(bench!("storm"), "rdma", control, &[("traffic.1.flows", "1000")]);
    }
    for transport in ["ndp", "dcpim", "dctcp"] {
        print!("permutation ");
        ratio(bench!("permutation-1024"), transport, "none", &[("traffic.0.sizes", "{ constant = \"200KB\" }")]);
        print!("incast ");
        ratio(bench!("incast-1024"), transport, "none", &[("traffic.0.sizes", "{ constant = \"50KB\" }")]);
        print!("ring ");
        ratio(bench!("ring-1024"), transport, "none", &[("traffic.0.flows", "4096")]);
        print!("all-to-all ");
        ratio(bench!("all-to-all-1024"), transport, "none", &[("traffic.0.flows", "8192")]);
    }
    print!("poisson ");
    ratio(bench!("poisson-1024"), "dcpim", "none", &[("traffic.0.flows", "300")]);
    print!("million ");
    ratio(bench!("million"), "dcpim", "none", &[("traffic.0.flows", "50000")]);
}
