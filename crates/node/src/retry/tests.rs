use proptest::prelude::*;
use units::Rate;

use super::*;

fn sender() -> RetrySender<u32> {
    let spec = RetrySpec { outstanding_packets: 8, ..RetrySpec::default() };
    RetrySender::new(&spec, Duration::from_us(10))
}

fn at(ns: u64) -> Time {
    Time::ZERO + Duration::from_ns(ns)
}

#[test]
fn a_sender_goes_back_to_what_was_asked_for_and_repeats_all_behind_it() {
    let mut sender = sender();
    for packet in 0..5 {
        assert_eq!(sender.sent(at(100 * u64::from(packet)), 1_500, packet), packet as u16);
    }
    sender.hears(at(600), RetryMessage::Nack(1));
    assert!(sender.full());
    let mut again = Vec::new();
    while let Some((number, kept)) = sender.replay(at(700)) {
        again.push((number, *kept));
    }
    assert_eq!(again, [(2, 2), (3, 3), (4, 4)]);
    assert!(!sender.full() && sender.stats.replayed == (3, 4_500) && sender.stats.replays == 1);
    // An acknowledgement of what was acknowledged says nothing.
    sender.hears(at(800), RetryMessage::Ack(1));
    sender.hears(at(800), RetryMessage::Ack(0));
    sender.hears(at(900), RetryMessage::Ack(4));
    assert_eq!((sender.next_at(), sender.kept_bytes), (Time::MAX, 0));
}

#[test]
fn a_sender_keeps_so_many_and_repeats_by_itself_after_a_while() {
    let mut sender = sender();
    for packet in 0..8 {
        assert!(!sender.full());
        sender.sent(at(0), 100, packet);
    }
    assert!(sender.full() && sender.next_at() == at(10_000));
    assert!(sender.replay(at(9_999)).is_none());
    assert_eq!((0..9).filter(|_| sender.replay(at(10_000)).is_some()).count(), 8);
    assert_eq!((sender.stats.timeouts, sender.next_at()), (1, at(20_000)));
    sender.reset();
    assert!(!sender.full() && sender.next_at() == Time::MAX && sender.sent(at(30_000), 100, 9) == 0);
}

#[test]
fn new_packets_do_not_put_off_the_time_when_a_sender_repeats_by_itself() {
    // Its packets follow each other within the timeout, and nothing comes back.
    let mut sender = sender();
    (0..5).for_each(|packet| _ = sender.sent(at(2_000 * u64::from(packet)), 40, packet));
    assert_eq!(sender.next_at(), at(10_000));
    sender.hears(at(9_000), RetryMessage::Ack(1));
    assert_eq!(sender.next_at(), at(19_000));
    sender.sent(at(18_000), 40, 5);
    assert_eq!(sender.replay(at(19_000)), Some((2, &mut 2)));
}

#[test]
fn a_receiver_asks_once_and_again_when_what_it_asked_for_comes_damaged() {
    let mut receiver = RetryReceiver::default();
    assert_eq!(receiver.comes(0, false), (true, Some(RetryMessage::Ack(0))));
    assert_eq!(receiver.comes(1, true), (false, Some(RetryMessage::Nack(0))));
    assert_eq!(receiver.comes(2, false), (false, None));
    assert_eq!(receiver.comes(3, true), (false, None));
    assert_eq!(receiver.comes(1, true), (false, Some(RetryMessage::Nack(0))));
    assert_eq!(receiver.comes(1, false), (true, Some(RetryMessage::Ack(1))));
    // The third never came.
    assert_eq!(receiver.comes(3, false), (false, Some(RetryMessage::Nack(1))));
    assert_eq!(receiver.comes(2, false), (true, Some(RetryMessage::Ack(2))));
    assert_eq!(receiver.comes(0, false), (false, Some(RetryMessage::Ack(2))));
}

#[test]
fn acknowledgements_keep_their_distance_and_what_asks_does_not_wait() {
    let mut speaker = RetrySpeaker::new(Rate::from_gbps(100).transmit(2_048));
    speaker.say(RetryMessage::Ack(0));
    assert_eq!(speaker.next(at(10)), Some(RetryMessage::Ack(0)));
    speaker.say(RetryMessage::Ack(1));
    speaker.say(RetryMessage::Ack(2));
    assert_eq!((speaker.next(at(100)), speaker.next_at()), (None, at(10) + Duration::from_ps(163_840)));
    speaker.say(RetryMessage::Nack(2));
    speaker.say(RetryMessage::Ack(2));
    assert_eq!(speaker.next(at(100)), Some(RetryMessage::Nack(2)));
    assert_eq!((speaker.next(at(1_000)), speaker.stats.messages), (None, (1, 1)));
}

proptest! {
    /// Whatever is damaged or lost, of packets and messages, all packets come once and in order, when the numbers have
    /// gone round too.
    #[test]
    fn everything_comes_once_and_in_order(
        luck in proptest::collection::vec(0u8..16, 1..200),
        first in any::<u16>(),
        packets in 1u32..300,
    ) {
        let (mut sender, mut receiver) = (sender(), RetryReceiver { expected: first, asked: false });
        sender.first = first;
        let mut luck = luck.iter().cycle().copied();
        let (mut wire, mut back) = (VecDeque::new(), VecDeque::new());
        let (mut made, mut came, mut now) = (0u32, 0u32, Time::ZERO);
        // Much luck at the end, so that it ends.
        for step in 0..200_000u64 {
            now += Duration::from_ns(100);
            let lucky = step > 20_000;
            if let Some((number, kept)) = sender.replay(now) {
                wire.push_back((number, *kept));
            } else if !sender.full() && made < packets {
                wire.push_back((sender.sent(now, 100, made), made));
                made += 1;
            }
            if step % 3 > 0 && let Some((number, packet)) = wire.pop_front() {
                let fate = if lucky { 9 } else { luck.next().unwrap() };
                if fate > 0 {
                    let (goes_on, message) = receiver.comes(number, fate == 1);
                    if goes_on {
                        prop_assert_eq!(packet, came);
                        came += 1;
                    }
                    back.extend(message);
                }
            }
            if step % 5 == 0
                && let Some(message) = back.pop_front()
                && (lucky || luck.next().unwrap() > 0)
            {
                sender.hears(now, message);
            }
            if came == packets {
                return Ok(());
            }
        }
        prop_assert!(false, "{came} of {packets} came");
    }

    #[test]
    fn messages_survive_the_wire(kind: bool, seq: u16, noise: Vec<u8>) {
        let message = if kind { RetryMessage::Ack(seq) } else { RetryMessage::Nack(seq) };
        let mut bytes = Vec::new();
        message.emit(&mut Writer::new(&mut bytes));
        prop_assert_eq!(RetryMessage::parse(&mut Reader::new(&bytes, "")), Ok(message));
        prop_assert_eq!(RetryMessage::of(&message.packet()), Some(message));
        let _ = RetryMessage::parse(&mut Reader::new(&noise, ""));
    }
}
