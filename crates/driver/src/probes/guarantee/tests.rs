use super::*;
use crate::testing::{self, Memory};
use crate::{Driver, Probes};
use contract::Guarantee;
use run::Reserved;

/// Four hosts send 150 full packets each to host 0 at once, at line rate; so much is guaranteed of every link.
struct Incast {
    plan: Plan,
    parts: Vec<Driver<Memory, Probes>>,
}

fn incast(settings: &str, threads: usize, queue_bytes: u64, wait: Duration) -> Incast {
    incast_of_class(0, settings, threads, queue_bytes, wait)
}

fn incast_of_class(class: u8, settings: &str, threads: usize, queue_bytes: u64, wait: Duration) -> Incast {
    let text = format!(
        r#"
        timing = "ideal"
        transport = {{ udp = {{ class = {class} }} }}
        {settings}
        [[traffic]]
        sizes.constant = "219KB"
        arrivals = "all_at_once"
        pattern.incast.degree = 4
        receivers = "0"
        flows = 4
        "#
    );
    let mut plan = Plan::new(&scenario::read(&text, "scene.toml", &[]).unwrap()).unwrap();
    let queue_bytes = vec![queue_bytes; plan.fabric.links.len()];
    let guarantee = Guarantee { class: 0, room_bytes: queue_bytes.clone(), queue_bytes, wait, proven: true };
    plan.reserved = Some(Reserved { transport: 0, classes: 2, guarantee: Some(guarantee) });
    let parts = testing::run(&plan, threads, || Probes::new(&plan));
    Incast { plan, parts }
}

impl Incast {
    fn whole(&self) -> Whole<'_> {
        testing::whole(&self.plan, &self.parts)
    }

    fn probes(&self) -> Vec<&Probes> {
        self.parts.iter().map(|part| &part.probe).collect()
    }

    fn findings(&self) -> Vec<Finding> {
        Probes::findings(&self.probes(), &self.whole())
    }

    fn ok(&self) -> Vec<bool> {
        self.findings().iter().map(|finding| finding.ok).collect()
    }

    fn column(&self, table: &str, column: &str) -> Vec<u64> {
        let tables = Probes::tables(&self.probes(), &self.whole());
        let table = tables.iter().find(|known| known.name == table).unwrap();
        match &table.column(column).unwrap().data {
            Data::U64(values) => values.clone(),
            _ => panic!("{column} is no count"),
        }
    }
}

const STAR: &str = "fabric.star.hosts = 5\nswitch.buffer.per_port.bytes = '1MB'";

/// Of the 600 packets that have come by the time that the last four do, 150 have begun to leave: the last of all waits
/// for what remains of 450 (and the link is at the beginning of one).
const QUEUE_BYTES: u64 = 450 * 1_500;
const WAIT: Duration = Duration::from_ps(450 * 120_000);

#[test]
fn the_most_that_waits_is_found_to_the_byte_and_the_longest_wait_to_the_picosecond() {
    let incast = incast(STAR, 1, QUEUE_BYTES, WAIT);
    assert_eq!(incast.ok(), [true; 3], "{:?}", incast.findings());
    let most = incast.column("guarantees", "queue_max_bytes");
    assert_eq!(most, [QUEUE_BYTES, 0, 0, 0, 0]);
    let waits = incast.column("guaranteed_waits", "wait_ps");
    assert_eq!(waits.last(), Some(&WAIT.ps()));
    assert!(waits.is_sorted());
    let watches: Vec<&Watch> = incast.probes().into_iter().filter_map(|probes| probes.guarantee.as_deref()).collect();
    let Seen { waits, .. } = Seen::gather(&watches).unwrap();
    assert_eq!(waits.len(), 600);
    // The first waits for nothing, and the queue grows and shrinks at an even pace from there.
    assert_eq!(waits.min(), 0);
    let half = waits.value_at_quantile(0.5) as f64;
    assert!((half / (WAIT.ps() as f64 / 2.0) - 1.0).abs() < 0.01, "{half}");
}

#[test]
fn a_byte_and_a_picosecond_more_are_breaches() {
    let less = incast(STAR, 1, QUEUE_BYTES - 1, WAIT - Duration::from_ps(1));
    assert_eq!(less.ok(), [false, false, true]);
    let [queues, waits, _] = &less.findings()[..] else { panic!("three findings") };
    // All of the last four were there at the end of their transmission and the propagation and processing of two hops'
    // first.
    for words in ["675000B of 674999B", "; above the bound 1 times", "switch0 to host0"] {
        assert!(queues.detail.contains(words), "{words} is not in {}", queues.detail);
    }
    for words in ["54us of", "600 data packets", "; 1 waited longer", "to host 0"] {
        assert!(waits.detail.contains(words), "{words} is not in {}", waits.detail);
    }
}

#[test]
fn what_finds_no_room_is_a_breach_and_what_fails_with_a_link_is_none() {
    let full = incast("fabric.star.hosts = 5\nswitch.buffer.per_port.bytes = '30KB'", 1, QUEUE_BYTES, WAIT);
    assert_eq!(full.ok(), [true, true, false]);
    let dead = format!("{STAR}\nfailure = [{{ at = '10us', link = ['switch0', 'host0'] }}]");
    assert_eq!(incast(&dead, 1, QUEUE_BYTES, WAIT).ok(), [true; 3]);
}

/// Class 0 is guaranteed. Class 1 is for signals, of which there may be more than the buffer that is reserved for them.
#[test]
fn signals_that_find_no_room_are_counted_and_are_no_breach() {
    let full = incast_of_class(1, "fabric.star.hosts = 5\nswitch.buffer.per_port.bytes = '30KB'", 1, QUEUE_BYTES, WAIT);
    let findings = full.findings();
    let [_, _, losses] = &findings[..] else { panic!("three findings") };
    let words = "0 packets were lost, and 600 signals";
    assert!(losses.ok && losses.detail.starts_with(words), "{}", losses.detail);
}

#[test]
fn parts_see_together_what_one_sees_alone() {
    let fat_tree = "fabric.fat_tree.k = 4\nswitch.buffer.per_port.bytes = '1MB'";
    let (one, two) = (incast(fat_tree, 1, 100_000, WAIT), incast(fat_tree, 2, 100_000, WAIT));
    assert_eq!(one.findings(), two.findings());
    assert!(!one.ok()[0]);
    for (table, column) in [("guarantees", "queue_max_bytes"), ("guaranteed_waits", "wait_ps")] {
        assert_eq!(one.column(table, column), two.column(table, column));
    }
}
