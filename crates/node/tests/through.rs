//! A packet that goes straight through an idle port leaves the switch, and itself, as its port's queue would have.

use std::sync::Arc;

use clearway_node as node;
use fabric::{FabricSpec, Failures, Routes};
use node::balance::Balancer;
use node::packet::flags;
use node::pool::{Hop, PacketId, Pool, TailLag, Transit};
use node::{Balancing, Buffer, EarlyDrop, MarkAt, Marking, Overflow, Packet, Port, Received, Settings, Switch};
use proptest::prelude::*;
use units::{Bytes, Duration, FlowId, HostId, PortId, Rate, Stream, SwitchId, Time};

const PORTS: u32 = 3;

/// A switch, and all that has left it: the port, when, and the packet with its history.
struct Side {
    switch: Switch,
    pool: Pool,
    left: Vec<String>,
    through: usize,
}

/// A packet that comes to the switch: the time since the one before, its destination, class, size and flags, and the
/// time from its head to its tail.
type Coming = (u64, u32, u8, u16, u8, u64);

impl Side {
    fn new(settings: Settings, through: bool) -> Side {
        let fabric = FabricSpec::Star(fabric::Star { hosts: PORTS, ..Default::default() }).build().unwrap();
        let port = |rate| Port::new(Rate::from_gbps(rate), Hop::Last, &settings.levels);
        let mut switch = Switch::new(
            SwitchId(0),
            [100, 40, 10].map(port).into(),
            Arc::new(Routes::compute(&fabric, &Failures::default())),
            vec![Balancer::new(Balancing::Ecmp, 7, Stream::new(1, 0, "balance"))],
            Arc::new(settings),
            Stream::new(1, 0, "mark"),
            None,
        );
        if through {
            switch.let_through();
        }
        Side { switch, pool: Pool::default(), left: Vec::new(), through: 0 }
    }

    /// Sends what may leave before `until`, in the order of time.
    fn send(&mut self, until: Time) {
        let next = |switch: &Switch| {
            let ready = (0..PORTS).map(PortId).filter(|&port| switch.has_sendable(port));
            ready.map(|port| (switch.port(port).free_at(), port.0)).min()
        };
        while let Some((at, port)) = next(&self.switch).filter(|of| of.0 < until) {
            let id = self.switch.transmit(at, PortId(port), &mut self.pool).unwrap();
            self.leave(at, PortId(port), id);
        }
    }

    fn receive(&mut self, now: Time, packet: Packet, lag: Duration) {
        let mut transit = Transit::default();
        transit.tail_lag = TailLag::of(lag);
        let id = self.pool.insert(packet, transit);
        if packet.has(flags::TELEMETRY) {
            *self.pool.telemetry_mut(id) = Default::default();
        }
        match self.switch.receive(now, PortId(0), &mut self.pool, id) {
            Received::Through(port) => {
                self.through += 1;
                self.leave(now, port, id);
            }
            Received::Queued(port) if self.switch.port(port).free_at() <= now => {
                let id = self.switch.transmit(now, port, &mut self.pool).unwrap();
                self.leave(now, port, id);
            }
            Received::Queued(_) => {}
            other => self.left.push(format!("{now:?} {other:?}")),
        }
    }

    fn leave(&mut self, now: Time, port: PortId, id: PacketId) {
        let told = self.pool.get(id).packet.has(flags::TELEMETRY).then(|| format!("{:?}", self.pool.telemetry_mut(id)));
        let free_at = self.switch.port(port).free_at();
        let node::pool::Slot { packet, transit } = self.pool.remove(id);
        let Transit { at, queued, in_port, tail_lag, .. } = transit;
        self.left
            .push(format!("{now:?} {port:?} {free_at:?} {packet:?} {at:?} {queued:?} {in_port} {tail_lag:?} {told:?}"));
    }

