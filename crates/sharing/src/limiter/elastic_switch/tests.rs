//! Tests: hypervisors around one switch, whose ports to the hosts may be slower than the hosts' own links.

use std::collections::BTreeMap;

use node::Clock;
use node::packet::{Packet, flags};
use proptest::prelude::*;
use units::{HostId, Time};

use super::*;

const LINK: Rate = Rate::from_gbps(25);
const DELAY: Duration = Duration::from_us(5);
const CONTROL_TRANSPORT: u8 = 7;

struct Net {
    hosts: Vec<Host>,
    /// Rate of the switch's ports, and how long packets may wait there before they are dropped or marked.
    port: Rate,
    wait_max: Duration,
    wait_marked: Duration,
    agenda: BTreeMap<(Time, u64), Happening>,
    happenings: u64,
    offered_packets: u64,
    delivered_packets: u64,
    /// Bytes delivered, by pair.
    delivered: BTreeMap<(u32, u32), u64>,
}

struct Host {
    shaper: Box<dyn Shaper>,
    nic_free: Time,
    tick: Time,
    port_free: Time,
}

enum Happening {
    /// The VM sends this packet at this interval until this time.
    Offer(Packet, Duration, Time),
    Switch(Packet),
    Deliver(Packet),
    Tick(usize),
}

fn site(host: u32, hosts: usize) -> EndpointParams {
    EndpointParams {
        host: HostId(host),
        hosts: hosts as u32,
        nic_rate: LINK,
        data_rtt: Duration::from_us(20),
        data_rtts: Vec::new(),
        control_rtt: Duration::from_us(20),
        mtu_bytes: 1500,
        header_bytes: 64,
        clock: Clock::default(),
        transport: 0,
    }
}

const fn hose(outbound: u64, inbound: u64) -> Hose {
    Hose { outbound: Rate::from_gbps(outbound), inbound: Rate::from_gbps(inbound) }
}

fn guarantees_only() -> Config {
    Config { rate_allocation: RateAllocation::GuaranteesOnly, ..Config::default() }
}

impl Net {
    fn new(config: &Config, hoses: &[Hose]) -> Net {
        let host = |(host, &hose)| Host {
            shaper: config.hypervisor(&site(host, hoses.len()), hose, CONTROL_TRANSPORT),
            nic_free: Time::ZERO,
            tick: Time::MAX,
            port_free: Time::ZERO,
        };
        Net {
            hosts: (0..).zip(hoses).map(host).collect(),
            port: LINK,
            wait_max: Duration::from_ms(1000),
            wait_marked: Duration::from_ms(1000),
            agenda: BTreeMap::new(),
            happenings: 0,
            offered_packets: 0,
            delivered_packets: 0,
            delivered: BTreeMap::new(),
        }
    }

    /// The VM at `src` sends full packets at `rate`.
    fn offer(&mut self, (src, dst): (u32, u32), rate: Rate, from: Time, until: Time) {
        let mut packet = Packet::bare(FlowId(0), HostId(src), HostId(dst));
        packet.wire_bytes = 1500;
        packet.flags = flags::ECT;
        self.at(from, Happening::Offer(packet, rate.transmit(1500), until));
    }

    fn at(&mut self, time: Time, happening: Happening) {
        self.happenings += 1;
        self.agenda.insert((time, self.happenings), happening);
    }

