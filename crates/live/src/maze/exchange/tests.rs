//! The exchange of a run in three processes, of which the others say what they like.

use driver::Cut;

use super::super::desk::Event;
use super::super::notes::Order;
use super::*;

const RACKS: &str = "transport = 'dctcp'\nlive.sockets.rpc = {}\n\
                     fabric.leaf_spine = { racks = 3, hosts_per_rack = 2, spines = 1 }";

/// Hosts 0 and 1 are in the first process, 2 and 3 in the second, 4 and 5 in the third.
fn exchange() -> Exchange {
    let scenario = scenario::read(RACKS, "racks", &[]).expect("it is right");
    let plan = Plan::new(&scenario).expect("it can be planned");
    let cut = Cut::new(&plan, 3);
    let clock = Arc::new(Clock::new(1, plan.lookahead));
    let exchange = Exchange::new(&plan, clock, 3, |node| cut.part_of(node), ("process", 3, |worker| worker));
    let places: Vec<usize> = (0..6).map(|host| exchange.branches.process_of(HostId(host))).collect();
    assert_eq!(places, [0, 0, 1, 1, 2, 2]);
    exchange
}

fn at(host: u32, port: u16) -> Address {
    Address { host: HostId(host), port }
}

fn send(exchange: &Exchange, from: u32, to: u32, content: &[u8]) -> Arc<Ticket> {
    exchange.send([at(from, 9), at(to, 7)], 0, content, None).expect("there is room")
}

fn hear(exchange: &Exchange, process: usize, report: &Report) -> Result<(), String> {
    let mut note = Vec::new();
    report.emit(&mut note);
    exchange.hear(process, &note[4..])
}

fn happens(exchange: &Exchange, process: usize, ticket: &Ticket, what: Event) -> Result<(), String> {
    hear(exchange, process, &Report::Happened { flow: ticket.flow, what })
}

/// What a process was told since the last time: the place of each flow and the bytes that came with it, and "go".
fn told(exchange: &Exchange, process: usize) -> Vec<String> {
    let notes = exchange.branches.outbox(process).expect("a process").clear();
    let words = |note: Vec<u8>| match Order::parse(&note[4..]).expect("an order") {
        Order::Flow { place, content, .. } => format!("{place}: {}", content.len()),
        Order::Go { count } => format!("go {count}"),
        Order::Wake { of, at } => format!("wake {} {}", of.host.0, at.ps()),
        Order::Forget { of, at } => format!("forget {} {}", of.host.0, at.ps()),
    };
    notes.into_iter().map(words).collect()
}

fn started(exchange: &Exchange) -> Vec<u32> {
    exchange.inlets[0].take().into_iter().map(|outgoing| outgoing.flow.0).collect()
}

fn why(ticket: &Ticket) -> String {
    ticket.state().failure.map(|failure| format!("{failure:?}")).unwrap_or_default()
}

#[test]
fn a_message_starts_when_all_processes_know_it() {
    let exchange = exchange();
    let knows = |process, count| hear(&exchange, process, &Report::Knows { count }).unwrap();
    send(&exchange, 0, 2, b"one");
    send(&exchange, 3, 1, b"four");
    send(&exchange, 1, 5, b"");
    assert_eq!(told(&exchange, 1), ["0: 0", "1: 12", "2: 0"]);
    assert_eq!(told(&exchange, 2), ["0: 0", "1: 0", "2: 0"]);
    knows(1, 3);
    assert!(started(&exchange).is_empty() && told(&exchange, 1).is_empty());
    knows(2, 1);
    assert_eq!((started(&exchange), told(&exchange, 1)), (vec![0], vec!["go 1".to_owned()]));
    knows(2, 2);
    assert_eq!((started(&exchange), told(&exchange, 1)), (vec![], vec!["go 2".to_owned()]));
    knows(2, 3);
    assert_eq!((started(&exchange), told(&exchange, 1)), (vec![2], vec![]));
    assert!(told(&exchange, 2).is_empty(), "it has sent nothing");
}

/// The two hosts of a message may be in two processes, which are heard in any order.
#[test]
fn a_message_is_delivered_when_it_is_known_when_it_started() {
    let exchange = exchange();
    let (_, mailbox) = exchange.open_port(HostId(5), Some(7), None).unwrap();
    let ticket = send(&exchange, 2, 5, b"hello");
    let event = |process, what| happens(&exchange, process, &ticket, what).unwrap();
    event(2, Event::Delivered { at: Time::from_ps(30), ports: (9, 7), content: b"hello".to_vec() });
    let message = mailbox.take(None).unwrap().unwrap().message;
    assert_eq!((message.content, message.from, message.to), (b"hello".to_vec(), at(2, 9), at(5, 7)));
    assert_eq!(ticket.state().delivered, None);
    event(1, Event::Started(Time::from_ps(10)));
    let state = ticket.state();
    assert_eq!((state.started, state.delivered), (Some(Time::from_ps(10)), Some(Time::from_ps(30))));
    assert_eq!(exchange.settle(Span::ZERO), 1);
    event(1, Event::Completed(Time::from_ps(40)));
    assert_eq!(exchange.settle(Span::ZERO), 0);
}

