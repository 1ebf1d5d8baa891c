//! Values derived from the configuration and the network, computed once: slots, lanes, and how a packet moves over a
//! path.

use std::sync::Arc;

use fabric::{Fabric, Routes, Tier};
use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId, LinkId, Time};

use super::{Clocks, Config, Granularity, Header};
use contract::NetworkView;

/// Priority class of data packets.
pub(super) const DATA: u8 = 0;
/// Priority class of all other packets. They use gaps of the data, so a schedule is delayed by at most the control
/// packet in transmission.
pub(super) const CONTROL: u8 = 1;

/// A host faster than the slowest, or a core link faster than the hosts, carries several packets in a slot. At most
/// this many starts in a slot are distinguished.
const LANES_MAX: u64 = 16;

#[derive(Clone)]
pub(super) struct Params {
    pub site: EndpointParams,
    pub fabric: Arc<Fabric>,
    pub routes: Arc<Routes>,
    pub arbiter: HostId,
    /// Length of a time slot.
    pub slot: Duration,
    /// Starts in a slot: as many as packets of the fastest link.
    pub lanes: u64,
    /// Time from a decision to its slots: the time to compute it and to tell the sender.
    pub lead: Duration,
    pub processing: Duration,
    pub delta_admission: Duration,
    pub granularity: Granularity,
    clocks: Clocks,
    pub patience: Duration,
    /// How long a sender waits for the arbiter before it asks again, the first time.
    pub ask_again: Duration,
    pub avoid_for: Duration,
    control_slots: u64,
    control_share: f64,
    host_delay: Duration,
    head_bytes: Option<u64>,
    /// Longest time from the last slot of a message to the receiver's answer, if nothing fails.
    pub answer: Duration,
}

/// A full packet at a link: when its first bit leaves, and until when the transmitter is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
pub(super) struct Passage {
    pub begin: Time,
    pub gone: Time,
}

impl Passage {
    pub fn busy(self) -> Duration {
        self.gone - self.begin
    }
}

