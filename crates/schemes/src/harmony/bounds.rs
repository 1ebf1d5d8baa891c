//! What Harmony guarantees on a given network (Theorem 3.1 for links of unequal rates), and what hosts and switches conclude from
//! it: when a packet must have come, how long a reservation can last.
//!
//! **Why queues are bounded.** A packet waits for a link only while its reservation holds one of the link's n virtual links: data
//! come after the rsvp, and the complete that frees comes behind the last data, in the same queue. So at any time the packets that
//! wait for a link belong to at most n slots, whatever came and went before, and each slot's packets leave their source at
//! least a period p/(B/K) apart, and so far apart that a small one never catches up with a large one. Were no packet delayed before, one of each slot could meet: a *round* of n packets, of which one is
//! being transmitted. What they were held up before lets a slot's packets bunch: at the i-th switch the theorem counts i rounds.
//!
//! **Links of unequal rates** have unequal rounds, so the theorem's i (K - 1) p becomes the link's own round and, for each switch
//! before it, as much as the link sends during the longest round of any link. With equal rates that is the theorem's.
//! (#H (n - 1) p would be 0 for a link of one virtual link, where packets that others held up at a faster link still bunch.)
//!
//! **What else is in a round.** A packet of a lower class whose transmission has begun: for as long as one takes, nothing of the round goes and
//! more comes. Rsvps and
//! completes: a complete that waits for a link belongs to a slot that holds it; a rsvp to one that holds the other direction of
//! the cable; and the receiver's complete to one that has just held that. Of each there are at most n. The paper neglects them ("tiny
//! packets").
//!
//! These are the paper's bounds, and what runs are audited by. They are not the last word: from the third switch on
//! an [`adversary`](super::adversary) can exceed Theorem 3.1. Its strict formulas are in [`theory`](super::theory).

use fabric::Fabric;
use node::Site;
use units::{Duration, HostId, LinkId, PerByte, Rate};

use super::Config;
use crate::Ground;

/// Switches that a source route can name, one byte each.
pub const SWITCHES_MAX: u32 = 8;
/// Ports that a byte can name.
pub const PORTS_MAX: usize = 256;

/// The bounds of one network under one configuration.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// #H: switches on the longest of all shortest paths.
    pub switches: u32,
    /// B: the rate of the slowest host's link.
    pub access_rate: Rate,
    /// The rate of a slot: B/K less its part of what control packets have for themselves.
    pub slot_rate: Rate,
    /// The longest that a data packet waits in all switches together.
    pub wait: Duration,
    /// The longest round of any link.
    round: Duration,
    /// The slowest link.
    slowest: Rate,
    k: u32,
    packet_bytes: u64,
    header_bytes: u64,
    data_rtt: Duration,
    control_rtt: Duration,
    delta_admission: Duration,
    attempts: u64,
    per_byte: PerByte,
}

impl Bounds {
    /// Those of a network.
    pub fn new(config: &Config, ground: &Ground) -> Bounds {
        let (fabric, site) = (&*ground.fabric, &ground.site);
        let hosts = (0..fabric.hosts).map(|host| fabric.host_rate(HostId(host)));
        let access = hosts.min().unwrap_or(site.nic_rate);
        let queues = fabric.links.iter().filter(|link| fabric.as_switch(link.from).is_some()).map(|link| link.rate);
        // Every node asks for this, and neighbours in the list are mostly alike.
        let mut rates: Vec<Rate> = queues.collect();
        rates.dedup();
        Bounds::among(config, site, access, &rates)
    }

    /// Those of a network all of whose links are as fast as this host's.
    pub fn uniform(config: &Config, site: &Site) -> Bounds {
        Bounds::among(config, site, site.nic_rate, &[site.nic_rate])
    }

    fn among(config: &Config, site: &Site, access_rate: Rate, queues: &[Rate]) -> Bounds {
        let k = u32::from(config.slots);
        let share = (1.0 - config.control_share) / f64::from(k.max(1));
        // At least one bit a second: a rate of 0 would have no period.
        let slot_rate = access_rate.mul_f64(share).max(Rate::from_bps(1));
        let switches = site.data_rtts.iter().map(|of| u32::from(of.0)).max().unwrap_or(1).max(1);
        let bounds = Bounds {
            switches,
            access_rate,
            slot_rate,
            wait: Duration::ZERO,
            round: Duration::ZERO,
            slowest: access_rate,
            k,
            packet_bytes: u64::from(site.mtu_bytes),
            header_bytes: u64::from(site.header_bytes),
            data_rtt: site.data_rtt,
            control_rtt: site.control_rtt,
            delta_admission: config.delta_admission,
            attempts: u64::from(config.attempts),
            per_byte: slot_rate.per_byte(),
        };
        let rounds_of = queues.iter().map(|&rate| rate.transmit(bounds.round_bytes(rate)));
        let longest = rounds_of.max().unwrap_or(Duration::ZERO);
        let rounds = u64::from(switches) * (u64::from(switches) + 1) / 2;
        let wait = Duration::from_ps(longest.ps().saturating_mul(rounds).min(LONGEST.ps()));
        let slowest = queues.iter().copied().min().unwrap_or(access_rate).min(access_rate);
        Bounds { round: longest.min(LONGEST), wait, slowest: slowest.max(Rate::from_bps(1)), ..bounds }
    }

