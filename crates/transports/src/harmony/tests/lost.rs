//! Each kind of control packet is lost, once and for a while.

use node::packet::flags;
use proptest::prelude::*;
use testing::PacketFate;

use super::*;

/// A message of eight slots that loses one packet of data.
fn failing(lost: impl Fn(Header) -> bool + 'static, which: std::ops::Range<usize>) -> Scene {
    let mut scene = scene(2, slots(8));
    let (mut seen, mut of_data) = (0, 0);
    scene.spoil(move |_, packet| {
        let header: Header = packet.header();
        of_data += usize::from(is_data(header));
        let hit = lost(header);
        seen += usize::from(hit);
        let spoilt = hit && which.contains(&(seen - 1)) || is_data(header) && of_data == 60;
        if spoilt { PacketFate::Drop } else { PacketFate::Pass }
    });
    scene.send(Time::ZERO, 0, 1, packets(800));
    scene.run_until(Time::from_ms(2));
    scene
}

fn is_failure(header: Header) -> bool {
    matches!(header, Header::Failure(_))
}

fn is_request(header: Header) -> bool {
    matches!(header, Header::Request { .. })
}

fn completed(scene: &Scene) -> Time {
    let [(at, Event::Completed { .. })] = ends(scene)[..] else { panic!("{:?}", ends(scene)) };
    at
}

#[test]
fn a_lost_failure_is_told_again_over_a_slot_that_delivers() {
    let reaction = Bounds::new(&slots(8), &network(&site())).reaction();
    let told = completed(&failing(|_| false, 0..0));
    for times in [1, 2, 3] {
        let scene = failing(is_failure, 0..times);
        let failures = sent!(scene, Header::Failure(of) => of);
        let at: Vec<Time> = failures.iter().map(|of| of.0).collect();
        assert_eq!(at.len(), times + 1);
        assert!(at.windows(2).all(|pair| pair[1].since(pair[0]) == reaction), "{at:?} for {reaction}");
        // It reserves and frees nothing on its way.
        assert!(failures.iter().all(|of| of.1.flags == flags::SOURCE_ROUTED && of.1.label == of.1.label & 0xFF));
        // The packets that the attempt sends meanwhile arrive: only the time until the rest is sent again is lost.
        assert!(completed(&scene) <= told + reaction * times as u64 + PERIOD, "{} for {told}", completed(&scene));
        assert_eq!(count(&scene, 1, "failures_repeated"), times as u64);
        assert_eq!((count(&scene, 0, "busy_at_end"), count(&scene, 1, "busy_at_end")), (0, 0));
    }
}

#[test]
fn a_lost_request_after_a_failure_is_sent_again_when_the_failure_is_told_again() {
    let bounds = Bounds::new(&slots(8), &network(&site()));
    let told = completed(&failing(|_| false, 0..0));
    let scene = failing(is_request, 1..2);
    let requests = sent!(scene, Header::Request { .. });
    // It went with the data at first.
    assert_eq!(requests.iter().map(|of| of.1.flags).collect::<Vec<_>>(), [0, flags::SOURCE_ROUTED, 0]);
    assert!(completed(&scene) <= told + bounds.reaction() * 2, "{} for {told}", completed(&scene));
    assert!(bounds.reaction() * 2 < bounds.answer());
    // Many are lost: they are no further attempts, and the message doesn't fail.
    let scene = failing(is_request, 1..4);
    assert!(completed(&scene) > told);
    assert_eq!(count(&scene, 0, "attempts_failed"), 1);
}

#[test]
fn a_failure_is_told_more_and_more_seldom_where_no_data_come() {
    let mut scene = scene(2, slots(8));
    let mut of_data = 0;
    scene.spoil(move |_, packet| {
        of_data += usize::from(is_data(packet.header()));
        let dead = of_data > 100 && packet.src == HostId(0) || is_failure(packet.header());
        if dead { PacketFate::Drop } else { PacketFate::Pass }
    });
    scene.send(Time::ZERO, 0, 1, packets(800));
    scene.run_until(Time::from_ms(2));
    let failures = sent!(scene, Header::Failure(of) => of);
    let tables: Vec<Time> = failures.iter().filter(|of| of.1.flags == 0).map(|of| of.0).collect();
    let gaps: Vec<u64> = tables.windows(2).map(|pair| pair[1].since(pair[0]).ps()).collect();
    assert!(gaps.len() > 2 && gaps.windows(2).all(|pair| pair[1] == pair[0] * 2), "{gaps:?}");
}