impl Params {
    pub fn new(config: &Config, site: &EndpointParams, network: &NetworkView) -> Params {
        let (fabric, routes) = (network.fabric.clone(), network.routes.clone());
        let mtu = u64::from(site.mtu_bytes);
        let slowest = (0..fabric.hosts).map(|host| fabric.host_rate(HostId(host))).min().expect("a fabric has hosts");
        let paced = paced(slowest.transmit(mtu), config.control_share);
        let fastest = fabric.links.iter().map(|link| link.rate).max().expect("a fabric has links");
        let lanes = (paced.ps() / fastest.transmit(mtu).ps().max(1)).clamp(1, LANES_MAX);
        let slot = Duration::from_ps(paced.ps().next_multiple_of(lanes));
        let switches = u64::from(site.data_rtts.iter().map(|of| of.0).max().unwrap_or(1));
        let control_way = site.control_rtt / 2;
        // A control packet waits for a gap between data packets at every link, and at the arbiter's link for a slot
        // that is left to control.
        let slack = config.slack.unwrap_or(slot * (u64::from(config.control_slots) + switches));
        let data_way = site.data_rtt - control_way;
        // Over an idle path the arbiter answers within this. Requests are repeated at intervals that double, so that
        // six take 63 times as long.
        let answered = config.processing + control_way * 3 + slack * 2;
        let patience = config.patience.unwrap_or_else(|| {
            let six = Duration::from_ps(answered.ps().saturating_mul(63));
            six.clamp(Duration::from_ms(10), Duration::from_ms(1_000_000))
        });
        Params {
            site: site.clone(),
            fabric,
            routes,
            arbiter: HostId(config.arbiter),
            slot,
            lanes,
            lead: config.processing + control_way + slack,
            processing: config.processing,
            delta_admission: config.delta_admission,
            granularity: config.granularity,
            clocks: config.clocks,
            patience,
            ask_again: config.delta_admission.min(patience / 8) + answered,
            avoid_for: config.avoid_for,
            control_slots: u64::from(config.control_slots),
            control_share: config.control_share,
            host_delay: network.host_delay,
            head_bytes: network.head_bytes,
            answer: data_way + control_way + slack * 2,
        }
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.site.payload_max())).min(u64::from(u32::MAX)) as u32
    }

    /// Whether a message between these hosts may begin in a slot: not in a slot of the arbiter's own host that is left
    /// to control.
    pub fn may_begin(&self, src: HostId, dst: HostId, stride: u64, slot: u64) -> bool {
        !self.leaves_slots(src, dst, stride) || !slot.is_multiple_of(self.control_slots)
    }

    /// The number of strides after the first packet, at `begin`, at which the `index`-th packet of a message leaves:
    /// consecutive slots, except for those left to control.
    pub fn slot_of(&self, src: HostId, dst: HostId, stride: u64, begin: Time, index: u64) -> u64 {
        if !self.leaves_slots(src, dst, stride) {
            return index;
        }
        let turn = begin.ps() / self.slot.ps() % self.control_slots;
        index + (index + turn.saturating_sub(1)) / (self.control_slots - 1)
    }

    /// After this time it is the same slots again that the arbiter's host leaves to control.
    pub fn cycle(&self) -> Duration {
        self.slot * self.control_slots
    }

    /// Whether hosts go by their own clocks.
    pub fn has_own_clocks(&self) -> bool {
        self.clocks == Clocks::Own
    }

    fn leaves_slots(&self, src: HostId, dst: HostId, stride: u64) -> bool {
        stride == 1 && (src == self.arbiter || dst == self.arbiter)
    }

    /// Slots from one packet to the next if the slowest link of the path takes this long for each.
    pub fn stride(&self, slowest: Duration) -> u64 {
        paced(slowest, self.control_share).ps().div_ceil(self.slot.ps())
    }

    /// The first link of a packet that `src` sends at `begin`.
    pub fn first(&self, src: HostId, begin: Time) -> Passage {
        Passage { begin, gone: begin + self.transmission(self.fabric.uplink(src)) }
    }

    /// A packet that passed `from` like this passes `link` next, if nothing is in its way there.
    pub fn next(&self, from: LinkId, passage: Passage, link: LinkId) -> Passage {
        let after = self.fabric.delay(from) + self.delay_at_host(from);
        let head = self.head_bytes.map(|head| passage.begin + self.fabric.link(from).rate.transmit(head));
        let seen = head.map_or(passage.gone, |head| head.min(passage.gone));
        let begin = seen + after;
        // A switch that has begun to forward from a slower link holds the next until the tail is in.
        Passage { begin, gone: (begin + self.transmission(link)).max(passage.gone + after) }
    }

    /// Transmission time of a full packet.
    pub fn transmission(&self, link: LinkId) -> Duration {
        self.fabric.link(link).rate.transmit(u64::from(self.site.mtu_bytes))
    }

    fn delay_at_host(&self, link: LinkId) -> Duration {
        let at_host = matches!(self.fabric.link(link).tier, Tier::FromHost | Tier::ToHost);
        if at_host { self.host_delay } else { Duration::ZERO }
    }

    /// The true time at which this host's clock shows the arbiter's time `at` of the schedule.
    pub fn true_time(&self, at: Time) -> Time {
        match self.clocks {
            Clocks::Synchronised => at,
            Clocks::Own => self.site.clock.true_time(at.ps() as i64),
        }
    }

    /// What this host's clock shows, to the schedule.
    pub fn schedule_time(&self, now: Time) -> Time {
        match self.clocks {
            Clocks::Synchronised => now,
            Clocks::Own => Time::from_ps(self.site.clock.local_ps(now).max(0) as u64),
        }
    }

    /// A control packet.
    pub fn control(&self, flow: FlowId, to: HostId, header: Header) -> Packet {
        let mut packet = self.site.control_packet(flow, to, header);
        packet.class = CONTROL;
        packet
    }
}

/// The time given to a packet with this transmission time, so that a share of every link is left to control.
fn paced(transmission: Duration, control_share: f64) -> Duration {
    Duration::from_ps((transmission.ps() as f64 / (1.0 - control_share)).ceil() as u64)
}
