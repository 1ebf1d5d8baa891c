use run::{FlowEvent, Plan};

use super::*;
use crate::testing;

fn jitter(most: Duration) -> Jitter {
    Jitter { most, random: Stream::new(1, 2, "jitter"), last: Time::ZERO }
}

#[test]
fn packets_keep_their_order_and_wait_for_no_longer_than_the_most() {
    let most = Duration::from_ns(120);
    let mut jitter = jitter(most);
    let mut taken = Time::ZERO;
    let mut waited = Duration::ZERO;
    for packet in 0..10_000_u64 {
        let comes = Time::from_ps(packet * 37_000);
        let now = jitter.takes_in(comes);
        assert!(now >= comes && now - comes <= most && now >= taken, "{packet}: {comes} {now}");
        (taken, waited) = (now, waited + (now - comes));
    }
    // Three packets follow each within its time, and each waits for the longest of its own and theirs: of the mean
    // of the greatest of up to four uniform times less what has gone by, which lies between 1/2 and 4/5.
    let mean = waited.ps() as f64 / 10_000.0 / most.ps() as f64;
    assert!((0.5..0.8).contains(&mean), "{mean}");
}

#[test]
fn packets_far_apart_wait_for_half_of_the_most_on_average() {
    let mut jitter = jitter(Duration::from_ns(120));
    let waits = (0..10_000_u64).map(|packet| {
        let comes = Time::from_us(packet + 1);
        (jitter.takes_in(comes) - comes).ps()
    });
    let mean = waits.sum::<u64>() as f64 / 10_000.0;
    // Six standard errors: 120 ns / sqrt(12) / 100 each.
    assert!((mean - 60_000.0).abs() < 6.0 * 346.4, "{mean} ps");
}

/// A flow alone, over flow control or none. Returns how long it takes, and the run's digest.
fn alone(more: &str, parts: usize) -> (Duration, u64) {
    let timing = if more.contains("timing") { "" } else { "timing = \"ideal\"\n" };
    let text = format!(
        "transport = \"dctcp\"\n{timing}{more}\nfabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 2 }}\n\
         [[traffic]]\nsizes.constant = \"10MB\"\nsenders = \"0-1\"\nreceivers = \"2-3\"\n\
         pattern.stride.by = 2\nflows = 2\narrivals = \"all_at_once\""
    );
    let plan = Plan::new(&scenario::read(&text, "scene.toml", &[]).unwrap()).unwrap();
    let parts = testing::run(&plan, parts, || ());
    let switches = parts.iter().flat_map(|part| &part.switches);
    let hosts = || parts.iter().flat_map(|part| &part.hosts);
    let digest = crate::digest(switches, hosts());
    let records = hosts().flat_map(|slot| &slot.host.records);
    let ends = records.filter(|of| matches!(of.fate, FlowEvent::Delivered { .. })).map(|of| of.at);
    (ends.max().expect("both end").since(Time::ZERO), digest)
}

#[test]
fn a_flow_alone_keeps_its_rate_on_any_number_of_parts() {
    let ideal = alone("", 1).0.ps() as f64;
    for more in ["host.jitter = \"120ns\"", "host.jitter = \"120ns\"\nflow_control = \"pfc\""] {
        let (time, digest) = alone(more, 1);
        assert!((time.ps() as f64 / ideal - 1.0).abs() < 0.005, "{more}: {time} instead of {ideal} ps");
        assert_eq!(alone(more, 2), (time, digest), "{more}");
    }
    let (real, digest) = alone("timing = \"real\"", 1);
    assert!((real.ps() as f64 / ideal - 1.0).abs() < 0.005, "{real}");
    assert_eq!(alone("timing = \"real\"", 2), (real, digest));
    assert_eq!(alone("host.jitter = \"120ns\"\nlink.clock_tolerance = \"100ppm\"", 2), (real, digest), "at 100 Gbps");
    assert_ne!(alone("timing = \"real\"\nseed = 2", 1).1, digest);
}

#[test]
fn clocks_are_fast_or_slow_by_no_more_than_the_tolerance_each_in_its_own_way() {
    let text =
        "timing = \"real\"\nfabric.star.hosts = 100\n[[traffic]]\nsizes.constant = \"1KB\"\narrivals = \"all_at_once\"";
    let plan = Plan::new(&scenario::read(text, "scene.toml", &[]).unwrap()).unwrap();
    let mut ppb: Vec<i32> = (0..plan.fabric.nodes()).map(|node| plan.clock_ppb(NodeId(node))).collect();
    ppb.sort_unstable();
    assert!(ppb[0] >= -100_000 && ppb[0] < -80_000 && ppb[100] <= 100_000 && ppb[100] > 80_000, "{ppb:?}");
    ppb.dedup();
    assert!(ppb.len() > 95, "{ppb:?}");
}
