use super::*;
use crate::part::{ReceivedBytes, parts};

/// The parts of a network before anything has happened, and the bounds of a whole run.
fn begin(plan: &Plan, cut: &Cut) -> (Vec<Part<driver::Probes>>, Bounds) {
    let parts = parts(plan, cut, &ReceivedBytes::default(), || driver::Probes::new(plan));
    (parts, Bounds::new(plan.lookahead, plan.horizon, plan.goal()))
}

/// Long messages within two racks, and one between them that begins at some time. Skips with two islands, which don't
/// know of the latter, or with one. Returns the digest, and what was skipped.
fn run_racks(crosses_at: &str, two: bool) -> Result<(u64, Skipped), Breach> {
    let within = r#"
        timing = "ideal"
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
    assert_eq!(islands.districts(), 2);
    let plan = plan(&format!("{within}\n{between}"));
    let islands = if two { islands } else { driver::Islands::of_flows(&plan) };
    let cut = driver::Cut::of_islands(&plan, 1, &islands);
    let (mut parts, bounds) = begin(&plan, &cut);
    let (_, skipped) = run(&plan, &mut parts, (&islands, &cut, false), 1, bounds, |_, _| false)?;
    let switches = parts.iter().flat_map(|part| &part.0.switches);
    Ok((driver::digest(switches, parts.iter().flat_map(|part| &part.0.hosts)), skipped))
}

/// A packet that leaves its island joins two, and the run begins anew, whether anything was skipped before or not.
#[test]
fn a_packet_that_comes_to_an_island_makes_the_run_void() {
    assert!(["0s", "100us"].iter().all(|at| run_racks(at, true).is_err()));
    let (_, joined) = run_racks("0s", false).unwrap();
    assert!(joined.skips > 0 && joined.islands == 1, "{joined:?}");
}

/// Records three periods that end in the middle of messages, most of which is skipped. Returns what was skipped.
fn record_periods(mode: &str, transport: &str, senders: &str) -> Skipped {
    let text = format!(
        "timing = \"ideal\"\ntransport = \"{transport}\"\nfast_forward = \"{mode}\"\nmeasure.interval = \"0s\"\n\
         fabric.star = {{ hosts = 3 }}\n[[traffic]]\nsenders = \"{senders}\"\nreceivers = \"0\"\n\
         pattern = \"dense\"\nsizes.constant = \"100MB\"\narrivals = \"all_at_once\""
    );
    let plan = Plan::new(&scenario::read(&text, "scene.toml", &[]).unwrap()).unwrap();
    let cut = driver::Cut::new(&plan, 1);
    let (mut parts, bounds) = begin(&plan, &cut);
    let connections = Connections::new(&plan, &Islands::one(&plan), cut.districts());
    let run = RefCell::new(Run::new(&plan, &mut parts, connections, None, 1, bounds, |_, _| false));
    run.borrow_mut().changed_islands();
    run.borrow_mut().have_islands(&[1]);
    let mut island = Island::new(&run, 1);
    let mut context = Context::from_waker(Waker::noop());
    for end in [1_999, 3_998, 5_997].map(Time::from_us) {
        let span = end.since(island.now);
        let mut recording = Box::pin(island.go_on_recording(span));
        while recording.as_mut().poll(&mut context).is_pending() {
            assert!(run.borrow_mut().advance().is_none());
        }
        drop(recording);
        assert_eq!((island.now, run.borrow().now), (end, end), "{mode}");
    }
    run.borrow().skipped.clone()
}

/// Messages go on when a period ends in which they follow each other. What is skipped within them stops there.
#[test]
fn what_is_skipped_within_a_period_ends_with_it() {
    // A message alone on its links recurs.
    let skipped = record_periods("exact", "timely", "1");
    assert!(skipped.skips > 0 && skipped.estimated_ps == 0, "{skipped:?}");
    // Two that share a link are only steady.
    let skipped = record_periods("approximate", "swift", "1-2");
    assert!(skipped.estimated_ps > 0, "{skipped:?}");
}