    fn run(&mut self, until: Time) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 < until) {
            let ((now, _), happening) = entry.remove_entry();
            match happening {
                Happening::Offer(packet, gap, end) => {
                    let src = packet.src.index();
                    self.offered_packets += 1;
                    self.hosts[src].shaper.enqueue(now, packet);
                    if now + gap < end {
                        self.at(now + gap, Happening::Offer(packet, gap, end));
                    }
                    self.pump(now, src);
                }
                Happening::Switch(packet) => self.switch(now, packet),
                Happening::Deliver(packet) => {
                    let dst = packet.dst.index();
                    if self.hosts[dst].shaper.receive(now, &packet) {
                        self.delivered_packets += 1;
                        *self.delivered.entry((packet.src.0, packet.dst.0)).or_default() += 1500;
                    }
                    self.pump(now, dst);
                }
                Happening::Tick(host) => {
                    if self.hosts[host].tick == now {
                        self.hosts[host].tick = Time::MAX;
                        self.hosts[host].shaper.wake(now);
                        assert!(self.hosts[host].shaper.poll_at() > now, "what has come is not waited for");
                        self.pump(now, host);
                    }
                }
            }
        }
    }

    fn switch(&mut self, now: Time, mut packet: Packet) {
        let host = &mut self.hosts[packet.dst.index()];
        let wait = host.port_free.since(now);
        if wait > self.wait_max {
            return;
        }
        if wait > self.wait_marked && packet.has(flags::ECT) {
            packet.flags |= flags::CE;
        }
        host.port_free = host.port_free.max(now) + self.port.transmit(u64::from(packet.wire_bytes));
        let arrival = host.port_free + DELAY;
        self.at(arrival, Happening::Deliver(packet));
    }

    fn pump(&mut self, now: Time, index: usize) {
        let host = &mut self.hosts[index];
        let sent = if host.nic_free <= now { host.shaper.poll_transmit(now) } else { None };
        if let Some(packet) = sent {
            host.nic_free = now + LINK.transmit(u64::from(packet.wire_bytes));
        }
        let due = host.shaper.poll_at();
        let next = if host.nic_free > now { due.min(host.nic_free) } else { due };
        let (arrival, stale) = (host.nic_free + DELAY, host.tick != next);
        host.tick = next;
        if stale && next < Time::MAX {
            self.at(next, Happening::Tick(index));
        }
        if let Some(packet) = sent {
            self.at(arrival, Happening::Switch(packet));
        }
    }

    /// Rate at which the pair's packets arrive in the `span` that begins now, in Gbps.
    fn gbps(&mut self, from: Time, span: Duration, pairs: &[(u32, u32)]) -> Vec<f64> {
        self.run(from);
        self.delivered.clear();
        self.run(from + span);
        let bits = |pair| *self.delivered.get(pair).unwrap_or(&0) as f64 * 8.0;
        pairs.iter().map(|pair| bits(pair) / (span.secs_f64() * 1e9)).collect()
    }

    fn counter(&self, name: &str) -> u64 {
        let counters = self.hosts.iter().flat_map(|host| host.shaper.counters());
        counters.filter(|(counter, _)| *counter == name).map(|(_, count)| count).sum()
    }
}

#[track_caller]
fn assert_near(found: &[f64], right: &[f64]) {
    let near = |(found, right): (&f64, &f64)| (found - right).abs() <= 0.02 * right;
    assert!(found.len() == right.len() && found.iter().zip(right).all(near), "{found:?}, not {right:?}");
}

const MS: Duration = Duration::from_ms(1);
const FOREVER: Time = Time::MAX;

#[test]
fn a_sender_divides_its_hose_among_its_receivers() {
    let mut net = Net::new(&guarantees_only(), &[hose(5, 25), hose(25, 25), hose(25, 25)]);
    net.offer((0, 1), LINK, Time::ZERO, FOREVER);
    net.offer((0, 2), LINK, Time::ZERO, FOREVER);
    assert_near(&net.gbps(Time::from_ms(1), MS * 40, &[(0, 1), (0, 2)]), &[2.5, 2.5]);
}

#[test]
fn a_receiver_divides_its_hose_among_its_senders() {
    // Table 3 of Augmented Queue: B, C and D send to A, whose inbound guarantee is 5 Gbps.
    let mut net = Net::new(&guarantees_only(), &[hose(5, 5), hose(25, 25), hose(25, 25), hose(25, 25)]);
    (1..4).for_each(|src| net.offer((src, 0), Rate::from_gbps(10), Time::ZERO, FOREVER));
    let third = 5.0 / 3.0;
    assert_near(&net.gbps(Time::from_ms(1), MS * 40, &[(1, 0), (2, 0), (3, 0)]), &[third; 3]);
}

