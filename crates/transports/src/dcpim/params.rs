use node::{Packet, Site};
use units::{Duration, FlowId, HostId, Time};

use super::{Config, Departure, Departures, Header};
use contract::NetworkView;

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: Site,
    /// r.
    pub rounds: u8,
    /// k.
    pub channels: u32,
    /// beta * cRTT / 2, or more with [`Departure::SlowLinks`].
    pub stage: Duration,
    /// Stages of a phase: 2r + 1.
    pub stages: i64,
    /// Most requests of a round, if that is more than the free channels.
    pub requests_max: usize,
    /// Length of a phase.
    pub phase: Duration,
    /// Transmission time of a full packet.
    pub packet_time: Duration,
    /// Full packets that one channel carries in a data phase.
    pub channel_packets: u32,
    /// Token window over all channels, in packets.
    pub window_packets: u32,
    /// Flows of up to this many bytes are short.
    pub short_bytes: u64,
    /// Round trip of two data packets, the RTT of section 3.4.
    pub rtt: Duration,
    /// How long after a data phase its tokens are valid.
    pub grace: Duration,
    pub lowest_class: u8,
    pub sizes_known: bool,
    departures: Departures,
}

/// With [`Departure::SlowLinks`], requests take at most this part of a link, a tenth.
const REQUESTS_SHARE: u64 = 10;
/// With [`Departure::Backoff`], how often the wait for an answer doubles.
const DOUBLINGS_MAX: u32 = 6;
/// The most packets that a sender may claim to send without tokens; more if this host itself would send more.
const UNTOKENED_MAX: u32 = 1 << 20;
/// Priority class of control packets.
pub(super) const CONTROL: u8 = 0;
/// Priority class of short flows.
const SHORT: u8 = 1;

impl Params {
    pub fn new(config: &Config, site: &Site, network: &NetworkView) -> Params {
        let departures = config.departures;
        let even = departures.has(Departure::EvenPhase);
        let stages = 2 * i64::from(config.rounds) + i64::from(!even);
        let packet_time = site.nic_rate.transmit(u64::from(site.mtu_bytes));
        let channels = u32::from(config.channels);
        let stage = Duration::from_ps((site.control_rtt.ps() as f64 / 2.0 * config.beta) as u64);
        let (stage, requests_max) = if departures.has(Departure::SlowLinks) {
            // All hosts have stages of one length.
            let slowest = network.fabric.narrowest_rate().transmit(u64::from(site.mtu_bytes));
            let carries = Duration::from_ps((slowest.ps().saturating_mul(channels.into())).div_ceil(stages as u64));
            let stage = stage.max(carries);
            let control_time = site.nic_rate.transmit(u64::from(site.header_bytes));
            (stage, (stage * 2).ps() / REQUESTS_SHARE / control_time.ps().max(1))
        } else {
            (stage, u64::MAX)
        };
        let phase = stage * stages as u64;
        // Data and control make data_rtt, two controls control_rtt.
        let rtt = site.data_rtt * 2 - site.control_rtt;
        let bdp_bytes = site.nic_rate.bytes_in(rtt);
        let window_bytes = config.token_window.map_or(bdp_bytes, |bytes| bytes.get());
        let longer =
            if departures.has(Departure::LooseWindow) { packet_time * u64::from(channels) } else { Duration::ZERO };
        Params {
            rounds: config.rounds,
            channels,
            stage,
            stages,
            requests_max: usize::try_from(requests_max).unwrap_or(usize::MAX),
            phase,
            packet_time,
            channel_packets: (phase.ps() / packet_time.ps() / u64::from(channels)).max(1) as u32,
            window_packets: window_bytes.div_ceil(u64::from(site.mtu_bytes)).min(1 << 24) as u32,
            short_bytes: config.short_flow.map_or(bdp_bytes, |bytes| bytes.get()),
            rtt,
            grace: site.control_rtt / 2 + longer,
            lowest_class: config.priorities - 1,
            sizes_known: config.sizes_known,
            departures,
            site: site.clone(),
        }
    }