type Kind = (&'static str, fn(Header) -> bool);

const KINDS: [Kind; 6] = [
    ("request", is_request),
    ("rsvp", |header| matches!(header, Header::Rsvp(_))),
    ("complete", |header| matches!(header, Header::Complete { .. })),
    ("delivered", |header| header == Header::Delivered),
    ("reject", |header| matches!(header, Header::Reject { .. })),
    ("failure", is_failure),
];

/// Which packets of a kind are lost, and how many have come up.
struct Fate {
    kind: fn(Header) -> bool,
    lost: std::ops::Range<usize>,
    seen: usize,
}

impl Fate {
    fn hits(&mut self, header: Header) -> bool {
        let hit = (self.kind)(header);
        self.seen += usize::from(hit);
        hit && self.lost.contains(&(self.seen - 1))
    }
}

/// A switch whose own rejects may be lost, too.
#[derive(node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct Losing(Watched, Arc<Mutex<Fate>>);

impl SwitchAgent for Losing {
    fn handle(&mut self, cx: &mut AgentCx<'_>, in_port: PortId, packet: &mut Packet) -> Option<PortId> {
        let came: Header = packet.header();
        let out = self.0.handle(cx, in_port, packet);
        let refused = matches!(came, Header::Rsvp(_)) && matches!(packet.header(), Header::Reject { .. });
        out.filter(|_| !refused || !self.1.lock().unwrap().hits(packet.header()))
    }
}

fn crowded() -> Config {
    Config { delta_admission: Duration::from_us(400), ..slots(2) }
}

/// Messages of two senders to three receivers with fewer slots than they want, and one packet of data is lost. Those of
/// a kind that are `lost` are lost. Returns how many came up.
fn crowd(kind: fn(Header) -> bool, lost: std::ops::Range<usize>) -> (Scene, usize) {
    let fate = Arc::new(Mutex::new(Fate { kind, lost, seen: 0 }));
    let (scene, part) = watched(&[Clock::default(); 5], &crowded());
    let mut scene = scene.with_agent(Box::new(Losing(Watched(part.clone()), fate.clone())));
    let (of_hosts, mut of_data) = (fate.clone(), 0);
    scene.spoil(move |_, packet| {
        let header: Header = packet.header();
        of_data += usize::from(is_data(header));
        let spoilt = of_hosts.lock().unwrap().hits(header) || of_data == 150 && is_data(header);
        if spoilt { PacketFate::Drop } else { PacketFate::Pass }
    });
    for (at, src, dst) in [(0, 0, 2), (0, 0, 3), (1, 0, 4), (2, 1, 2), (3, 1, 3), (40, 1, 4), (90, 0, 2)] {
        scene.send(Time::from_us(at), src, dst, packets(100));
    }
    scene.run_until(Time::from_ms(20));
    for host in 0..5 {
        assert_eq!(count(&scene, host, "busy_at_end"), 0);
    }
    assert!(part.lock().unwrap().held(Time::from_ms(20)).all(|(held, _)| held == 0));
    let seen = fate.lock().unwrap().seen;
    (scene, seen)
}

fn last_end(scene: &Scene) -> Time {
    let completed = ends(scene).iter().filter(|end| matches!(end.1, Event::Completed { .. })).count();
    assert_eq!(completed, 7, "{:?}", ends(scene));
    ends(scene).iter().map(|end| end.0).max().unwrap()
}

#[test]
fn a_control_packet_of_any_kind_that_is_lost_costs_a_bounded_time() {
    let bounds = Bounds::new(&crowded(), &network(&site()));
    let (undisturbed, _) = crowd(|_| false, 0..0);
    let undisturbed = last_end(&undisturbed);
    for (name, kind) in KINDS {
        let came = crowd(kind, 0..0).1;
        assert!(came > 0, "no {name}");
        for lost in 0..came {
            let end = last_end(&crowd(kind, lost..lost + 1).0);
            // A request waits for an answer; whatever else is lost is noticed by a host that expects it, and at most a
            // whole message is sent again.
            let most = bounds.answer() + bounds.hold(packets(100));
            assert!(end <= undisturbed + most, "{name} {lost}: {end} for {undisturbed} and {most}");
        }
    }
}

#[test]
fn a_lost_refusal_is_asked_for_again() {
    let mut scene = busy_receiver(Clock::default(), &slots(2), 1);
    lose(&mut scene, |header| matches!(header, Header::Refusal { conclusive: true, .. }), 0..1);
    scene.run_until(Time::from_us(200));
    // The sender asks when no answer can come any more, and waits anew.
    let [(at, event)] = ends(&scene)[..] else { panic!("{:?}", ends(&scene)) };
    let answer = Bounds::new(&slots(2), &network(&site())).answer();
    assert_eq!(event, Event::Rejected { flow: FlowId(2) });
    let expected = Time::from_us(1) + answer + CONTROL + Duration::from_us(63) + CONTROL;
    assert!(at >= expected && at < expected + PACKET * 2, "{at} for {expected}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..Default::default() })]

    #[test]
    fn any_control_packets_of_any_kind_may_be_lost(kind in 0..KINDS.len(), first in 0usize..30, many in 1usize..3) {
        last_end(&crowd(KINDS[kind].1, first..first + many).0);
    }
}
