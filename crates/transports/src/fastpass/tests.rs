//! Scenes of hosts and their arbiter on a virtual wire; host 0 has it.

use fabric::{FabricSpec, Quotient};
use node::{Clock, EndpointParams, Event, Header as _, Packet};
use testing::{PacketFate, Scene, Wire};
use units::{Duration, FlowId, HostId, Time};

use super::*;

/// A network as a plan describes it.
pub(super) fn network(spec: FabricSpec) -> NetworkView {
    let fabric = spec.build().expect("a sound fabric");
    let quotient = Quotient::new(&fabric);
    let data_rtts: Vec<(u8, Duration)> =
        fabric.max_rtts(&quotient, 1500, 40).into_iter().map(|(switches, rtt)| (switches as u8, rtt)).collect();
    let site = EndpointParams {
        host: HostId(0),
        hosts: fabric.hosts,
        nic_rate: fabric.host_rate(HostId(0)),
        data_rtt: fabric.max_rtt(&quotient, 1500, 40),
        data_rtts,
        control_rtt: fabric.max_rtt(&quotient, 40, 40),
        mtu_bytes: 1500,
        header_bytes: 40,
        clock: Clock::default(),
        transport: 0,
    };
    NetworkView::new(fabric, &site)
}

fn scene(hosts: u32, config: Config) -> Scene {
    Scene::new(hosts, Wire::default(), move |site| config.endpoint(site, &NetworkView::star(site)))
}

const fn packets(count: u64) -> u64 {
    count * 1460
}

/// A slot at 100 Gbps: 120 ns and 1% for control.
const SLOT: Duration = Duration::from_ps(121_213);
/// A control packet over the wire.
const CONTROL_WAY: Duration = Duration::from_ps(2_500_000 + 2 * 3_200);
/// From a decision to its slot: the control packet's way and nine slots of slack.
const LEAD: Duration = Duration::from_ps(2_506_400 + 9 * 121_213);

/// When the slot begins that a request gets that comes to the arbiter at `at` and finds all free.
fn first_slot(at: Time) -> Time {
    Time::from_ps((at + LEAD).ps().next_multiple_of(SLOT.ps()))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Request,
    Allocation,
    Data,
    Complete,
    Other,
}

fn kind(packet: &Packet) -> Kind {
    match packet.header() {
        Header::Request(_) => Kind::Request,
        Header::Allocation(_) => Kind::Allocation,
        Header::Data(_) => Kind::Data,
        Header::Complete { .. } => Kind::Complete,
        _ => Kind::Other,
    }
}

