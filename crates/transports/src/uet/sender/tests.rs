use testing::Wire;
use testing::walks::{NOW, check_moved};
use units::Rate;

use super::super::{Config, CongestionControl};
use super::*;

const FLOW: FlowId = FlowId(3);
const PACKET: Duration = Duration::from_ns(120);
/// The first packet without an acknowledgement.
const UNA: u32 = 1_000;

/// A window and credit, and losses are inferred: so everything matters.
fn params() -> Params {
    let config = Config {
        congestion_control: CongestionControl::Both,
        entropies: 1,
        infers_losses: Some(true),
        ..Config::default()
    };
    Params::new(&config, &Wire { rate: Rate::from_gbps(100), ..Wire::default() }.site(HostId(0), 2))
}

/// Of the first packets without an acknowledgement, one is in flight, one was lost, one has arrived, one is in flight.
fn sender() -> Sender {
    let params = params();
    let mut sender = Sender::default();
    let (src, dst, bytes) = (HostId(0), HostId(1), 100_000_000);
    let message = Message { flow: FLOW, src, dst, bytes, class: 0, virtual_serialisation: Duration::ZERO };
    let random = &mut Stream::new(1, 0, "sender");
    let slot = sender.flows.insert(FLOW, Outgoing::new(&message, &params, NOW, random));
    let (_, flow) = sender.flows.get_mut(slot).expect("it was added");
    flow.una = UNA;
    let sent = |state, age: u64, place| Sent { state, at: NOW - PACKET * age, entropy: 0, times: 1, place };
    flow.sent = [
        sent(State::InFlight, 4, 1_000),
        sent(State::Lost, 3, 1_001),
        sent(State::Arrived, 2, 1_002),
        sent(State::InFlight, 1, 1_003),
    ]
    .into();
    flow.lost = [UNA + 1].into();
    flow.deadlines = [0, 3].into_iter().map(|at: u32| (flow.sent[at as usize].deadline(&params), UNA + at)).collect();
    flow.order = [(1_000, UNA), (1_003, UNA + 3)].into();
    (flow.next_place, flow.arrived_place) = (1_004, 1_002);
    (flow.in_flight, flow.received_bytes) = (3_000, 1_501_500);
    (flow.sent_packets, flow.resent_packets, flow.listed) = (1_004, 0, true);
    flow.credit = Credit {
        bytes: 6_000,
        given: 6_000,
        speculating: false,
        asked_at: Some(NOW - PACKET),
        times: 1,
        heard_at: NOW - PACKET,
    };
    sender.ready.push_back((FLOW, slot));
    sender.timers.set(slot, NOW + PACKET);
    sender
}

fn visit(sender: &mut Sender, walk: &mut Walk, params: &Params) {
    walk.unit = u64::from(params.site.payload_max());
    node::State::visit(sender, walk, params);
}

fn visit_all(sender: &mut Sender, walk: &mut Walk) {
    visit(sender, walk, &params());
}

fn flow(sender: &mut Sender) -> &mut Outgoing {
    sender.flows.get_mut(0).expect("it was added").1
}

/// In each period a packet leaves, one arrives, one is lost, and credit comes for them.
#[test]
fn its_walk_moves_all_of_a_message() {
    let params = params();
    let pass = |sender: &mut Sender, now: Time| {
        sender.timers = Timers::default();
        sender.timers.set(0, now + PACKET * 2);
        sender.counts.retransmissions += 1;
        let flow = flow(sender);
        flow.una += 1;
        for sent in &mut flow.sent {
            (sent.at, sent.place) = (sent.at + PACKET, sent.place + 2);
        }
        for (place, psn) in &mut flow.order {
            (*place, *psn) = (*place + 2, *psn + 1);
        }
        flow.lost = flow.lost.iter().map(|psn| psn + 1).collect();
        flow.deadlines = flow.deadlines.iter().map(|&(at, psn)| (at + PACKET, psn + 1)).collect();
        (flow.next_place, flow.arrived_place) = (flow.next_place + 2, flow.arrived_place + 2);
        flow.received_bytes += 1_500;
        (flow.sent_packets, flow.resent_packets) = (flow.sent_packets + 2, flow.resent_packets + 1);
        let credit = &mut flow.credit;
        credit.given += 6;
        (credit.asked_at, credit.heard_at) = (credit.asked_at.map(|at| at + PACKET), credit.heard_at + PACKET);
        let window = flow.window.as_mut().expect("it has one");
        *window = window.clone().later(PACKET);
    };
    let see = |sender: &Sender| {
        let flow = sender.flows.of(FLOW).expect("it was added");
        let sent: Vec<_> = flow.sent.iter().map(|sent| (sent.at, sent.place)).collect();
        let lists = (flow.lost.clone(), flow.deadlines.clone(), flow.order.clone());
        let places = (flow.una, flow.next_place, flow.arrived_place, flow.received_bytes);
        let Credit { given, asked_at, heard_at, .. } = flow.credit;
        let counted = (flow.sent_packets, flow.resent_packets, sender.counts.retransmissions);
        ((sent, lists), (places, given, asked_at, heard_at), counted, sender.timers.get(0))
    };
    check_moved(&[], PACKET, sender, |sender, walk| visit(sender, walk, &params), pass, see);
}

/// What is in flight of a message of two terabytes has no number in units of credit.
#[test]
fn the_credit_of_a_message_must_have_a_number() {
    let mut sender = sender();
    flow(&mut sender).bytes = 1 << 40;
    let mut notes = Walk::note(NOW, Default::default());
    visit_all(&mut sender, &mut notes);
    assert_eq!(notes.finish().err().as_deref(), Some("the credit of a long message has no number"));
}

/// A sender asks for less credit when less than the greatest window is left, and gets less in advance when less than
/// another is left, so nothing is skipped past that.
#[test]
fn its_walk_names_how_far_a_wish_for_credit_reaches() {
    let later = |sender: &mut Sender| {
        let flow = flow(sender);
        flow.una += 1;
        flow.order.iter_mut().for_each(|of| of.1 += 1);
    };
    let last = |params: Params| {
        let walk = |sender: &mut Sender, walk: &mut Walk| visit(sender, walk, &params);
        let (mut before, mut after) = (sender(), sender());
        later(&mut after);
        let [before, after] = [&mut before, &mut after].map(|sender| testing::walks::notes(NOW, &[], sender, walk));
        node::walk::recurrence(&before, &after).expect("it recurs").flows
    };
    let next = u64::from(UNA + 5) * 1_460;
    assert_eq!(last(params()), [(FLOW, 1_460, next + 2 * params().window_max)]);
    let without = Params { rccc: false, ..params() };
    assert_eq!(last(without), [(FLOW, 1_460, next)]);
}
