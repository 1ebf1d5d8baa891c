use node::Packet;
use proptest::prelude::*;
use testing::walks::check_moved;
use units::{Duration, FlowId, HostId};

use super::*;

const PARAMS: Params = Params {
    vc_of: [None, Some(0), Some(1), None, None, None, None, None],
    credit_bytes: 64,
    full_packet: 24,
    update: 0,
};

/// Two channels of 100 credits.
fn port(params: Params) -> Channels {
    Channels::new(params, [100, 100], 2)
}

fn packet(class: u8, wire_bytes: u16) -> Packet {
    let mut packet = Packet::bare(FlowId(0), HostId(0), HostId(1));
    (packet.class, packet.wire_bytes) = (class, wire_bytes);
    packet
}

/// A message reaches the other end, and so does its answer.
fn tell(frame: Option<Frame>, to: &mut Channels, from: &mut Channels) {
    if let Some(answer) = frame.and_then(|frame| to.hears(&frame.packet())) {
        assert_eq!(from.hears(&answer.packet()), None);
    }
}

#[test]
fn a_packet_takes_its_bytes_rounded_up_and_channels_are_apart() {
    let mut sender = port(PARAMS);
    assert_eq!(sender.leaves(&packet(1, 65)).0, 1);
    assert_eq!(sender.leaves(&packet(2, 1_500)).0, 2);
    assert_eq!(sender.leaves(&packet(0, 1_500)).0, 0);
    assert_eq!([sender.available(0), sender.available(1)], [98, 76]);
    // 76, 52 and 28 credits are enough for a full packet, 4 are not.
    for left in [76, 52, 28] {
        assert_eq!((sender.available(1), sender.paused()), (left, 0));
        sender.leaves(&packet(2, 1_500));
    }
    assert_eq!((sender.available(1), sender.paused()), (4, 0b100));
}

#[test]
fn what_is_lost_comes_back_with_the_next_count() {
    let (mut sender, mut receiver) = (port(PARAMS), port(PARAMS));
    let all = packet(1, 1_500);
    // The first is lost, others come. After the fourth there are no credits for another, and that is told behind it.
    assert_eq!([(); 3].map(|()| sender.leaves(&all).1), [None; 3]);
    receiver.came(1, &all);
    receiver.came(1, &all);
    let told = sender.leaves(&all).1;
    assert_eq!((told, sender.paused()), (Some(Frame::Consumed { vc: 0, count: 96 }), 0b10));
    receiver.came(1, &all);
    tell(told, &mut receiver, &mut sender);
    assert_eq!((receiver.lost_credits, sender.available(0)), (24, 100 - 72));
    for _ in 0..3 {
        let freed = receiver.freed(1, &all);
        tell(freed, &mut sender, &mut receiver);
    }
    assert_eq!(sender.available(0), 100);
}

#[test]
fn updates_wait_for_so_many_credits_and_take_a_second_channel_along() {
    let mut receiver = port(Params { update: 30, ..PARAMS });
    let all = packet(1, 1_500);
    (0..2).for_each(|_| receiver.came(1, &all));
    receiver.came(2, &packet(2, 64));
    assert_eq!((receiver.freed(2, &packet(2, 64)), receiver.freed(1, &all)), (None, None));
    assert_eq!(receiver.freed(1, &all), Some(Frame::Freed { vcs: [0, 1], counts: [48, 1] }));
}

#[test]
fn after_a_failure_credits_are_what_is_free() {
    let (mut sender, mut receiver) = (port(PARAMS), port(PARAMS));
    let all = packet(1, 1_500);
    for _ in 0..3 {
        sender.leaves(&all);
        receiver.came(1, &all);
    }
    assert_eq!((sender.reset(false), receiver.reset(false)), (Vec::new(), Vec::new()));
    // While the link is down nothing waits for credits, and one packet leaves the receiver's buffer.
    assert_eq!((sender.paused(), receiver.freed(1, &all)), (0, None));
    sender.reset(true);
    assert_eq!(sender.paused(), 0b110);
    for message in receiver.reset(true) {
        tell(Some(message), &mut sender, &mut receiver);
    }
    assert_eq!([sender.available(0), sender.available(1)], [100 - 48, 100]);
    for _ in 0..2 {
        let freed = receiver.freed(1, &all);
        tell(freed, &mut sender, &mut receiver);
    }
    assert_eq!(sender.available(0), 100);
}

proptest! {
    /// Whatever is sent, lost, or leaves when: never is more here than there are credits for, nor does a sender with
    /// none left send; and when all has gone, all credits are back but those that are not yet known to be lost.
    #[test]
    fn no_more_comes_than_there_is_room_for(
        update in 0u64..60,
        steps in proptest::collection::vec((any::<bool>(), 1u8..3, 1u16..1_500, 0u8..10), 0..600),
    ) {
        let params = Params { update, ..PARAMS };
        let (mut sender, mut receiver) = (port(params), port(params));
        let mut here: [Vec<Packet>; 2] = Default::default();
        for (sends, class, bytes, luck) in steps {
            let vc = usize::from(class) - 1;
            if sends && sender.paused() >> class & 1 == 0 {
                let packet = packet(class, bytes);
                let (mark, told) = sender.leaves(&packet);
                prop_assert_eq!(usize::from(mark), vc + 1);
                if luck > 0 {
                    receiver.came(mark, &packet);
                    here[vc].push(packet);
                }
                tell(told, &mut receiver, &mut sender);
            } else if let Some(packet) = here[vc].pop() {
                let told = receiver.freed(vc as u16 + 1, &packet);
                tell(told, &mut sender, &mut receiver);
            }
            let held = |vc: usize| here[vc].iter().map(|packet| params.credits(packet)).sum::<u16>();
            prop_assert!(held(0) <= 100 && held(1) <= 100);
            prop_assert!((0..2).all(|vc| sender.available(vc) + held(vc) <= 100));
            let waits = |vc: usize| u8::from(sender.available(vc) < params.full_packet);
            prop_assert_eq!(sender.paused(), waits(0) << 1 | waits(1) << 2);
        }
        for (vc, here) in here.iter_mut().enumerate() {
            while let Some(packet) = here.pop() {
                let told = receiver.freed(vc as u16 + 1, &packet);
                tell(told, &mut sender, &mut receiver);
            }
            // A packet may go, but for what is not told of as freed.
            prop_assert!(u64::from(sender.available(vc)) + update.max(1) > 24);
        }
    }
}

/// A port at which everything differs, in the second channel.
fn busy() -> Channels {
    let mut port = port(PARAMS);
    port.out[1] = Sender { consumed: 90, freed: 30, told: 60, before: 50, short: 3, ..port.out[1] };
    port.into[1] = Receiver { freed: 40, told: 20, before: 10, seen: 80, held: 40 };
    port
}

/// In each period packets leave without the neighbour's being told: only that distance moves.
#[test]
fn its_walk_moves_what_was_not_told() {
    let pass = |port: &mut Channels, _| {
        port.out[1].told = port.out[1].told.wrapping_sub(7) & COUNT;
        port.lost_credits += 2;
    };
    let see = |port: &Channels| (since(port.out[1].consumed, port.out[1].told), port.lost_credits);
    check_moved(&[], Duration::from_ns(120), busy, |channels, walk| node::State::visit(channels, walk, &()), pass, see);
}