    /// Virtual links of a link of this rate, and slots of a host whose link it is: as many as B/K goes into it. So a faster link
    /// in the core has more, an oversubscribed one fewer (section 5.2).
    pub fn virtual_links(&self, rate: Rate) -> u32 {
        let links = u128::from(rate.bps()) * u128::from(self.k) / u128::from(self.access_rate.bps().max(1));
        u32::try_from(links).unwrap_or(u32::MAX)
    }

    /// The most bytes of the first class that ever wait for a link of this rate.
    pub fn queue_bytes(&self, rate: Rate) -> u64 {
        let before = Duration::from_ps(self.round.ps().saturating_mul(u64::from(self.switches) - 1));
        self.round_bytes(rate).saturating_add(rate.bytes_in(before))
    }

    /// A packet of each slot that a link of this rate carries, one of a lower class, and control packets.
    fn round_bytes(&self, rate: Rate) -> u64 {
        (u64::from(self.virtual_links(rate)) + 1) * self.packet_bytes + self.control_bytes(rate)
    }

    /// Rsvps, completes of senders and of receivers that can wait for a link of this rate.
    fn control_bytes(&self, rate: Rate) -> u64 {
        3 * u64::from(self.virtual_links(rate)) * self.header_bytes
    }

    /// From a packet's departure to the next that its slot may send.
    pub fn period(&self, wire_bytes: u64) -> Duration {
        self.per_byte.transmit(wire_bytes as u32)
    }

    /// How much later than its slot's clock says a packet must leave that is smaller than the one before it: each link that stores it
    /// takes less time over it, so that it catches up, and nowhere may two of a slot come less than a period apart.
    pub fn catch_up(&self, before: u64, bytes: u64) -> Duration {
        let gained = self.slowest.transmit(before.saturating_sub(bytes)).ps();
        Duration::from_ps(gained.saturating_mul(u64::from(self.switches)).min(LONGEST.ps()))
    }

    /// How long a packet that is due may wait in its own host, whose link has this rate: for one packet of each other slot,
    /// one of another transport, and control packets.
    pub fn slip(&self, nic: Rate) -> Duration {
        let slots = u64::from(self.virtual_links(nic));
        nic.transmit((slots + 1) * self.packet_bytes + self.control_bytes(nic)).min(LONGEST)
    }

    /// How late a packet may come by its slot's clock: it waited in its host and in switches. What is later is a failure: a sender that
    /// could not send for so long, since its own link was down, sends no more in that slot, so that [`Bounds::hold`] is certain.
    pub fn late(&self) -> Duration {
        self.slip(self.access_rate) + self.wait
    }

    /// How much later data can come than a control packet that left behind them.
    pub fn drained(&self) -> Duration {
        self.wait + self.data_rtt.saturating_sub(self.control_rtt)
    }

    /// A receiver's: from a rsvp's departure to the slot's first data, complete or reject, at a sender with as fast a link as B. The
    /// sender's slot may have been used just before.
    pub fn first_data(&self) -> Duration {
        self.round_trip()
            + self.period(self.packet_bytes)
            + self.catch_up(self.packet_bytes, 0)
            + self.slip(self.access_rate)
    }

    /// A receiver's: from one packet of a slot to the next, at such a sender: the first may have waited nowhere.
    pub fn next_data(&self) -> Duration {
        self.period(self.packet_bytes) + self.catch_up(self.packet_bytes, 0) + self.late()
    }

    /// A sender's: from its request's departure to a rsvp or a reject. The receiver may have tried last just before delta_admission,
    /// and that takes a round trip to be refused. Request and reject have no virtual links, so that this is a guess, on the
    /// safe side: all these wait as long as data would. A request that is sent again for nothing does no harm.
    pub fn answer(&self) -> Duration {
        self.delta_admission + self.control_rtt * 2 + self.wait * 4
    }

    /// A sender's: from the last data's departure to the receiver's complete.
    pub fn completion(&self) -> Duration {
        self.round_trip() + self.slip(self.access_rate)
    }

