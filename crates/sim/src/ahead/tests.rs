use super::*;

/// Long messages within two racks, and one between them that begins at some time. Skips with two islands, which don't
/// know of the latter, or with one. Returns the digest, and what was skipped.
fn run_racks(crosses_at: &str, two: bool) -> Result<(u64, Skipped), Breach> {
    let within = r#"
        transport = "rdma"
        flow_control = "pfc"
        fast_forward = "exact"
        measure.interval = "0s"
        fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 1 }
        [[traffic]]
        name = "in one rack"
        senders = "0"
        receivers = "1"
        sizes.constant = "5MB"
        arrivals = "all_at_once"
        flows = 1
        [[traffic]]
        name = "in the other"
        senders = "2"
        receivers = "3"
        sizes.constant = "7MB"
        arrivals = "all_at_once"
        flows = 1
    "#;
    let between = format!(
        "[[traffic]]\nname = \"between\"\nsenders = \"0\"\nreceivers = \"3\"\nsizes.constant = \"1MB\"\n\
         start = \"{crosses_at}\"\narrivals = \"all_at_once\"\nflows = 1"
    );
    let plan = |text: &str| Plan::new(&scenario::read(text, "scene.toml", &[]).unwrap()).unwrap();
    let islands = driver::Islands::of_flows(&plan(within));
    assert_eq!(islands.count(), 2);
    let plan = plan(&format!("{within}\n{between}"));
    let islands = if two { islands } else { driver::Islands::of_flows(&plan) };
    let cut = driver::Cut::of_islands(&plan, 1, &islands);
    let mut parts = crate::part::parts(&plan, &cut, &crate::part::Board::default(), || driver::Probes::new(&plan));
    let bounds = Bounds::new(plan.lookahead, plan.horizon, plan.goal());
    let (_, skipped) = run(&plan, &mut parts, cut.islands(), 1, bounds, |_, _| false)?;
    let switches = parts.iter().flat_map(|part| &part.0.switches);
    Ok((driver::digest(switches, parts.iter().flat_map(|part| &part.0.hosts)), skipped))
}

/// Nothing was skipped yet: the whole network goes on as one.
#[test]
fn islands_that_are_none_from_the_beginning_are_joined() {
    let (joined, whole) = (run_racks("0s", true).unwrap(), run_racks("0s", false).unwrap());
    assert_eq!((joined.0, joined.1.islands), (whole.0, 1));
    assert!(joined.1.skips > 0, "{:?}", joined.1);
}

/// Something was skipped as if nothing could come from outside.
#[test]
fn a_packet_that_comes_to_an_island_later_makes_the_run_void() {
    assert!(run_racks("100us", true).is_err());
}
