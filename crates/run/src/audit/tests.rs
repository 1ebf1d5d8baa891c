use super::{Ending, Left, ends};
use crate::{FlowEvent, FlowInfo, FlowRecord, FlowTable, Flows, Unlisted};
use units::{FlowId, HostId, Time};

const SAID: Ending = Ending::TimeUp { said: true };
const NOT_SAID: Ending = Ending::TimeUp { said: false };

/// Two flows: the first as these events left it, the second never began.
fn flows(events: &[FlowEvent]) -> Flows {
    let records: Vec<FlowRecord> = (1..)
        .map(Time::from_ns)
        .zip(events)
        .map(|(at, &fate)| FlowRecord { flow: FlowId(0), at, due: at, fate })
        .collect();
    Flows::gather(&table(2), Unlisted::default(), records.iter())
}

fn table(count: usize) -> FlowTable {
    let (start, after) = (Time::ZERO, None);
    let flow = FlowInfo { src: HostId(0), dst: HostId(1), bytes: 1, start, after, class: 0, transport: 0 };
    FlowTable::new(vec![flow; count], 2)
}

#[test]
fn nothing_under_way_is_no_cut_whoever_ended_the_run() {
    // A message was given up, and what waits for it never begins.
    let stuck = flows(&[FlowEvent::Started, FlowEvent::Failed("no answer")]);
    let timers = Left { events: true, starts: false, job_parts: 1 };
    for ending in [SAID, NOT_SAID, Ending::Itself] {
        let finding = ends(&stuck, timers, ending);
        assert!(!finding.ok && finding.detail.contains("no event is left"), "{ending:?}: {finding:?}");
    }
    assert!(ends(&stuck, timers, Ending::Stopped).ok);
}

#[test]
fn an_end_that_is_set_cuts_off_what_is_under_way() {
    let under_way = flows(&[FlowEvent::Started]);
    let packets = Left { events: true, starts: false, job_parts: 0 };
    assert!(ends(&under_way, packets, SAID).ok);
    assert!(ends(&under_way, packets, NOT_SAID).ok);
    assert!(!ends(&under_way, packets, Ending::Itself).ok);
    // Its packets are gone, and no host has a timer.
    let nothing = Left { events: false, ..packets };
    assert!(!ends(&under_way, nothing, SAID).ok);
    // The other has not come to its start.
    let to_come = Left { starts: true, ..nothing };
    assert!(ends(&under_way, to_come, SAID).ok);
}

#[test]
fn a_job_has_ended_when_its_ranks_have() {
    let under_way = flows(&[FlowEvent::Started]);
    let ranks = Left { events: true, starts: true, job_parts: 2 };
    assert!(ends(&under_way, ranks, SAID).ok);
    let finding = ends(&under_way, ranks, NOT_SAID);
    assert!(!finding.ok && finding.detail.contains("a day") && finding.detail.contains("2 hosts"), "{finding:?}");
    // All its messages were given up, and the ranks wait for ever.
    let given_up = Flows::gather(&table(0), Unlisted::default(), std::iter::empty());
    assert!(!ends(&given_up, Left { events: true, starts: false, job_parts: 2 }, SAID).ok);
}
