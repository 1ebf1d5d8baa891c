use node::PortStats;

use super::*;
use crate::testing::{self, Memory};
use crate::{Driver, digest, sender_stats};

/// Counts what it is told.
#[derive(Default, node::State)]
#[state(fixed)]
struct Count {
    arrivals: u64,
    frames: u64,
    enqueues: u64,
    departures: u64,
    drops: u64,
    samples: u64,
    ends: u64,
}

impl Probe for Count {
    fn wants(&self) -> Wants {
        Wants {
            arrivals: true,
            frames: true,
            hosts: true,
            enqueues: true,
            departures: true,
            changes: true,
            drops: true,
            samples: true,
        }
    }

    fn on_arrival(&mut self, _: Time, _: &HostSlot, _: &Packet, _: &Transit) {
        self.arrivals += 1;
    }

    fn on_frame(&mut self, _: Time, _: &SwitchSlot, _: PortId, _: &Packet, _: &Pool) {
        self.frames += 1;
    }

    fn on_enqueue(&mut self, _: Time, _: &SwitchSlot, _: PortId) {
        self.enqueues += 1;
    }

    fn on_departure(&mut self, now: Time, from: NodePort, leaving: Leaving<'_>) {
        assert!(leaving.last > now);
        assert!(leaving.transit.at <= now && (from.is_switch || leaving.waiting_bytes == 0));
        self.departures += 1;
    }

    fn on_drop(&mut self, _: Time, at: NodePort, packet: &Packet, why: Loss) {
        assert!(at.is_switch, "{at:?}");
        assert_eq!((why, packet.payload_bytes > 0), (Loss::Overflow, true));
        self.drops += 1;
    }

    fn on_sample(&mut self, _: Time, _: View<'_>) {
        self.samples += 1;
    }

    fn end(&mut self, _: View<'_>) {
        self.ends += 1;
    }
}

/// Five hosts send 100 KB each to host 0 at once; links of 100 Gbps, 500 us in all.
fn incast(settings: &str) -> Plan {
    incast_of("udp", settings)
}

fn incast_of(transport: &str, settings: &str) -> Plan {
    let text = format!(
        r#"
        timing = "ideal"
        transport = "{transport}"
        {settings}
        measure = {{ end = "500us", interval = "10us" }}
        fabric.star.hosts = 6
        [[traffic]]
        sizes.constant = "100KB"
        arrivals = "all_at_once"
        pattern.incast.degree = 5
        receivers = "0"
        flows = 5
        "#
    );
    Plan::new(&scenario::read(&text, "scene.toml", &[]).unwrap()).unwrap()
}

/// What the senders of all links counted, added up.
fn sent<P: Probe>(driver: &Driver<Memory, P>) -> PortStats {
    let stats = driver.links.link_txs.iter().map(|link_tx| sender_stats(driver, link_tx, Time::MAX));
    stats.fold(PortStats::default(), |sum, one| PortStats {
        sent_packets: sum.sent_packets + one.sent_packets,
        overflow_packets: sum.overflow_packets + one.overflow_packets,
        sent_frames: sum.sent_frames + one.sent_frames,
        ..sum
    })
}

#[test]
fn a_probe_is_told_of_every_packet() {
    let plan = incast("switch.buffer.per_port.bytes = '30KB'");
    let driver = &testing::run(&plan, 1, Count::default)[0];
    let (seen, sent) = (&driver.probe, sent(driver));
    assert!(sent.overflow_packets > 100);
    assert_eq!((seen.departures, seen.drops), (sent.sent_packets, sent.overflow_packets));
    // Each crosses the link to the switch; what is not lost there waits, goes on and arrives.
    assert_eq!(driver.packet_hops, seen.arrivals + seen.drops + seen.enqueues);
    assert_eq!(seen.arrivals, driver.hosts[0].host.received_packets);
    assert_eq!((seen.frames, seen.ends), (0, 1));
    // At 10 us and so on, up to the end, which is not in it.
    assert!(seen.samples > 3 && seen.samples <= 49, "{}", seen.samples);
}

#[test]
fn a_probe_is_told_of_packets_that_were_let_in_and_make_room_for_others() {
    // By pFabric a packet with fewer bytes left takes the place of one with more.
    let driver = &testing::run(&incast_of("pfabric", ""), 1, Count::default)[0];
    let (seen, sent) = (&driver.probe, sent(driver));
    assert!(sent.overflow_packets > 20, "{}", sent.overflow_packets);
    assert_eq!(seen.drops, sent.overflow_packets);
    // Those that were pushed out have waited, and never left.
    let waited = seen.enqueues + seen.drops + seen.arrivals;
    assert!(waited > driver.packet_hops, "{waited} of {}", driver.packet_hops);
}

#[test]
fn a_probe_is_told_of_frames_between_neighbours() {
    let plan = incast("flow_control = 'pfc'\nswitch.buffer.shared.bytes = '300KB'");
    let driver = &testing::run(&plan, 1, Count::default)[0];
    // The switch pauses hosts, who are told otherwise; nobody tells the switch anything.
    assert!(sent(driver).sent_frames > 0);
    assert_eq!((driver.probe.frames, driver.probe.drops), (0, 0));
    let plan = incast("flow_control = 'pyrrha'\nhost.intake_rate = '10Gbps'\nswitch.buffer.shared.bytes = '600KB'");
    let driver = &testing::run(&plan, 1, Count::default)[0];
    // Host 0 takes in a tenth of what its link brings, and says so. All frames have come to the other ends of links.
    assert!(driver.probe.frames > 0);
    let PortStats { sent_packets, sent_frames, .. } = sent(driver);
    assert_eq!(sent_packets + sent_frames, driver.packet_hops);
}

#[test]
fn who_watches_changes_nothing() {
    let history = |driver: &Driver<Memory, Count>| digest(driver.switches.iter(), driver.hosts.iter());
    let plan = incast("switch.buffer.per_port.bytes = '30KB'");
    let watched = testing::run(&plan, 1, Count::default);
    let alone = testing::run(&plan, 1, || ());
    assert_eq!(history(&watched[0]), digest(alone[0].switches.iter(), alone[0].hosts.iter()));
    assert_eq!(watched[0].packet_hops, alone[0].packet_hops);
    assert!(watched[0].probe.samples > 0);
    assert_eq!(watched[0].events, alone[0].events);
}
