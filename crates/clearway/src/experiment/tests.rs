use super::*;

fn tiny() -> Scenario {
    Scenario::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tiny.toml")).expect("it is an example")
}

#[test]
fn a_run_from_rust_has_the_digest_that_the_simulator_gives() {
    let read = tiny().source.read().expect("it is right");
    let whole = sim::run(&read, 1, |_| false).expect("it runs");
    let run = tiny().on_threads(2).run(Level::Packet).expect("it runs");
    assert_eq!(run.digest, whole.info.digest);
    assert!(run.ok() && run.flows().count() == whole.info.flows as usize);
    let links = run.table("links").expect("every run has links");
    assert!(
        links.numbers("tier").is_none() && links.texts("sent_bytes").is_none() && links.floats("nothing").is_none()
    );
    assert_eq!(links.texts("from_node").expect("names").next(), Some("host0"));
}

#[test]
fn each_level_runs_and_what_is_set_is_run() {
    for level in [Level::Packet, Level::Flow, Level::Links] {
        let run = tiny().with("traffic.0.sizes.constant", "5KB").run(level).expect("it runs");
        assert!(run.flows().all(|flow| flow.bytes == 5_000 && flow.fct.is_some() && flow.status == "completed"));
    }
    let seeded = tiny().with("seed", 2);
    assert!(seeded.to_toml().expect("it is right").contains("seed = 2") && seeded.check().expect("it is right") > 0);
}

#[test]
fn errors_name_the_key() {
    let wrong = tiny().with("fabric.star.hosts", "many").run(Level::Packet).expect_err("no number");
    assert!(wrong.to_string().contains("fabric.star.hosts"), "{wrong}");
    assert!(Scenario::parse("seeed = 1").expect_err("no key").message.contains("did you mean"));
    let stopped = tiny().run_watched(Level::Packet, |_| true).expect("it runs");
    assert!(!stopped.ok() && stopped.info["ended"] == "interrupted");
}