    #[inline]
    pub fn departs(&self, departure: Departure) -> bool {
        self.departures.has(departure)
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.site.payload_max())).min(u64::from(u32::MAX)) as u32
    }

    /// The most packets that a short flow can have.
    pub fn short_packets_max(&self) -> u32 {
        self.packets(self.short_bytes)
    }

    /// Packets of a short flow that come without tokens, those with lower numbers than this: as its sender tells, or by
    /// this host's own NIC.
    pub fn untokened(&self, told: u32) -> u32 {
        if self.departs(Departure::ToldUntokened) {
            told.min(self.short_packets_max().max(UNTOKENED_MAX))
        } else {
            self.short_packets_max()
        }
    }

    /// Class of a short flow's packets.
    pub fn short_class(&self, packets: u32) -> u8 {
        if self.departs(Departure::PriorityBySize) { class_by_size(packets) } else { SHORT }
    }

    /// Class of the packets of a long flow whose sender is `rank`-th of its receiver's.
    pub fn long_class(&self, packets: u32, rank: usize) -> u8 {
        if self.departs(Departure::PriorityBySize) {
            class_by_size(packets)
        } else {
            (usize::from(SHORT) + 1 + rank).min(usize::from(self.lowest_class)) as u8
        }
    }

    /// How long to wait for an answer to a notification or finish that has been repeated so often.
    pub fn patience(&self, repeats: u32) -> Duration {
        let doublings = if self.departs(Departure::Backoff) { repeats.min(DOUBLINGS_MAX) } else { 0 };
        self.rtt * (1 << doublings)
    }

    /// Packets in flight that `channels` channels may have.
    pub fn window(&self, channels: u32) -> u32 {
        (self.window_packets * channels).div_ceil(self.channels)
    }

    /// Time between two tokens on `channels` channels.
    pub fn pace(&self, channels: u32) -> Duration {
        self.packet_time * u64::from(self.channels) / u64::from(channels)
    }

    /// When this host's clock enters a stage. Stages are counted from its zero.
    pub fn stage_at(&self, stage: i64) -> Time {
        self.site.clock.true_time(stage * self.stage.ps() as i64)
    }

    /// The stage that this host is in.
    pub fn stage_now(&self, now: Time) -> i64 {
        self.site.clock.local_ps(now).div_euclid(self.stage.ps() as i64)
    }

    /// When the data phase of a matching phase begins here.
    pub fn data_begins(&self, phase: i64) -> Time {
        self.stage_at((phase + 1) * self.stages)
    }

    /// When the data phase of a receiver begins whose accept of that round has just arrived, assuming that it took half
    /// a control packet's round trip. Accepts are sent when stages begin, that of round i with stage 2i.
    pub fn accepted_data_begins(&self, round: u8, now: Time) -> i64 {
        let to_come = self.stages - 2 * i64::from(round.min(self.rounds));
        let sent = self.site.clock.local_ps(now) - (self.site.control_rtt / 2).ps() as i64;
        sent + to_come * self.stage.ps() as i64
    }

    /// The matching phase of this host whose data phase begins nearest to `begins`, by its clock.
    pub fn phase_of_data(&self, begins: i64) -> i64 {
        let phase = self.phase.ps() as i64;
        (begins + phase / 2).div_euclid(phase) - 1
    }

    /// When the tokens of a receiver expire whose data phase is assumed to begin at `begins` by this host's clock. It
    /// is the end of this host's own data phase of matching phase `phase` if that can be the same one (the accept may
    /// have been delayed by the slack of a stage, and have taken a shorter path than the longest), and otherwise the
    /// end of the receiver's.
    pub fn accepted_tokens_end(&self, phase: i64, begins: i64) -> Time {
        let [length, stage, half_rtt] =
            [self.phase, self.stage, self.site.control_rtt / 2].map(|span| span.ps() as i64);
        let (own, theirs) = ((phase + 2) * length, begins + length);
        let same = (theirs - (stage - half_rtt)..=theirs + half_rtt).contains(&own);
        self.site.clock.true_time(if same { own } else { theirs }) + self.grace
    }

    /// When tokens of a matching phase's data phase expire: section 3.2, "after a grace period".
    pub fn tokens_end(&self, phase: i64) -> Time {
        self.data_begins(phase + 1) + self.grace
    }

    /// A control packet.
    pub fn control(&self, flow: FlowId, to: HostId, header: Header) -> Packet {
        let mut packet = self.site.control_packet(flow, to, header);
        packet.class = CONTROL;
        packet
    }
}

/// The classes of the authors' program: powers of 7 packets.
fn class_by_size(packets: u32) -> u8 {
    (1..6).find(|&class| packets <= 7u32.pow(class)).unwrap_or(6) as u8
}
