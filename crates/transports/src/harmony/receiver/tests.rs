use testing::Wire;
use testing::walks::{NOW, check_moved};
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

fn visit_all(receiver: &mut Receiver, walk: &mut Walk) {
    walk.unit = u64::from(params().site.payload_max());
    node::State::visit(receiver, walk, &params());
    // Numbers of attempts and reservations are told apart by others of the same name.
    walk.turn_at(0, "attempt", &mut 7u16);
    (0..3).for_each(|slot| walk.turn_at(OWN.0, slot_name(slot), &mut (SLOTS_MAX + slot)));
    // How far the message has come.
    walk.sequence(FLOW, 1_460, &mut { receiver.messages.of(FLOW).expect("it was added").have.first_missing });
}

fn message(receiver: &mut Receiver) -> &mut Incoming {
    receiver.messages.get_mut(0).expect("it was added").1
}

fn held(receiver: &mut Receiver, slot: usize) -> &mut Held {
    receiver.slots[slot].held.as_mut().expect("it is held")
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
    check_moved(&[], PERIOD, receiver, visit_all, pass, see);
}