#[test]
fn a_hostile_process_can_say_nothing_of_others_hosts() {
    let exchange = exchange();
    let (_, mailbox) = exchange.open_port(HostId(2), Some(7), None).unwrap();
    let (here, there) = (send(&exchange, 0, 2, b"hello"), send(&exchange, 2, 4, b"back"));
    let now = Time::from_ps(5);
    let delivered = |content: &[u8]| Event::Delivered { at: now, ports: (9, 7), content: content.to_vec() };
    let unknown = Report::Happened { flow: FlowId(2), what: Event::Damaged };
    let outside = Report::Happened { flow: FlowId(u32::MAX), what: Event::Forgotten };
    for (process, report, said) in [
        (1, unknown, "no message with flow 2"),
        (1, outside, "no message with flow"),
        (1, Report::Knows { count: 3 }, "flows that there are not"),
        (1, Report::Knows { count: u64::MAX }, "flows that there are not"),
        (0, Report::Knows { count: 1 }, "the first process"),
        (1, Report::Passed { of: at(6, 7), at: now }, "no host 6"),
    ] {
        let error = hear(&exchange, process, &report).expect_err(said);
        assert!(error.contains(said), "{error}");
    }
    // It may neither send for another's host nor receive for it.
    for (process, ticket, what, said) in [
        (1, &here, Event::Started(now), "host0 is in another process"),
        (1, &here, Event::Forgotten, "host0 is in another process"),
        (2, &here, delivered(b"hello"), "host2 is in another process"),
        (2, &there, Event::GivenUp { is_rejected: false, reason: "no".into() }, "host2 is in another process"),
        (1, &there, delivered(b"back"), "host4 is in another process"),
        (1, &here, delivered(b"longer than it was"), "has 5 bytes"),
    ] {
        let error = happens(&exchange, process, ticket, what).expect_err(said);
        assert!(error.contains(said), "{error}");
    }
    assert!(exchange.hear(1, b"").is_err() && exchange.hear(1, b"\x07").is_err());
    let states = [&here, &there].map(|ticket| ticket.state());
    assert!(states.iter().all(|state| format!("{state:?}") == format!("{:?}", State::default())));
    // What it may say it says once.
    happens(&exchange, 1, &here, delivered(b"HELLO")).unwrap();
    let error = happens(&exchange, 1, &here, delivered(b"hello")).expect_err("it came twice");
    assert!(error.contains("came twice"), "{error}");
    assert_eq!(mailbox.clear().len(), 1);
    // A count that goes back.
    hear(&exchange, 1, &Report::Knows { count: 2 }).unwrap();
    assert!(hear(&exchange, 1, &Report::Knows { count: 1 }).is_err());
    // Memory is given back once.
    happens(&exchange, 1, &there, Event::Forgotten).unwrap();
    happens(&exchange, 1, &there, Event::Forgotten).unwrap();
    there.account.iter().for_each(|account| account.hold_more(0));
}

#[test]
fn a_process_that_is_lost_takes_its_hosts_with_it() {
    let exchange = exchange();
    let (_, mailbox) = exchange.open_port(HostId(4), Some(7), None).unwrap();
    let (soon, later) = (Time::from_ps(10), Time::from_ps(1_000));
    exchange.set_alarm(at(4, 7), soon, &mailbox);
    exchange.set_alarm(at(4, 7), later, &mailbox);
    exchange.forget_alarm(at(4, 7), Time::from_ps(7));
    assert_eq!(told(&exchange, 2), ["wake 4 10", "wake 4 1000", "forget 4 7"]);
    hear(&exchange, 1, &Report::Passed { of: at(4, 7), at: soon }).unwrap();
    assert!(mailbox.take_before(soon, at(4, 7), Some(Span::ZERO)).is_none(), "it is no host of that process");
    hear(&exchange, 2, &Report::Passed { of: at(4, 7), at: soon }).unwrap();
    assert!(matches!(mailbox.take_before(soon, at(4, 7), Some(Span::ZERO)), Some(Ok(None))));
    let (to, from, other) =
        (send(&exchange, 0, 5, b"to"), send(&exchange, 4, 2, b"from"), send(&exchange, 0, 2, b"on"));
    hear(&exchange, 1, &Report::Knows { count: 3 }).unwrap();
    assert!(started(&exchange).is_empty());
    exchange.lose_process(2, "it has ended");
    exchange.lose_process(2, "it is said again");
    assert_eq!(
        why(&to),
        "Undelivered(\"host5 is lost with process 2 of the run: it has ended; send the message from and \
                          to other hosts\")"
    );
    assert!(why(&from).contains("host4 is lost") && why(&other).is_empty());
    // It is not waited for any more, and what can't come is not sent.
    assert_eq!(started(&exchange), [2]);
    let late = send(&exchange, 5, 0, b"late");
    assert!(why(&late).contains("host5 is lost"));
    hear(&exchange, 1, &Report::Knows { count: 4 }).unwrap();
    assert!(started(&exchange).is_empty());
    let wrong = exchange.open_port(HostId(5), None, None).expect_err("it is lost");
    assert!(matches!(wrong, MazeError::Wrong(why) if why.contains("host5 is lost with process 2")));
    // The network comes to the times for which programs wait there, by a worker that lives.
    assert_eq!(exchange.inlets[0].alarms.first(), later);
    exchange.inlets[0].alarms.ring(later, |of, at, mailbox| exchange.passed(of, at, mailbox));
    assert!(matches!(mailbox.take_before(later, at(4, 7), Some(Span::ZERO)), Some(Ok(None))));
    exchange.set_alarm(at(4, 7), later, &mailbox);
    assert_eq!(exchange.inlets[0].alarms.first(), later);
    // Of four messages the memory of one is held.
    assert_eq!(exchange.settle(Span::ZERO), 1);
    assert_eq!(*lock(&exchange.own.held), 514);
}
