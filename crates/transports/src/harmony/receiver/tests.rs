use testing::Wire;
use testing::walks::{NOW, check_moved, check_told_apart};
use units::Duration;

use super::super::Config;
use super::super::bounds::Bounds;
use super::*;

const FLOW: FlowId = FlowId(3);
const OWN: HostId = HostId(1);
const PERIOD: Duration = Duration::from_us(1);
/// Packets of the message that have come.
const HERE: u32 = 100;
const BYTES: u64 = 10_000_000;

fn params() -> Params {
    let (config, site) = (Config::default(), Wire::default().site(OWN, 4));
    Params::new(&config, &site, Bounds::uniform(&config, &site))
}

/// A message with its main slot, an additional one whose rsvp has left, and one whose rsvp has not.
fn receiver() -> Receiver {
    let params = params();
    let mut receiver = Receiver::new(&params);
    let mut have = Bits::default();
    (0..HERE).for_each(|packet| assert!(have.insert(packet)));
    let message = Incoming {
        src: HostId(0),
        bytes: BYTES,
        packets: BYTES.div_ceil(1_460) as u32,
        have,
        attempt: 7,
        arrived: NOW,
        order: 4,
        state: State::Active,
        not_before: NOW + PERIOD,
        refused: Backoff { pause: PERIOD, until: NOW + PERIOD, alone: true, refusals: 2 },
        slots: 3,
        flowing: 1,
        all_sent: false,
        lost: Lost { until: NOW + PERIOD, pause: PERIOD, over: Some((SLOTS_MAX, 3)) },
    };
    let key = receiver.messages.insert(FLOW, message);
    receiver.active.insert((NOW, 4, key));
    receiver.arrivals = 5;
    let offset = u64::from(HERE) * 1_460;
    let main = Held {
        flow: FLOW,
        src: HostId(0),
        id: SLOTS_MAX,
        attempt: 7,
        given: NOW,
        additional: false,
        offset: 0,
        missing: BYTES,
        until: NEVER,
        main: true,
        draining: false,
        began: true,
        telling: true,
        got_bytes: offset,
        back: 3,
    };
    let until = NOW + PERIOD + params.bounds.hold(BYTES - offset);
    let (additional, missing) = (true, BYTES - offset);
    let one = Held { id: SLOTS_MAX + 1, additional, offset, missing, until, main: false, ..main };
    let other = Held { id: SLOTS_MAX + 2, until: NEVER, additional, offset, missing, main: false, ..main };
    for (slot, held) in [main, one, other].into_iter().enumerate() {
        receiver.slots[slot] = Slot { count: 1, held: Some(held) };
    }
    receiver.free.retain(|&slot| slot > 2);
    receiver.timers.set(1, NOW + PERIOD);
    receiver.expected.set(key, NOW + PERIOD);
    receiver
}

fn walk(receiver: &mut Receiver, walk: &mut Walk) {
    receiver.walk(walk, &params());
    // Numbers of attempts and reservations are told apart by others of the same name.
    walk_attempt(walk, HostId(0), &mut 7);
    (0..3).for_each(|slot| walk_id(walk, OWN, &mut (SLOTS_MAX + slot)));
    // How far the message has come.
    walk.sequence(FLOW, 1_460, &mut { receiver.messages.of(FLOW).expect("it was added").have.first_missing });
}

fn message(receiver: &mut Receiver) -> &mut Incoming {
    receiver.messages.get_mut(0).expect("it was added").1
}

fn held(receiver: &mut Receiver, slot: usize) -> &mut Held {
    receiver.slots[slot].held.as_mut().expect("it is held")
}

#[test]
fn its_walk_names_all_of_a_message() {
    check_told_apart(
        &[],
        receiver,
        walk,
        &[
            ("the sender", |receiver| message(receiver).src = HostId(2)),
            ("the length", |receiver| message(receiver).bytes += 1),
            ("the number of packets", |receiver| message(receiver).packets += 1),
            ("what has come", |receiver| assert!(message(receiver).have.insert(HERE + 5))),
            ("the attempt", |receiver| message(receiver).attempt += 1),
            ("whose turn it is", |receiver| message(receiver).order -= 1),
            ("what has become of it", |receiver| message(receiver).state = State::Lost),
            ("when it may be asked again", |receiver| message(receiver).not_before += PERIOD),
            ("how long it pauses", |receiver| message(receiver).refused.pause += PERIOD),
            ("until when it pauses", |receiver| message(receiver).refused.until += PERIOD),
            ("whether it asks for one at a time", |receiver| message(receiver).refused.alone ^= true),
            ("how many were refused", |receiver| message(receiver).refused.refusals += 1),
            ("that it is admitted no more", |receiver| message(receiver).not_before = NEVER),
            ("the number of its slots", |receiver| message(receiver).slots += 1),
            ("of those that have begun", |receiver| message(receiver).flowing += 1),
            ("that all was sent", |receiver| message(receiver).all_sent ^= true),
            ("how long a lost one is kept", |receiver| message(receiver).lost.until += PERIOD),
            ("when its failure is told again", |receiver| message(receiver).lost.pause += PERIOD),
            ("over which slot", |receiver| message(receiver).lost.over = Some((SLOTS_MAX + 1, 3))),
            ("by which route", |receiver| message(receiver).lost.over = Some((SLOTS_MAX, 4))),
            ("whether over any", |receiver| message(receiver).lost.over = None),
            ("how many messages came", |receiver| receiver.arrivals += 1),
            ("that it is active", |receiver| receiver.active.clear()),
            ("that it is pending", |receiver| receiver.pending = receiver.active.clone()),
            ("which slots are free", |receiver| receiver.free.truncate(2)),
            ("when a slot is over", |receiver| receiver.timers.set(1, NOW + PERIOD * 2)),
            ("when data are due", |receiver| receiver.expected.set(0, NOW + PERIOD * 2)),
        ],
        &[("a counter", |receiver| receiver.counts.rsvps += 1)],
    );
}

