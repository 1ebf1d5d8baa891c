use testing::Wire;
use testing::walks::{NOW, check_moved};
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

fn visit_all(sender: &mut Sender, walk: &mut Walk) {
    walk.unit = u64::from(params().site.payload_max());
    node::State::visit(sender, walk, &params());
    // A receiver's numbers and a sender's are told apart by others of the same name.
    walk.turn_at(0, "attempt", &mut 7u16);
    [5, 6].into_iter().for_each(|mut id| walk.turn_at(1, slot_name(id), &mut id));
}

fn message(sender: &mut Sender) -> &mut Outgoing {
    sender.messages.get_mut(0).expect("it was added").1
}

fn assigned(sender: &mut Sender, slot: usize) -> &mut Assignment {
    sender.slots[slot].assigned.as_mut().expect("it is assigned")
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
    check_moved(&[], PERIOD, sender, visit_all, fresh, see);
}
