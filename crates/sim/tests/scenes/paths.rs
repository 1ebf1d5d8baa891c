//! What a path's length does to a flow's share.

use crate::{of_flows, run_alone};

#[test]
fn under_swift_a_short_path_does_not_starve_a_long_one() {
    // Two flows to host 0, one from its own rack over one switch, one over three: targets differ as the round trips do.
    let flow = |name: &str, sender: u32| {
        format!(
            r#"
            [[traffic]]
            name = "{name}"
            sizes = {{ constant = "30MB" }}
            arrivals = "all_at_once"
            senders = "{sender}"
            receivers = "0"
            flows = 1
            "#
        )
    };
    let clos = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 2, spine_rate = \"200Gbps\" }";
    // What the far flow had when the near one ended, as a share of that: its rest left at the link's full rate.
    let share = |transport: &str| {
        let scene = format!("transport = {transport}\n{clos}\n{}{}", flow("near", 1), flow("far", 5));
        let result = run_alone(&scene);
        let ends = of_flows(&result, "delivered_ps");
        1.0 - (ends[1] as f64 - ends[0] as f64) * 1e-12 * 12.5e9 * 1460.0 / 1500.0 / 30e6
    };
    let scaled = share("\"swift\"");
    assert!(scaled > 0.5 && scaled < 1.1, "{scaled}");
    // One target for both leaves the far flow nothing, as section 3.5 of the paper says.
    let alike = share("{ swift = { control = { base_target = \"5.5us\", hop_target = \"0s\" } } }");
    assert!(alike < 0.1, "{alike}");
}
