use testing::Wire;
use testing::walks::{NOW, check_moved, check_told_apart};
use units::Duration;

use super::super::Config;
use super::super::bounds::Bounds;
use super::*;

const FLOW: FlowId = FlowId(3);
const PERIOD: Duration = Duration::from_us(1);

fn params() -> Params {
    let (config, site) = (Config::default(), Wire::default().site(HostId(0), 4));
    Params::new(&config, &site, Bounds::uniform(&config, &site))
}

/// Two slots of a message: its main one, and an additional one that may send later.
fn sender() -> Sender {
    let mut sender = Sender::new(&params());
    let outgoing = Outgoing {
        dst: HostId(1),
        bytes: 10_000_000,
        next: 14_600,
        fresh: 14_600,
        attempt: 7,
        tries: 1,
        begun: true,
        began: NOW - PERIOD * 3,
        began_bytes: 10_000_000,
        slots: 2,
        sent_packets: 10,
        resent_packets: 1,
    };
    let message = sender.messages.insert(FLOW, outgoing);
    (sender.waiting, sender.attempts) = (2, 9);
    let main =
        Assignment { message, id: 5, given: NOW - PERIOD * 3, label: 1, back: 2, main: true, granted: 0, sent: 7_300 };
    let additional = Assignment { id: 6, main: false, granted: 14_600, ..main };
    for (slot, due, assigned) in [(0, NOW + PERIOD / 2, main), (1, NOW + PERIOD, additional)] {
        sender.slots[slot] = Slot { due, wire_bytes: 1_500, assigned: Some(assigned) };
        sender.pacing.set(slot as u32, due);
    }
    sender.due.push_back(1);
    sender.answers.set(message, NOW + PERIOD);
    sender
}

fn walk(sender: &mut Sender, walk: &mut Walk) {
    sender.walk(walk, &params());
    // A receiver's numbers and a sender's are told apart by others of the same name.
    walk_attempt(walk, HostId(0), &mut 7);
    [5, 6].into_iter().for_each(|mut id| walk_id(walk, HostId(1), &mut id));
}

fn message(sender: &mut Sender) -> &mut Outgoing {
    sender.messages.get_mut(0).expect("it was added").1
}

fn assigned(sender: &mut Sender, slot: usize) -> &mut Assignment {
    sender.slots[slot].assigned.as_mut().expect("it is assigned")
}

#[test]
fn its_walk_names_all_of_a_message() {
    check_told_apart(
        &[],
        sender,
        walk,
        &[
            ("the receiver", |sender| message(sender).dst = HostId(2)),
            ("the length", |sender| message(sender).bytes += 1),
            ("the next byte", |sender| message(sender).next += 1),
            ("the first byte that was never sent", |sender| message(sender).fresh += 1),
            ("the attempt", |sender| message(sender).attempt += 1),
            ("how often it has asked", |sender| message(sender).tries += 1),
            ("whether it has begun", |sender| message(sender).begun ^= true),
            ("with how many bytes", |sender| message(sender).began_bytes += 1),
            ("the number of its slots", |sender| message(sender).slots += 1),
            ("how many messages wait", |sender| sender.waiting += 1),
            ("the last attempt", |sender| sender.attempts += 1),
            ("which slots are due", |sender| sender.due.push_back(0)),
            ("when a slot is due", |sender| sender.pacing.set(0, NOW + PERIOD)),
            ("when an answer is due", |sender| sender.answers.set(0, NOW + PERIOD * 2)),
        ],
        &[("a counter", |sender| message(sender).sent_packets += 1)],
    );
}

#[test]
fn its_walk_names_all_of_a_slot() {
    check_told_apart(
        &[],
        sender,
        walk,
        &[
            ("the size of the last packet", |sender| sender.slots[0].wire_bytes += 1),
            ("which slot may send first", |sender| sender.slots[1].due = NOW + PERIOD / 4),
            ("when a slot may send", |sender| sender.slots[1].due += PERIOD),
            ("whose it is", |sender| sender.slots[0].assigned = None),
            ("the message", |sender| assigned(sender, 0).message = 1),
            ("the reservation", |sender| assigned(sender, 0).id += 16),
            ("the path of data", |sender| assigned(sender, 0).label += 1),
            ("the path back", |sender| assigned(sender, 0).back += 1),
            ("whether it is the main one", |sender| assigned(sender, 1).main ^= true),
            ("what it may send", |sender| assigned(sender, 1).granted += 1),
            ("what it has sent", |sender| assigned(sender, 1).sent += 1),
            ("that it was given late", |sender| assigned(sender, 0).given = NOW + PERIOD),
        ],
        &[("what the main one has sent", |sender| assigned(sender, 0).sent += 1)],
    );
}

/// In each period the main slot sends a packet.
#[test]
fn its_walk_moves_all_that_a_slot_has_sent() {
    let pass = |sender: &mut Sender, _| {
        let of = message(sender);
        (of.next, of.fresh, of.sent_packets) = (of.next + 1_460, of.fresh + 1_460, of.sent_packets + 1);
        assigned(sender, 0).sent += 1_460;
        for slot in 0..2 {
            sender.slots[slot].due += PERIOD;
            sender.pacing.set(slot as u32, sender.slots[slot].due);
        }
        sender.answers.set(0, sender.answers.get(0).expect("it is armed") + PERIOD);
        sender.counts.rsvps_used += 1;
    };
    let see = |sender: &Sender| {
        let of = sender.messages.of(FLOW).expect("it was added");
        let slots = sender.slots[..2].iter().map(|slot| (slot.due, slot.assigned.map(|assigned| assigned.sent)));
        let counted = (of.sent_packets, sender.counts.rsvps_used);
        (slots.collect::<Vec<_>>(), of.next, of.fresh, counted, sender.pacing.get(1), sender.answers.get(0))
    };
    // Timers that are set for later leave an entry behind, and only what is next would see to it.
    let fresh = |sender: &mut Sender, now: Time| {
        pass(sender, now);
        for timers in [&mut sender.pacing, &mut sender.answers] {
            let due: Vec<_> = (0..2).filter_map(|key| Some((key, timers.get(key)?))).collect();
            *timers = Timers::default();
            due.into_iter().for_each(|(key, at)| timers.set(key, at));
        }
    };
    check_moved(&[], PERIOD, sender, walk, fresh, see);
}
