use fabric::Fabric;
use link_control::pyrrha::frame::{Frame, RootId};
use node::link::{Dequeued, LinkCx, QueueDiscipline};
use node::pool::{Fifo, PacketId, Transit};
use node::{Packet, Port};
use units::{FlowId, HostId};

use super::*;

/// A flow control of which only the queues can be seen.
#[derive(node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct Still(Vec<QueueView>);

impl QueueDiscipline for Still {
    fn enqueue(&mut self, _: &mut LinkCx<'_>, _: PortId, _: PacketId) -> u32 {
        unreachable!()
    }
    fn dequeue(&mut self, _: &mut LinkCx<'_>, _: PortId) -> Option<Dequeued> {
        unreachable!()
    }
    fn ready(&self, _: &[Port], _: PortId) -> bool {
        unreachable!()
    }
    fn frame(&mut self, _: &mut LinkCx<'_>, _: PortId, _: &Packet) {
        unreachable!()
    }
    fn drain(&mut self, _: &mut LinkCx<'_>, _: PortId) -> Option<PacketId> {
        unreachable!()
    }
    fn push_out(&mut self, _: &mut LinkCx<'_>, _: PortId, _: u8) -> Option<PacketId> {
        unreachable!()
    }
    fn set_up(&mut self, _: &mut LinkCx<'_>, _: PortId, _: bool) {
        unreachable!()
    }
    fn queues(&self, _: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        if port == UPLINK {
            self.0.iter().copied().for_each(see);
        }
    }
    fn held(&self, port: PortId, see: &mut dyn FnMut(Held)) {
        let views = self.0.iter().filter(|view| port == UPLINK && view.paused);
        // A numbered queue is one that the root of host 2 shares with others.
        views.for_each(|view| match view.cause {
            Cause::Root { .. } => see(Held { root: view.cause, shared: false, packets: view.packets }),
            Cause::Queue(_) => see(Held { root: SHARED, shared: true, packets: view.packets }),
            _ => {}
        });
    }
    fn about(&self, _: &Packet) -> Option<Cause> {
        Some(SHARED)
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Leaf 1's port to host 2.
const SHARED: Cause = Cause::Root { node: 1, port: 0, class: 3 };

/// Leaf 0's port to the only spine, after its two hosts'.
const UPLINK: PortId = PortId(2);

/// Leaf 1's port to host 2.
fn to_host_2(fabric: &Fabric) -> Cause {
    let link = fabric.link(Fabric::reverse(fabric.uplink(HostId(2))));
    Cause::Root { node: fabric.as_switch(link.from).unwrap().0, port: link.from_port.0 as u16, class: 3 }
}

/// What leaf 0 is found to hold at its uplink: by queue, for which root and for whom its packets are.
fn kept(queues: &[(bool, Option<Cause>, &[u32])]) -> Kept {
    kept_at(queues, None)
}

/// The same when a frame comes, or at the end.
fn kept_at(queues: &[(bool, Option<Cause>, &[u32])], frame: Option<Frame>) -> Kept {
    let scenario = r#"
        flow_control = "pfc"
        fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 1 }
        [[traffic]]
        sizes = { constant = "1KB" }
        arrivals = "all_at_once"
    "#;
    let plan = Plan::new(&scenario::read(scenario, "scene.toml", &[]).unwrap()).unwrap();
    let mut pool = Pool::default();
    let mut view = |&(paused, cause, to): &(bool, Option<Cause>, &[u32])| {
        let mut packets = Fifo::default();
        for &host in to {
            let mut packet = Packet::bare(FlowId(host), HostId(0), HostId(host));
            (packet.wire_bytes, packet.hops) = (1_000, 1);
            let id = pool.insert(packet, Transit::leaving(Time::ZERO));
            packets.push(&mut pool, id);
        }
        let cause = cause.unwrap_or(to_host_2(&plan.fabric));
        QueueView { cause, paused, root: false, bytes: 1_000 * to.len() as u32, packets }
    };
    let views = queues.iter().map(&mut view).collect();
    let switch = plan.switch(SwitchId(0)).with_flow_control(Some(Box::new(Still(views))));
    let mut congestion = Congestion::new(&plan).unwrap();
    congestion.names_roots = true;
    let slot = SwitchSlot { id: 0, switch, first_link_tx: 0, digest: 0 };
    match frame {
        Some(frame) => congestion.on_frame(Time::ZERO, &slot, UPLINK, &node::link::frame_packet(frame), &pool),
        None => congestion.audit_all(&slot, &pool),
    }
    assert!(congestion.rows.is_empty(), "no sample");
    congestion.kept
}

#[test]
fn a_packet_held_by_a_root_that_it_does_not_meet_is_counted() {
    let Kept { held_packets, wrong_packets, .. } = kept(&[(true, None, &[2, 3, 2])]);
    assert_eq!((held_packets, wrong_packets), (3, 1));
    assert_eq!(kept(&[(false, None, &[2, 3, 2])]).held_packets, 0, "a queue that may send holds nothing");
    assert_eq!(kept(&[(true, Some(Cause::Class(1)), &[3])]).held_packets, 0, "no root's queue");
    // Host 3 itself as the root: node 3 switches later.
    let host_3 = Cause::Root { node: 3 + 3, port: 0, class: 3 };
    assert_eq!(kept(&[(true, Some(host_3), &[2, 3, 2])]).wrong_packets, 2);
}

#[test]
fn two_queues_for_one_root_are_counted() {
    let spine = Cause::Root { node: 2, port: 1, class: 3 };
    let Kept { queues_max, twins, .. } = kept(&[(true, None, &[2]), (true, Some(spine), &[2, 3])]);
    assert_eq!((queues_max, twins), (2, 0));
    assert_eq!(kept(&[(true, None, &[2]), (false, None, &[])]).twins, 1);
}

#[test]
fn a_shared_queue_is_counted_by_itself() {
    let Kept { held_packets, wrong_packets, shared_packets, shared_wrong_packets, .. } =
        kept(&[(true, Some(Cause::Queue(7)), &[2, 3, 3, 2])]);
    assert_eq!((held_packets, wrong_packets, shared_packets, shared_wrong_packets), (0, 0, 4, 2));
}

/// What a root holds is seen before a frame lets it go, and not what another root holds there.
#[test]
fn a_frame_about_a_root_has_what_that_holds_seen() {
    let root = RootId { node: 1, port: 0, class: 3 };
    let queues: &[(bool, Option<Cause>, &[u32])] =
        &[(true, None, &[2, 3, 2]), (true, Some(Cause::Root { node: 2, port: 1, class: 3 }), &[2, 3])];
    let Kept { held_packets, wrong_packets, .. } = kept_at(queues, Some(Frame::Resume { root }));
    assert_eq!((held_packets, wrong_packets), (3, 1));
}