    /// All that results show of the switch.
    fn shown(&self) -> String {
        let port = |port: &Port| (port.stats, port.free_at(), port.queued_bytes());
        let ports: Vec<_> = self.switch.ports().iter().map(port).collect();
        format!("{ports:?} {} {}", self.switch.used_bytes(), self.switch.used_bytes_max)
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    let buffer = prop_oneof![
        (1_000u64..9_000).prop_map(|bytes| Buffer::PerPort { bytes: Bytes(bytes) }),
        (1_000u64..9_000, prop::option::of(0.2f64..2.0))
            .prop_map(|(bytes, alpha)| Buffer::Shared { bytes: Bytes(bytes), alpha }),
    ];
    let marking = prop_oneof![
        Just(None),
        (0u64..4_000).prop_map(|bytes| Some(Marking::Step { threshold: Bytes(bytes) })),
        Just(Some(Marking::Ramp { min: Bytes(500), max: Bytes(3_000), probability_max: 0.5, per: None })),
    ];
    let overflow = prop_oneof![Just(Overflow::TailDrop), Just(Overflow::PushOut), Just(Overflow::Trim)];
    let levels = prop_oneof![Just(vec![]), Just(vec![vec![1, 2]])];
    let early = prop::option::weighted(0.2, 0u64..4_000);
    (buffer, marking, overflow, levels, any::<bool>(), early).prop_map(
        |(buffer, marking, overflow, levels, late, early)| {
            let drops = |at| Some(EarlyDrop { at: Marking::Step { threshold: Bytes(at) }, by_port: true });
            Settings {
                buffer,
                overflow,
                levels,
                marking: vec![marking],
                mark_at: if late { MarkAt::Departure } else { MarkAt::Arrival },
                early_drop: early.map(|at| vec![drops(at)]).unwrap_or_default(),
                header_bytes: 40,
            }
        },
    )
}

fn coming() -> impl Strategy<Value = Vec<Coming>> {
    let some = prop_oneof![Just(0), Just(flags::ECT), Just(flags::ECT | flags::TELEMETRY)];
    let later = prop_oneof![Just(0), 1u64..400_000];
    let lag = prop_oneof![Just(0), 1u64..2_000_000];
    prop::collection::vec((later, 0..PORTS, 0u8..4, 40u16..1_501, some, lag), 1..60)
}

proptest! {
    #[test]
    fn a_packet_through_an_idle_port_leaves_as_from_its_queue(settings in settings(), coming in coming()) {
        let [mut queued, mut through] = [false, true].map(|through| Side::new(settings.clone(), through));
        let mut now = Time::ZERO;
        for (number, (later, dst, class, bytes, set, lag)) in coming.into_iter().enumerate() {
            now += Duration::from_ps(later);
            let mut packet = Packet::bare(FlowId(number as u32), HostId(0), HostId(dst));
            (packet.wire_bytes, packet.payload_bytes, packet.class, packet.flags) = (bytes, bytes - 40, class, set);
            for side in [&mut queued, &mut through] {
                side.send(now);
                side.receive(now, packet, Duration::from_ps(lag));
            }
            prop_assert_eq!(queued.shown(), through.shown());
        }
        for side in [&mut queued, &mut through] {
            side.send(Time::MAX);
        }
        prop_assert_eq!(&queued.left, &through.left);
        prop_assert_eq!(queued.shown(), through.shown());
        prop_assert_eq!(queued.through, 0);
        prop_assert!(settings.levels.is_empty() || through.through == 0, "round robin counts turns");
    }
}

/// Of two packets at an idle port the first goes through and the second waits.
#[test]
fn the_first_goes_through_and_the_next_waits() {
    let settings = Settings {
        buffer: Buffer::PerPort { bytes: Bytes(15_000) },
        overflow: Overflow::TailDrop,
        levels: Vec::new(),
        marking: vec![None],
        mark_at: MarkAt::default(),
        early_drop: Vec::new(),
        header_bytes: 40,
    };
    let mut side = Side::new(settings, true);
    for _ in 0..2 {
        let mut packet = Packet::bare(FlowId(0), HostId(0), HostId(1));
        packet.wire_bytes = 1_500;
        side.receive(Time::ZERO, packet, Duration::ZERO);
    }
    assert_eq!((side.through, side.left.len(), side.switch.port(PortId(1)).queued_bytes()), (1, 1, 1_500));
}