#[test]
fn the_lesser_end_counts_and_what_it_leaves_goes_to_another_pair() {
    // Y (1) receives from X (0) and W (3): 2 each. X's hose is 6, so Z (2) gets 4 of it.
    let mut net = Net::new(&guarantees_only(), &[hose(6, 25), hose(25, 4), hose(25, 25), hose(25, 25)]);
    for pair in [(0, 1), (0, 2), (3, 1)] {
        net.offer(pair, Rate::from_gbps(10), Time::ZERO, FOREVER);
    }
    let pairs = [(0, 1), (0, 2), (3, 1)];
    assert_near(&net.gbps(Time::from_ms(1), MS * 60, &pairs), &[2.0, 4.0, 2.0]);
}

#[test]
fn what_a_modest_pair_leaves_goes_to_another_after_a_period() {
    let mut net = Net::new(&guarantees_only(), &[hose(6, 25), hose(25, 25), hose(25, 25)]);
    net.offer((0, 1), Rate::from_gbps(1), Time::ZERO, FOREVER);
    net.offer((0, 2), LINK, Time::ZERO, FOREVER);
    assert_near(&net.gbps(Time::from_ms(1), MS * 13, &[(0, 1), (0, 2)]), &[1.0, 3.0]);
    // 1 Gbps and a tenth of a share of 3 are kept for the pair with bounded demand.
    assert_near(&net.gbps(Time::from_ms(16), MS * 40, &[(0, 1), (0, 2)]), &[1.0, 4.7]);
}

#[test]
fn a_new_pair_gets_its_share_at_once_and_a_silent_one_loses_it_after_a_period() {
    let mut net = Net::new(&guarantees_only(), &[hose(25, 6), hose(25, 25), hose(25, 25)]);
    let pairs = [(1, 0), (2, 0)];
    net.offer((1, 0), Rate::from_gbps(10), Time::ZERO, FOREVER);
    net.offer((2, 0), Rate::from_gbps(10), Time::from_ms(20), Time::from_ms(50));
    assert_near(&net.gbps(Time::from_ms(1), MS * 19, &pairs), &[6.0, 0.0]);
    // Periods end at 30, 45 and so on; half a millisecond is left for reports to spread and old packets to arrive.
    assert_near(&net.gbps(Time::from_us(20_500), MS * 9, &pairs), &[3.0, 3.0]);
    // The thousand packets that wait when the second falls silent are gone after 4 ms.
    assert_near(&net.gbps(Time::from_ms(77), MS * 20, &pairs), &[6.0, 0.0]);
}

#[test]
fn without_rate_allocation_no_pair_exceeds_its_guarantee_on_an_idle_network() {
    let mut net = Net::new(&guarantees_only(), &[hose(5, 25), hose(25, 25)]);
    net.offer((0, 1), LINK, Time::ZERO, FOREVER);
    assert_near(&net.gbps(Time::from_ms(1), MS * 100, &[(0, 1)]), &[5.0]);
}

#[test]
fn with_rate_allocation_a_lone_pair_takes_the_idle_network() {
    let mut net = Net::new(&Config::default(), &[hose(5, 25), hose(25, 25)]);
    net.offer((0, 1), LINK, Time::ZERO, FOREVER);
    let rate = net.gbps(Time::from_ms(100), MS * 20, &[(0, 1)])[0];
    assert!(rate > 0.98 * 25.0, "{rate}");
    assert_eq!(net.counter("limiter_congested_intervals"), 0);
}