fn of_kind(scene: &Scene, of: Kind) -> Vec<(Time, Packet)> {
    scene.sent.iter().filter(|sent| kind(&sent.1) == of).copied().collect()
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

#[test]
fn a_lone_message_takes_its_request_s_way_the_lead_and_its_slots() {
    let mut scene = scene(4, Config::default());
    let flow = scene.send(Time::ZERO, 1, 2, packets(10));
    scene.run_until(ms(1));
    let begin = first_slot(Time::ZERO + CONTROL_WAY);
    let data = of_kind(&scene, Kind::Data);
    assert_eq!(
        data.iter().map(|sent| sent.0).collect::<Vec<_>>(),
        (0..10).map(|i| begin + SLOT * i).collect::<Vec<_>>()
    );
    let delivered = begin + SLOT * 9 + Duration::from_ns(240 + 2_500);
    assert_eq!(scene.delivered_at(flow), Some(delivered));
    assert_eq!(scene.completed_at(flow), Some(delivered + CONTROL_WAY));
    // Request, allocation, completion: three control packets a message.
    assert_eq!(scene.sent.len(), 10 + 3);
}

#[test]
fn the_arbiter_s_host_sends_and_receives_too() {
    let mut scene = scene(2, Config::default());
    let (there, back) = (scene.send(Time::ZERO, 0, 1, packets(20)), scene.send(Time::ZERO, 1, 0, packets(20)));
    scene.run_until(ms(1));
    // Its own request takes no time; of each eight slots one is left out.
    let begin = first_slot(Time::ZERO);
    let first = of_kind(&scene, Kind::Data)[0].0;
    assert!(first == begin || first == begin + SLOT, "{first} and not {begin}");
    let slots: Vec<u64> = of_kind(&scene, Kind::Data)
        .iter()
        .filter(|sent| sent.1.src == HostId(0))
        .map(|sent| sent.0.ps() / SLOT.ps())
        .collect();
    assert!(slots.len() == 20 && slots.iter().all(|slot| slot % 8 > 0), "{slots:?}");
    assert!(scene.completed_at(there).is_some() && scene.completed_at(back).is_some());
}

#[test]
fn an_incast_waits_at_its_senders_and_not_in_the_switch() {
    let mut scene = scene(9, Config { delta_admission: Duration::from_ms(1), ..Config::default() });
    let flows: Vec<FlowId> = (1..8).map(|src| scene.send(Time::ZERO, src, 8, packets(50))).collect();
    scene.run_until(ms(1));
    let mut times: Vec<Time> = flows.iter().map(|&flow| scene.delivered_at(flow).unwrap()).collect();
    times.sort_unstable();
    // One after the other, without a gap.
    assert!(times.windows(2).all(|two| two[1] - two[0] == SLOT * 50), "{times:?}");
    assert!(scene.queue_bytes_peak[8] <= 1500, "{}", scene.queue_bytes_peak[8]);
}

#[test]
fn who_can_t_begin_in_time_is_rejected_and_sends_nothing() {
    let mut scene = scene(4, Config::default());
    // 800 slots are 97 us.
    let (long, refused) = (scene.send(Time::ZERO, 1, 3, packets(800)), scene.send(Time::from_ns(10), 2, 3, packets(5)));
    scene.run_until(ms(1));
    assert!(scene.completed_at(long).is_some());
    let of_refused: Vec<_> = scene.events.iter().filter(|said| said.1 == HostId(2)).collect();
    assert!(
        matches!(of_refused[..], [(at, _, Event::Rejected { flow })] if *flow == refused && *at < Time::from_us(63))
    );
    assert!(of_kind(&scene, Kind::Data).iter().all(|sent| sent.1.flow == long));
}

#[test]
fn single_packets_of_two_senders_alternate() {
    let mut scene = scene(4, Config { granularity: Granularity::Packet, ..Config::default() });
    let flows = [scene.send(Time::ZERO, 1, 3, packets(20)), scene.send(Time::ZERO, 2, 3, packets(20))];
    scene.run_until(ms(1));
    let order: Vec<HostId> = of_kind(&scene, Kind::Data).iter().map(|sent| sent.1.src).collect();
    assert!(order.len() == 40 && order.windows(2).all(|two| two[0] != two[1]), "{order:?}");
    assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some()));
}