#[test]
fn its_walk_names_all_of_a_slot() {
    check_told_apart(
        &[],
        receiver,
        walk,
        &[
            ("how often it was assigned", |receiver| receiver.slots[0].count += 1),
            ("the flow", |receiver| held(receiver, 0).flow = FlowId(5)),
            ("the sender", |receiver| held(receiver, 0).src = HostId(2)),
            ("the reservation", |receiver| held(receiver, 0).id += SLOTS_MAX),
            ("the attempt", |receiver| held(receiver, 0).attempt += 1),
            ("when it was given", |receiver| held(receiver, 0).given = NOW - Duration::from_ns(1)),
            ("that it is additional", |receiver| held(receiver, 0).additional ^= true),
            ("where a main one begins", |receiver| held(receiver, 0).offset += 1),
            ("what a main one is for", |receiver| held(receiver, 0).missing += 1),
            ("where an additional one begins", |receiver| held(receiver, 1).offset += 1),
            ("what an additional one is for", |receiver| held(receiver, 1).missing += 1),
            ("the same before its rsvp has left", |receiver| held(receiver, 2).missing += 1),
            ("until when it is held", |receiver| held(receiver, 1).until += PERIOD),
            ("that its rsvp has left", |receiver| held(receiver, 0).until = NOW + PERIOD),
            ("that it is the main one", |receiver| held(receiver, 1).main ^= true),
            ("that nobody needs it", |receiver| held(receiver, 0).draining ^= true),
            ("that it has begun", |receiver| held(receiver, 0).began ^= true),
            ("that its refusal counts", |receiver| held(receiver, 1).telling ^= true),
            ("what has come by an additional one", |receiver| held(receiver, 1).got_bytes += 1),
            ("the path back", |receiver| held(receiver, 0).back += 1),
        ],
        &[("what has come by the main one", |receiver| held(receiver, 0).got_bytes += 1)],
    );
}

/// In each period a packet comes by the main slot, and additional ones are reserved anew for what is missing then.
#[test]
fn its_walk_moves_all_that_has_come() {
    let pass = |receiver: &mut Receiver, now: Time| {
        let bounds = params().bounds;
        for slot in 0..3 {
            let held = held(receiver, slot);
            held.given += PERIOD;
            if slot == 0 {
                held.got_bytes += 1_460;
            } else {
                (held.offset, held.missing) = (held.offset + 1_460, held.missing - 1_460);
            }
            if slot == 1 {
                held.until = now + PERIOD * 2 + bounds.hold(held.missing);
            }
        }
        let of = message(receiver);
        of.have.insert(of.have.first_missing);
        (of.arrived, of.not_before) = (of.arrived + PERIOD, of.not_before + PERIOD);
        (of.lost.until, of.refused.until) = (of.lost.until + PERIOD, of.refused.until + PERIOD);
        let (arrived, order) = (of.arrived, of.order);
        receiver.active = [(arrived, order, 0)].into();
        receiver.timers = Timers::default();
        receiver.timers.set(1, now + PERIOD * 2);
        receiver.expected = Timers::default();
        receiver.expected.set(0, now + PERIOD * 2);
    };
    let see = |receiver: &Receiver| {
        let slots = receiver.slots[..3].iter().filter_map(|slot| slot.held.as_ref());
        let slots: Vec<_> =
            slots.map(|held| (held.offset, held.missing, held.until, held.got_bytes, held.given)).collect();
        let of = receiver.messages.of(FLOW).expect("it was added");
        let places = (of.have.first_missing, of.arrived, of.not_before);
        (slots, places, receiver.active.clone(), receiver.timers.get(1), receiver.expected.get(0))
    };
    check_moved(&[], PERIOD, receiver, walk, pass, see);
}
