use units::Duration;

use super::*;

proptest::proptest! {
    /// Whatever the order, the receiver knows exactly what has come, and its runs are disjoint and apart.
    #[test]
    fn segments_find_their_places(order in proptest::collection::vec(0u64..30, 1..90)) {
        let mut flow = Flow::new(HostId(0), 30 * 1460, 1460);
        let mut model = std::collections::BTreeSet::new();
        for segment in order {
            proptest::prop_assert_eq!(flow.place(segment), model.insert(segment));
            let mut runs = flow.ahead.clone();
            if segment > flow.next {
                let latest = runs[0];
                proptest::prop_assert!(latest.0 <= segment && segment < latest.1);
            }
            runs.sort_unstable();
            let known: Vec<u64> = (0..flow.next).chain(runs.iter().flat_map(|run| run.0..run.1)).collect();
            proptest::prop_assert_eq!(known, model.iter().copied().collect::<Vec<_>>());
            proptest::prop_assert!(runs.windows(2).all(|pair| pair[0].1 < pair[1].0));
            proptest::prop_assert!(runs.first().is_none_or(|run| run.0 > flow.next));
        }
    }
}

fn receiver(ecn: Ecn, delayed_ack: Option<DelayedAck>) -> Receiver {
    let rtt = Duration::from_us(5);
    let settings = Settings { ecn, delayed_ack, ack_class: 1 };
    let site = EndpointParams {
        host: HostId(1),
        hosts: 2,
        nic_rate: units::Rate::from_gbps(100),
        data_rtt: rtt,
        control_rtt: rtt,
        data_rtts: vec![(1, rtt)],
        mtu_bytes: 1500,
        header_bytes: 40,
        clock: node::Clock::default(),
        transport: 0,
    };
    Receiver::new(settings, site)
}

/// Hands in the segments of a message in order, each marked or not and answering or not, and gives the
/// acknowledgements: after which segment, up to which byte, and whether with ECE.
fn answers(receiver: &mut Receiver, segments: &[(bool, bool)]) -> Vec<(usize, u64, bool)> {
    let mut random = units::Stream::new(1, 1, "test");
    let (mut events, mut answers) = (Vec::new(), Vec::new());
    let bytes = 1460 * segments.len() as u64;
    for (index, &(marked, cwr)) in segments.iter().enumerate() {
        let data = Data { sequence: 1460 * index as u64, bytes, cwr };
        let mut packet = Packet::new(FlowId(0), HostId(0), HostId(1), Header::Data(data));
        packet.payload_bytes = 1460;
        packet.flags = if marked { flags::CE | flags::ECT } else { flags::ECT };
        let mut cx = Cx { now: Time::ZERO, random: &mut random, gate: node::Gate::default(), events: &mut events };
        receiver.receive(&mut cx, &packet, data);
        while let Some(ack) = receiver.poll_transmit() {
            let Header::Ack(ack) = ack.header() else { panic!("a receiver acknowledges data") };
            answers.push((index, ack.sequence, ack.ece));
        }
    }
    answers
}

#[test]
fn a_change_of_marks_is_reported_at_once_and_what_was_owed_with_the_old_state() {
    let delayed_ack = Some(DelayedAck { packets: 4, ..DelayedAck::default() });
    let segments = [false, true, true, true, false, false, false, false, false].map(|marked| (marked, false));
    let answers = answers(&mut receiver(Ecn::Proportional, delayed_ack), &segments);
    let wanted = [(1, 1, false), (1, 2, true), (4, 4, true), (4, 5, false), (8, 9, false)];
    assert_eq!(answers, wanted.map(|(after, upto, ece)| (after, upto * 1460, ece)));
}

#[test]
fn a_classic_mark_is_echoed_until_it_is_answered() {
    let segments = [(false, false), (true, false), (false, false), (false, true), (true, true), (false, false)];
    let answers = answers(&mut receiver(Ecn::Classic, None), &segments);
    let echoed: Vec<bool> = answers.iter().map(|answer| answer.2).collect();
    assert_eq!(echoed, [false, true, true, false, true, true]);
}

proptest::proptest! {
    /// RFC 8257 section 3.2: however acknowledgements are delayed, the sender learns exactly which bytes were
    /// marked.
    #[test]
    fn no_marked_byte_is_reported_wrongly(packets in 2u32..6,
        marks in proptest::collection::vec(proptest::bool::ANY, 1..40)) {
        let delayed_ack = Some(DelayedAck { packets, ..DelayedAck::default() });
        let segments: Vec<(bool, bool)> = marks.iter().map(|&marked| (marked, false)).collect();
        let mut reported = Vec::new();
        for (_, upto, ece) in answers(&mut receiver(Ecn::Proportional, delayed_ack), &segments) {
            reported.resize((upto / 1460) as usize, ece);
        }
        proptest::prop_assert_eq!(reported, marks);
    }
}
