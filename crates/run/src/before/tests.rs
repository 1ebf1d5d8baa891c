use scenario::read;

use super::*;
use crate::{Plan, WorkloadPlan};

fn refused(text: &str, bytes: u64) -> Problem {
    let scenario = read(text, "test", &[]).unwrap_or_else(|error| panic!("{error}"));
    let packets = WorkloadPlan::within(&scenario, MemoryLimit::packets(Some(bytes)));
    packets.err().unwrap_or_else(|| panic!("this does not fit: {text}"))
}

const ALL_AT_ONCE: &str =
    "transport = \"udp\"\n[[traffic]]\nsizes = { constant = \"1KB\" }\narrivals = \"all_at_once\"\n";

#[test]
fn a_fabric_is_refused_with_the_size_that_fits() {
    let text = format!("{ALL_AT_ONCE}flows = 10\n[fabric.fat_tree]\nk = 128\n");
    let problem = refused(&text, 2_000_000_000);
    assert_eq!(problem.key, "fabric.fat_tree.k");
    assert_eq!(
        problem.message,
        "524288 hosts, 20480 switches and 1572864 cables will need about 5.8 GB of memory, and there are 2.0 GB. k = \
         64 would fit"
    );
    // The same without packets takes less.
    let scenario = read(&text, "test", &[]).expect("sound");
    assert!(MemoryLimit::flows(Some(2_000_000_000)).check_fabric(&scenario).is_ok());
    assert!(MemoryLimit::NONE.check_fabric(&scenario).is_ok());
}

#[test]
fn flows_are_refused_before_they_are_made() {
    let text = format!("{ALL_AT_ONCE}flows = 90000000\n[fabric.star]\nhosts = 4\n");
    let problem = refused(&text, 1_000_000_000);
    assert_eq!(problem.key, "traffic[0].flows");
    assert!(
        problem.message.contains("about 90,000,000 flows, and more than 1,807,255, for which there is memory"),
        "{problem}"
    );
}

/// The cases of jobs that were once built without a count.
#[test]
fn a_job_is_refused_with_the_setting_that_fits() {
    let job = |job: &str, hosts: u32| format!("transport = \"udp\"\n[fabric.star]\nhosts = {hosts}\n[[job]]\n{job}\n");
    let cases = [
        ("ranks_per_host = 1024\nsteps = [{ all_to_all = { bytes = \"1GB\" } }]", "job[0].ranks_per_host"),
        ("iterations = 4000000000\nsteps = [{ compute = \"1ns\" }]", "job[0].iterations"),
        ("iterations = 5000000\nsteps = [{ compute = \"1ns\" }]", "job[0].iterations"),
        (
            "ranks = 60\nsteps = [{ all_reduce = { bytes = \"1TB\" } }]\nlibrary = { chunk = \"1KB\" }",
            "job[0].library.chunk",
        ),
        (
            "steps = [{ compute = \"1us\" }, { all_gather = { bytes = \"1TB\", library = { chunk = \"1KB\" } } }]",
            "job[0].steps[1].all_gather.library.chunk",
        ),
        ("ranks_per_host = 100000\nsteps = [{ compute = \"1ns\" }]", "job[0].ranks_per_host"),
    ];
    for (text, key) in cases {
        let problem = refused(&job(text, 64), 4_000_000_000);
        assert_eq!(problem.key, key, "{problem}");
        // The advised settings fit.
        let advice = problem.message.rsplit(". ").next().and_then(|advice| advice.strip_suffix(" would fit"));
        let Some((_, value)) = advice.and_then(|advice| advice.split_once(" = ")) else { continue };
        let scenario = scenario::Source {
            name: "test".to_owned(),
            text: job(text, 64),
            sets: vec![(key.to_owned(), value.trim_matches('"').to_owned())],
            folder: std::path::PathBuf::new(),
            programs: scenario::Programs::new(),
            crates: scenario::Crates::new(),
        };
        let scenario = scenario.read().unwrap_or_else(|error| panic!("{error}"));
        // It would be made now, which takes a while: counting it is enough.
        assert_ne!(scenario.job[0], read(&job(text, 64), "test", &[]).expect("sound").job[0]);
    }
}

/// Rings take memory for ranks, and messages without a row next to none.
#[test]
fn large_jobs_fit_four_gigabytes_and_are_refused_with_numbers_where_they_do_not() {
    let ring = include_str!("../../../../tests/scale/ring-10000.toml");
    let gpus = include_str!("../../../../tests/scale/gpu-1024.toml");
    let (enough, little) = (Some(4_000_000_000), Some(400_000_000));
    for (text, fits, fails) in [
        (ring, MemoryLimit::flows(enough), MemoryLimit::flows(little)),
        (gpus, MemoryLimit::packets(enough), MemoryLimit::packets(little)),
    ] {
        let scenario = read(text, "test", &[]).unwrap_or_else(|error| panic!("{error}"));
        WorkloadPlan::within(&scenario, fits).unwrap_or_else(|problem| panic!("{problem}"));
        let problem = WorkloadPlan::within(&scenario, fails).err().expect("it takes more");
        assert!(problem.key.starts_with("job[0]"), "{problem}");
        assert!(problem.message.contains(" steps and ") && problem.message.contains(", which will need"), "{problem}");
    }
}

/// The count before is the number afterwards, so that nothing that fits is refused.
#[test]
fn what_fits_is_made() {
    let text = "transport = \"udp\"\n[fabric.leaf_spine]\nracks = 2\nhosts_per_rack = 4\nspines = 2\n[[job]]\n\
                ranks_per_host = 2\nsteps = [{ all_reduce = { bytes = \"1MB\" } }]\n";
    let scenario = read(text, "test", &[]).expect("sound");
    let plan = Plan::within(&scenario, Some(200_000_000)).unwrap_or_else(|problem| panic!("{problem}"));
    // A ring of 16 ranks: every second message leaves its host.
    assert_eq!(plan.flows.len(), 2 * 16 * 15 / 2);
    assert!(Plan::within(&scenario, Some(6_100_000)).is_err());
}

/// A flow of as many bytes as a number holds, beside others: a sum of them is refused where it is made.
#[test]
fn sums_of_bytes_do_not_wrap() {
    for (sizes, flows) in [("\"18446744073709551615B\"", 2), ("\"2000000TB\"", 2)] {
        let text = format!(
            "transport = \"udp\"\n[fabric.star]\nhosts = 4\n[[traffic]]\nsizes = {{ constant = {sizes} }}\n\
             arrivals = \"all_at_once\"\nflows = {flows}\n"
        );
        let problem = refused(&text, u64::MAX);
        assert_eq!(problem.key, "traffic[0].sizes", "{problem}");
        assert!(problem.message.contains("2305843009213693951 are the most"), "{problem}");
    }
}
