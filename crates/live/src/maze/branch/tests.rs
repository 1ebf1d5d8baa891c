//! A branch obeys, and refuses what the first process can't say.

use super::super::wire::{NOTE_BYTES_MAX, read};
use super::*;

const RACKS: &str = "transport = 'dctcp'\nlive.sockets.rpc = {}\n\
                     fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 1 }";

/// Of the second of two processes, which has hosts 2 and 3.
fn branch() -> (Plan, Branch) {
    let scenario = scenario::read(RACKS, "racks", &[]).expect("it is right");
    let plan = Plan::new(&scenario).expect("it can be planned");
    let cut = Cut::new(&plan, 2);
    let branch = Branch::new(&plan, &cut, 1..2);
    assert_eq!(branch.worker_of, [0, 0, 1, 1]);
    (plan, branch)
}

fn note(order: &Order<'_>) -> Vec<u8> {
    let (mut out, mut note) = (Vec::new(), Vec::new());
    order.emit(&mut out);
    read(&mut &out[..], NOTE_BYTES_MAX, &mut note, || ()).expect("a note");
    note
}

fn flow(place: u64, src: u32, dst: u32, class: u16, bytes: u64, content: &[u8]) -> Order<'_> {
    Order::Flow { place, src: HostId(src), dst: HostId(dst), class, bytes, content }
}

/// What it has reported since the last time.
fn reports(branch: &Branch) -> Vec<Report> {
    let read = |out: Vec<u8>| Report::parse(&out[4..]).expect("a report");
    branch.outbox.clear().into_iter().map(read).collect()
}

#[test]
fn a_message_starts_when_it_is_told_that_all_know_it() {
    let (plan, branch) = branch();
    let obey = |order: Order<'_>, more| branch.obey(&note(&order), more);
    obey(flow(0, 0, 3, 0, 100, b""), true).unwrap();
    obey(flow(1, 2, 1, 0, 12, b"with content"), true).unwrap();
    assert_eq!(reports(&branch), [], "more is to come");
    obey(flow(2, 3, 0, 0, 8, b"an empty"), false).unwrap();
    assert_eq!(reports(&branch), [Report::Knows { count: 3 }]);
    let flows: Vec<(u32, u32, u64)> = plan.flows.iter().map(|flow| (flow.src.0, flow.dst.0, flow.bytes)).collect();
    assert_eq!(flows, [(0, 3, 100), (2, 1, 12), (3, 0, 8)]);
    let inlet = branch.inlet(1);
    assert!(!inlet.has_mail());
    obey(Order::Go { count: 2 }, false).unwrap();
    assert!(inlet.has_mail());
    let sent: Vec<(u32, Vec<u8>)> = inlet.take().into_iter().map(|of| (of.flow.0, of.bytes)).collect();
    assert_eq!(sent, [(1, b"with content".to_vec())]);
    obey(Order::Go { count: 3 }, false).unwrap();
    assert_eq!(inlet.take().len(), 1);
    assert_eq!(reports(&branch), [], "nothing new is known");
}

#[test]
fn a_time_is_told_when_its_worker_has_come_to_it() {
    let (_, branch) = branch();
    let (of, at) = (Address { host: HostId(3), port: 7 }, Time::from_ps(100));
    branch.obey(&note(&Order::Wake { of, at }), false).unwrap();
    branch.obey(&note(&Order::Wake { of, at: Time::from_ps(90) }), false).unwrap();
    branch.obey(&note(&Order::Forget { of, at: Time::from_ps(90) }), false).unwrap();
    let inlet = branch.inlet(1);
    assert_eq!(inlet.alarms.first(), at);
    inlet.alarms.ring(at, |of, at, mailbox| branch.passed(of, at, mailbox));
    assert_eq!(reports(&branch), [Report::Passed { of, at }]);
}

#[test]
fn what_can_not_be_is_refused() {
    let (plan, branch) = branch();
    let at = Time::from_ps(1);
    let wrong = [
        (flow(1, 0, 3, 0, 100, b""), "flow 0 is the next"),
        (flow(0, 0, 0, 0, 100, b""), "from host 0 to host 0"),
        (flow(0, 0, 4, 0, 100, b""), "there are 4"),
        (flow(0, 1 << 30, 1, 0, 100, b""), "there are 4"),
        (flow(0, 0, 3, 1, 100, b""), "no class 1"),
        (flow(0, 2, 0, 0, 7, b""), "of 7 bytes"),
        (flow(0, 2, 0, 0, 100, b"too little"), "10 bytes of content"),
        (flow(0, 0, 2, 0, 8, b"not mine"), "from host 0"),
        (Order::Go { count: 1 }, "0 are known"),
        (Order::Wake { of: Address { host: HostId(0), port: 1 }, at }, "not in this process"),
        (Order::Wake { of: Address { host: HostId(9), port: 1 }, at }, "not in this process"),
        (Order::Forget { of: Address { host: HostId(1), port: 1 }, at }, "not in this process"),
    ];
    for (order, said) in wrong {
        let error = branch.obey(&note(&order), false).expect_err(said);
        assert!(error.contains(said), "{error}");
    }
    assert!(branch.obey(b"", false).is_err() && branch.obey(b"\x63", false).is_err());
    assert_eq!((plan.flows.len(), reports(&branch).len()), (0, 0));
}