/// Two pairs share a port of 10 Gbps, with guarantees of 1 and 3 Gbps.
fn contend(spoil: impl Fn(&mut Net)) {
    let mut net = Net::new(&Config::default(), &[hose(1, 25), hose(3, 25), hose(25, 25)]);
    net.port = Rate::from_gbps(10);
    spoil(&mut net);
    net.offer((0, 2), LINK, Time::ZERO, FOREVER);
    net.offer((1, 2), LINK, Time::ZERO, FOREVER);
    let rates = net.gbps(Time::from_ms(100), MS * 300, &[(0, 2), (1, 2)]);
    assert!(net.counter("limiter_congested_intervals") > 10);
    assert!(rates[0] >= 1.0 && rates[1] >= 3.0, "guarantees hold: {rates:?}");
    // The rate is cut to seven tenths when the port is full, and grows again from there.
    assert!(rates[0] + rates[1] > 7.0, "and more where there is room: {rates:?}");
    assert!(rates[1] > rates[0], "by weight: {rates:?}");
}

#[test]
fn pairs_share_what_is_left_and_back_off_from_losses() {
    contend(|net| net.wait_max = Duration::from_us(100));
}

#[test]
fn pairs_share_what_is_left_and_back_off_from_marks() {
    contend(|net| net.wait_marked = Duration::from_us(50));
}

#[test]
fn a_lost_packet_is_a_sign_of_congestion_once() {
    let mut incoming = incoming::Incoming::new(LINK);
    let packet = Packet::bare(FlowId(0), HostId(1), HostId(0));
    let signs = |incoming: &mut incoming::Incoming| {
        incoming.end_interval();
        incoming.next_report().map(|(_, _, signs)| signs)
    };
    (0..8).for_each(|_| incoming.data(Time::ZERO, &packet));
    incoming.counted(Time::ZERO, HostId(1), 8);
    assert_eq!(signs(&mut incoming), Some(0), "the first report tells its guarantee");
    incoming.counted(Time::ZERO, HostId(1), 10);
    assert_eq!(signs(&mut incoming), Some(2));
    (0..5).for_each(|_| incoming.data(Time::ZERO, &packet));
    incoming.counted(Time::ZERO, HostId(1), 15);
    assert_eq!(signs(&mut incoming), None, "still the same two");
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let refused = |config: Config| config.check().unwrap_err().key;
    assert_eq!(Config::default().check(), Ok(()));
    assert_eq!(refused(Config { period: Duration::ZERO, ..Config::default() }), "period");
    assert_eq!(refused(Config { demand_headroom: f64::NAN, ..Config::default() }), "demand_headroom");
    let probing = Probing { decrease: 1.5, ..Probing::default() };
    let rate_allocation = RateAllocation::WorkConserving(probing);
    assert_eq!(refused(Config { rate_allocation, ..Config::default() }), "rate_allocation.work_conserving.decrease");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn packets_are_delivered_or_dropped_and_counted_and_hoses_are_kept(
        hoses in prop::collection::vec((1u64..5, 1u64..5), 3),
        offers in prop::collection::vec((0u32..3, 1u32..3, 1u64..25, 0u64..20_000, 1u64..20_000), 1..6),
    ) {
        let hoses: Vec<Hose> = hoses.into_iter().map(|(outbound, inbound)| hose(outbound, inbound)).collect();
        let mut net = Net::new(&Config { queue_packets: 50, ..guarantees_only() }, &hoses);
        for (src, hop, gbps, from, span) in offers {
            let from = Time::from_us(from);
            net.offer((src, (src + hop) % 3), Rate::from_gbps(gbps), from, from + Duration::from_us(span));
        }
        net.run(Time::from_ms(40));
        for (host, hose) in (0..).zip(&hoses) {
            let sent: u64 = net.delivered.iter().filter(|((src, _), _)| *src == host).map(|(_, bytes)| bytes).sum();
            // Two pairs, a burst of a packet each.
            prop_assert!(sent <= hose.outbound.bytes_in(Duration::from_ms(40)) + 3000);
        }
        net.run(Time::from_ms(200));
        prop_assert_eq!(net.counter("limiter_passed_packets"), net.delivered_packets);
        prop_assert_eq!(net.counter("limiter_dropped_packets") + net.delivered_packets, net.offered_packets);
        prop_assert!(net.agenda.is_empty(), "nothing happens at hosts that are silent");
    }
}