    /// A receiver's: how long a message may still be asked for after it has ended here or failed.
    pub fn patience(&self) -> Duration {
        (self.answer() + self.completion()) * self.attempts
    }

    /// The longest that a reservation of so many bytes is of use to its sender, from the rsvp's departure or passing by: after it, a
    /// complete or reject has been lost. Each packet leaves at most [`Bounds::late`] behind its slot's clock.
    pub fn hold(&self, bytes: u64) -> Duration {
        let packets = bytes / self.packet_bytes.saturating_sub(self.header_bytes).max(1) + 1;
        let sending = self.next_data().ps().saturating_mul(packets);
        Duration::from_ps(self.first_data().ps().saturating_add(sending).min(LONGEST.ps()))
    }

    fn round_trip(&self) -> Duration {
        self.data_rtt + self.wait * 2
    }
}

/// Beyond any run, and so far from the end of time that sums of a few stay before it.
const LONGEST: Duration = Duration::from_ps(u64::MAX / 1024);

/// By link, what [`Bounds::queue_bytes`] says.
pub fn queue_bytes(bounds: &Bounds, fabric: &Fabric) -> Vec<u64> {
    (0..fabric.links.len()).map(|link| bounds.queue_bytes(fabric.link(LinkId::from(link)).rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Harmony's section 5: 100 Gbps to hosts, 400 Gbps to four spines, three switches on a path.
    fn paper(slots: u16, rates: &[Rate]) -> Bounds {
        let site = Site {
            host: HostId(0),
            hosts: 144,
            nic_rate: Rate::from_gbps(100),
            data_rtt: Duration::from_ns(4_600),
            data_rtts: vec![(1, Duration::from_ns(2_000)), (3, Duration::from_ns(4_600))],
            control_rtt: Duration::from_ns(4_300),
            mtu_bytes: 1500,
            header_bytes: 40,
            clock: node::Clock::default(),
            transport: 0,
        };
        Bounds::among(&Config { slots, ..Config::default() }, &site, site.nic_rate, rates)
    }

    const RATES: [Rate; 2] = [Rate::from_gbps(100), Rate::from_gbps(400)];

    #[test]
    fn links_have_as_many_virtual_links_as_slots_go_into_them() {
        let bounds = paper(8, &RATES);
        let of = |gbps| bounds.virtual_links(Rate::from_gbps(gbps));
        assert_eq!([of(100), of(400), of(50), of(25), of(13), of(12)], [8, 32, 4, 2, 1, 0]);
    }

    #[test]
    fn a_round_takes_as_long_on_fast_links_and_the_theorem_s_rounds_add_up() {
        // 8 x (1500 + 120) + 1500 bytes at 100 Gbps: 1.1568 us.
        let bounds = paper(8, &RATES);
        assert_eq!(bounds.wait, Duration::from_ps(6 * 1_156_800));
        assert_eq!(bounds.queue_bytes(Rate::from_gbps(100)), 3 * 14_460);
        // Its own round has one packet of a lower class only; the longest rounds are the slow links'.
        assert_eq!(bounds.queue_bytes(Rate::from_gbps(400)), 32 * 1_620 + 1_500 + 2 * 4 * 14_460);
        // Without control packets and two packets less a round, it is Theorem 3.1.
        let theorem = super::super::theory::queue_max(3, 8, units::Bytes(1500)).get();
        assert_eq!(bounds.queue_bytes(Rate::from_gbps(100)), theorem + 3 * 2 * 1500 + 3 * 3 * 8 * 40);
    }

    #[test]
    fn behind_fast_links_a_slow_one_with_one_virtual_link_has_a_queue_too() {
        let bounds = paper(1, &RATES);
        assert_eq!(bounds.queue_bytes(Rate::from_gbps(100)), 3 * 3_120);
        // Whatever the rates, a packet and its period are what they are at the source.
        assert_eq!(bounds.period(1500), Duration::from_ps(121_213));
    }

    #[test]
    fn what_must_have_come_is_later_than_what_can_come() {
        for slots in [1, 8, 64] {
            let bounds = paper(slots, &RATES);
            assert!(bounds.first_data() >= Duration::from_ns(4_600) + bounds.wait * 2);
            assert!(bounds.next_data() >= bounds.period(1500) + bounds.wait);
            assert!(bounds.hold(1_460 * 10) >= bounds.first_data() + bounds.next_data() * 10);
            assert_eq!(bounds.hold(u64::MAX), LONGEST);
        }
    }

    #[test]
    fn the_slowest_links_overflow_nothing() {
        let slow = Rate::from_bps(1);
        let bounds = paper(1_024, &[slow]);
        let _ = (bounds.patience(), bounds.hold(u64::MAX), bounds.slip(slow), bounds.queue_bytes(slow));
    }
}
