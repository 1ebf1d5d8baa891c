//! Scenes of one host whose endpoints always have something to send.

use node::PollAt;

use super::*;

/// Sends packets of a class for as long as there are some, if the gate lets it.
#[derive(node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct Stub {
    transport: u8,
    class: u8,
    left: u32,
}

impl Endpoint for Stub {
    fn handle(&mut self, _: &mut Cx<'_>, _: Input<'_>) {}

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if self.left == 0 || !cx.gate.open(self.class) {
            return None;
        }
        self.left -= 1;
        let mut packet = Packet::bare(FlowId(u32::from(self.transport)), HostId(0), HostId(1));
        (packet.class, packet.transport, packet.wire_bytes) = (self.class, self.transport, 100);
        Some(packet)
    }

    fn poll_at(&self) -> PollAt {
        PollAt::OnArrival
    }
}

/// A NIC that has been told to hold classes and flows.
#[derive(node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct HeldNic {
    classes: u8,
    flow: FlowId,
    epoch: u32,
}

impl NicControl for HeldNic {
    /// Its flow may go from now on.
    fn frame(&mut self, _: Time, _: &Packet) {
        (self.flow, self.epoch) = (FlowId(u32::MAX), 1);
    }
    fn reset(&mut self, _: bool) {}
    fn paused_classes(&self) -> u8 {
        self.classes
    }
    fn held_classes(&self) -> u8 {
        !1
    }
    fn lets(&self, _: u8, flow: FlowId, _: HostId, _: u8, _: u32) -> bool {
        flow != self.flow
    }
    fn epoch(&self) -> u32 {
        self.epoch
    }
}

fn host(stubs: &[(u8, u32)], nic: Option<HeldNic>, reserved: Option<(usize, u8)>) -> Host {
    let stub = |(transport, &(class, left)): (usize, &(u8, u32))| {
        Box::new(Stub { transport: transport as u8, class, left }) as Box<dyn Endpoint>
    };
    let nic = nic.map(|nic| Box::new(nic) as Box<dyn NicControl>);
    let flows = Arc::new(FlowTable::new(Vec::new(), 2));
    Host::new(HostId(0), stubs.iter().enumerate().map(stub).collect(), None, nic, None, flows, 1)
        .with_reserved(reserved)
}

/// Transport and class of all that leaves.
fn sent(host: &mut Host) -> Vec<(u8, u8)> {
    std::iter::from_fn(|| host.pull(Time::ZERO)).map(|packet| (packet.transport, packet.class)).collect()
}

#[test]
fn transports_take_turns_in_their_own_classes() {
    assert_eq!(sent(&mut host(&[(0, 2), (7, 2)], None, None)), [(0, 0), (1, 7), (0, 0), (1, 7)]);
}

#[test]
fn what_reserves_goes_first_and_the_others_below_it_in_turn() {
    let order = [(1, 1), (1, 1), (0, 2), (2, 7), (0, 2), (2, 7)];
    assert_eq!(sent(&mut host(&[(0, 2), (1, 2), (6, 2)], None, Some((1, 2)))), order);
}

#[test]
fn a_paused_class_is_that_of_the_packets_that_go_there() {
    let paused = |classes| Some(HeldNic { classes, flow: FlowId(u32::MAX), epoch: 0 });
    let stubs = [(0, 1), (1, 1), (0, 1), (5, 1)];
    assert_eq!(sent(&mut host(&stubs, paused(1 << 2), Some((1, 2)))), [(1, 1), (3, 7)]);
    assert_eq!(sent(&mut host(&stubs, paused(1 << 7), Some((1, 2)))), [(1, 1), (0, 2), (2, 2)]);
}

#[test]
fn what_the_nic_has_held_does_not_go_before_what_reserves() {
    let nic = HeldNic { classes: 0, flow: FlowId(0), epoch: 0 };
    let mut host = host(&[(1, 2), (0, 1)], Some(nic), Some((1, 1)));
    let frame = Packet::bare(FlowId(0), HostId(1), HostId(0));
    // The first packet is the other's; then flow 0, asked, is held.
    assert_eq!(sent(&mut host), [(1, 0)]);
    host.frame(Time::ZERO, PortId(0), &frame);
    host.transports[1].endpoint = Box::new(Stub { transport: 1, class: 0, left: 1 });
    assert_eq!(sent(&mut host), [(1, 0), (0, 2), (0, 2)]);
}
