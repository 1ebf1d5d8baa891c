use node::Walk;
use testing::Wire;
use testing::walks::check_moved;
use units::{Duration, Rate};

use super::super::{Config, CongestionControl};
use super::*;

const FLOW: FlowId = FlowId(3);
const PACKET: Duration = Duration::from_ns(120);

fn params() -> Params {
    let config = Config { congestion_control: CongestionControl::Rccc, ..Config::default() };
    Params::new(&config, &Wire::default().site(HostId(1), 2))
}

/// A message of which 100 packets have come, and one after the next.
fn receiver() -> Receiver {
    let credits = Credits::new(Rate::from_gbps(100), 1_460, 100_000, None);
    let mut receiver = Receiver::new(Some(credits));
    let mut received = Bits::default();
    (0..100).chain([101]).for_each(|psn| assert!(received.insert(psn)));
    let incoming = Incoming {
        src: HostId(0),
        bytes: 100_000_000,
        packets: 68_494,
        received,
        received_bytes: 151_500,
        unacked_bytes: 3_000,
        ack_owed: false,
        account: Account::default(),
    };
    receiver.flows.insert(FLOW, incoming);
    (flow(&mut receiver).account.given, flow(&mut receiver).account.target) = (700, 800);
    receiver
}

fn visit(receiver: &mut Receiver, walk: &mut Walk) {
    walk.unit = u64::from(params().site.payload_max());
    node::State::visit(receiver, walk, &());
}

fn flow(receiver: &mut Receiver) -> &mut Incoming {
    receiver.flows.get_mut(0).expect("it was added").1
}

/// In each period a packet comes, and credit for it.
#[test]
fn its_walk_moves_all_of_a_message() {
    let pass = |receiver: &mut Receiver, _| {
        receiver.counts.out_of_order += 1;
        let flow = flow(receiver);
        let first = flow.received.first_missing;
        flow.received = Bits::default();
        (0..=first).chain([first + 2]).for_each(|psn| assert!(flow.received.insert(psn)));
        flow.received_bytes += 1_500;
        (flow.account.given, flow.account.target) = (flow.account.given + 6, flow.account.target + 6);
    };
    let see = |receiver: &Receiver| {
        let flow = receiver.flows.of(FLOW).expect("it was added");
        let come = (flow.received.first_missing, flow.received.count, flow.received_bytes);
        (come, flow.account.given, flow.account.target, receiver.counts.out_of_order)
    };
    let walk = |receiver: &mut Receiver, walk: &mut Walk| visit(receiver, walk);
    check_moved(&[], PACKET, receiver, walk, pass, see);
}