/// The first packet of a kind is lost; when the message is complete, and how many packets were sent again.
fn complete_without_first(of: Kind) -> (Option<Time>, u64) {
    let mut scene = scene(4, Config::default());
    let mut lost = false;
    scene.spoil(move |_, packet| {
        let hit = !lost && kind(packet) == of;
        lost |= hit;
        if hit { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 1, 2, packets(10));
    scene.run_until(ms(5));
    let resent = scene.events.iter().find_map(|said| match said.2 {
        Event::Completed { resent_packets, .. } => Some(resent_packets),
        _ => None,
    });
    (scene.completed_at(flow), resent.expect("it completes"))
}

#[test]
fn whatever_is_lost_is_made_up_for() {
    for (of, resent) in [(Kind::Request, 0), (Kind::Allocation, 0), (Kind::Complete, 0), (Kind::Data, 10)] {
        let (completed, again) = complete_without_first(of);
        // A wait for the arbiter is delta_admission and some round trips at the most.
        assert!(completed < Some(Time::from_us(110)), "kind {of:?}: {completed:?}");
        assert_eq!(again, resent, "kind {of:?}");
    }
}

#[test]
fn a_dead_arbiter_fails_messages_after_their_patience() {
    let mut scene = scene(3, Config::default());
    scene.spoil(|_, packet| if packet.dst == HostId(0) { PacketFate::Drop } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 1, 2, packets(10));
    scene.run_until(ms(100));
    let failed = Event::Failed { flow, reason: "the arbiter did not answer" };
    assert_eq!(scene.events, vec![(ms(10), HostId(1), failed)]);
}

#[test]
fn a_dead_receiver_fails_messages_after_their_patience() {
    let mut scene = scene(3, Config::default());
    scene.spoil(|_, packet| if packet.dst == HostId(2) { PacketFate::Drop } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 1, 2, packets(10));
    scene.run_until(ms(100));
    let failed = Event::Failed { flow, reason: "the receiver did not acknowledge anything new" };
    let last = first_slot(Time::ZERO + CONTROL_WAY) + SLOT * 9;
    assert_eq!(scene.events, vec![(last + Duration::from_ms(10), HostId(1), failed)]);
}

#[test]
fn hosts_with_clocks_of_their_own_send_by_them() {
    let ahead = |offset_ps| Clock { offset_ps, drift_ppb: 0 };
    let config = Config { clocks: Clocks::Own, ..Config::default() };
    let clocks = [ahead(0), ahead(300_000), ahead(0)];
    let mut scene =
        Scene::with_clocks(Wire::default(), &clocks, |site| config.endpoint(site, &NetworkView::star(site)));
    scene.send(Time::ZERO, 1, 2, packets(3));
    scene.run_until(ms(1));
    let begin = of_kind(&scene, Kind::Data)[0].0;
    assert_eq!(begin + Duration::from_ns(300), first_slot(Time::ZERO + CONTROL_WAY));
    assert!(config.guarantee(&network(FabricSpec::default())).is_none());
}

#[test]
fn nothing_waits_for_more_than_what_is_being_sent() {
    let guarantee = Config::default().guarantee(&network(FabricSpec::default())).unwrap();
    // Of another transport, a full packet on a link of 100 Gbps, two of 400, and one of 100: each doubles what was.
    assert_eq!(guarantee.wait, Duration::from_ns(2 * (2 * (2 * 120 + 30) + 30) + 120));
    assert!(guarantee.queue_bytes.iter().all(|&bytes| bytes == 42 * 1500 || bytes == 11 * 1500));
    // Of its own, control packets.
    assert_eq!(lateness(&network(FabricSpec::default()), 40), Duration::from_ps(33_600));
}

#[test]
fn fabrics_that_allocations_can_t_describe_are_refused() {
    let torus =
        |dims: &[u32]| network(FabricSpec::Torus(fabric::Grid { dims: dims.to_vec(), ..fabric::Grid::default() }));
    let config = Config::default();
    assert_eq!(config.check_on(&torus(&[4, 4])), Ok(()));
    assert!(config.check_on(&torus(&[20, 4])).unwrap_err().message.contains("holds the ports of 8"));
    let star = network(FabricSpec::Star(fabric::Star { hosts: 300, ..fabric::Star::default() }));
    assert!(config.check_on(&star).unwrap_err().message.contains("300 ports"));
    let nobody = Config { arbiter: 16, ..Config::default() }.check_on(&torus(&[4, 4])).unwrap_err();
    assert_eq!(nobody.key, "arbiter");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 40, ..Default::default() })]

    /// Whatever befalls packets for a while: each message ends once, is delivered once at most, and if it was rejected
    /// not at all.
    #[test]
    fn each_message_ends_once(
        seed: u64,
        by_packet: bool,
        delta_us in 5u64..200,
        sizes in proptest::collection::vec((1u64..60_000, 0u32..4, 1u32..4, 0u64..100), 1..12),
    ) {
        let granularity = if by_packet { Granularity::Packet } else { Granularity::Message };
        let delta_admission = Duration::from_us(delta_us);
        let mut scene = scene(4, Config { granularity, delta_admission, ..Config::default() });
        let mut state = seed | 1;
        scene.spoil(move |now, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match state >> 59 {
                0 | 1 if now < ms(2) => PacketFate::Drop,
                2 if now < ms(2) => PacketFate::Delay(Duration::from_us(state >> 40 & 63)),
                3 if now < ms(2) => PacketFate::Duplicate,
                _ => PacketFate::Pass,
            }
        });
        let flows: Vec<FlowId> = sizes
            .iter()
            .map(|&(bytes, src, step, at)| scene.send(Time::from_us(at), src, (src + step) % 4, bytes))
            .collect();
        scene.run_until(ms(200));
        for flow in flows {
            let count = |what: fn(&Event) -> Option<FlowId>| {
                scene.events.iter().filter(|said| what(&said.2) == Some(flow)).count()
            };
            let completed = count(|event| match event { Event::Completed { flow, .. } => Some(*flow), _ => None });
            let rejected = count(|event| match event { Event::Rejected { flow } => Some(*flow), _ => None });
            let failed = count(|event| match event { Event::Failed { flow, .. } => Some(*flow), _ => None });
            let delivered = count(|event| match event { Event::Delivered { flow } => Some(*flow), _ => None });
            proptest::prop_assert_eq!((completed + rejected, failed), (1, 0));
            proptest::prop_assert_eq!(delivered, completed);
        }
    }
}

#[test]
fn a_data_packet_says_where_its_payload_belongs() {
    let mut scene = scene(3, Config::default());
    scene.send(Time::ZERO, 1, 2, 3_000);
    scene.run_until(ms(1));
    let data = of_kind(&scene, Kind::Data);
    let pieces: Vec<(u64, u16, u16)> = data
        .iter()
        .map(|(_, packet)| (packet.header::<Header>().payload_offset(), packet.payload_bytes, packet.wire_bytes))
        .collect();
    // The last is padded.
    assert_eq!(pieces, [(0, 1_460, 1_500), (1_460, 1_460, 1_500), (2_920, 80, 1_500)]);
}