/// What comes to nodes in half a millisecond after flows have been steady for a while, as times since. Before that,
/// the state is moved ahead by what they do on average, or not. `None` if they are not steady.
fn arrivals_after(plan: &Plan, moved: bool) -> Option<Vec<(u64, u32)>> {
    let cut = driver::Cut::new(plan, 1);
    let (mut parts, mut bounds) = begin(plan, &cut);
    let headers = header_walks(plan);
    let mut history = node::walk::History::default();
    for step in 0..9 {
        bounds.pause = Time::from_us(1_000 + step * 300);
        bounds.open_until = engine::run(&mut parts, 1, bounds, |_, _| false).open_until;
        let mut walk = node::Walk::note(bounds.pause, headers.clone());
        parts[0].0.visit(&mut walk);
        let notes = walk.finish().ok()??;
        notes.not_by_averages().is_none().then(|| history.add(&notes))?;
    }
    let amounts = |time| history.steady().ok().map(|mut steady| steady.next(time));
    let time = units::Duration::from_us(if moved { 5_001 } else { 0 });
    let mut walk = node::Walk::shift(bounds.pause, headers, amounts(time)?);
    parts[0].0.visit(&mut walk);
    walk.finish().expect("it was possible to note it");
    let now = bounds.pause + time;
    bounds = Bounds { pause: now + units::Duration::from_us(500), open_until: None, ..bounds };
    parts[0].0.begin_log();
    engine::run(&mut parts, 1, bounds, |_, _| false);
    let mut arrivals: Vec<_> = parts[0].0.take_log().arrivals.iter().map(|of| ((of.at - now).ps(), of.node)).collect();
    // One node is served after another, and windows begin elsewhere.
    arrivals.sort_unstable();
    Some(arrivals)
}

/// Nothing but times and positions is other than it was. So packets follow each other as they would have.
#[test]
fn a_state_that_is_moved_ahead_by_averages_goes_on_as_it_would_have() {
    let two = "[[traffic]]\nsenders = \"1-2\"\nreceivers = \"0\"\npattern = \"dense\"\nflows = 2";
    let apart = "[[traffic]]\npattern.stride.by = 1\nflows = 4";
    let mut steady = 0;
    for transport in catalogue::Transport::NAMES {
        for traffic in [two, apart] {
            for control in ["none", "pfc"] {
                let text = format!(
                    "timing = \"ideal\"\ntransport = \"{transport}\"\nfast_forward = \"approximate\"\n\
                     flow_control = \"{control}\"\nmeasure.interval = \"0s\"\nfabric.star = {{ hosts = 4 }}\n\
                     {traffic}\nsizes.constant = \"1GB\"\narrivals = \"all_at_once\""
                );
                let plan = scenario::read(&text, "scene.toml", &[]).ok().and_then(|scenario| Plan::new(&scenario).ok());
                let Some(plan) = plan else { continue };
                let Some(stayed) = arrivals_after(&plan, false) else { continue };
                let moved = arrivals_after(&plan, true).expect("they are as steady");
                let differs = stayed.iter().zip(&moved).position(|(one, other)| one != other);
                assert_eq!((differs, stayed.len()), (None, moved.len()), "{transport} over {control}: {traffic}");
                steady += 1;
            }
        }
    }
    assert!(steady > 50, "{steady}");
}

/// Where looking has cost enough, what comes to hosts is not kept for nobody to look at: a fault of before.
#[test]
fn while_nobody_looks_nobody_hears() {
    let text = "timing = \"ideal\"\ntransport = \"dctcp\"\nfast_forward = \"approximate\"\nmeasure.interval = \"0s\"\n\
                fabric.star = { hosts = 8 }\n\
                [[traffic]]\nsizes = \"websearch\"\narrivals.poisson = { load = 0.6 }\nflows = 2000";
    let plan = Plan::new(&scenario::read(text, "scene.toml", &[]).unwrap()).unwrap();
    let cut = driver::Cut::new(&plan, 1);
    let (mut parts, bounds) = begin(&plan, &cut);
    let watch = |now, _| now > Time::from_ms(20);
    run(&plan, &mut parts, (&Islands::one(&plan), &cut, true), 1, bounds, watch).unwrap();
    let heard: usize = parts.iter().filter_map(|part| part.0.heard.as_ref()).map(Vec::len).sum();
    let hops = parts.iter().map(|part| part.0.packet_hops).sum::<u64>() as usize;
    assert!(hops > 1_000_000 && heard < hops / 100, "{heard} of {hops}");
}
