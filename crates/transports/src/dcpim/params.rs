use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId, Rate, Time};

use super::{Config, Departure, Departures, Header};
use contract::NetworkView;

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: EndpointParams,
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
    /// This host and another whose NIC is no slower.
    pub own: Pair,
    /// Token window over all channels, if it is set.
    token_window: Option<u64>,
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

/// Two hosts. A channel between them is the k-th part of what the slower of their NICs carries.
#[derive(Clone, Copy, node::Saved)]
pub(super) struct Pair {
    /// The rate of the slower NIC.
    pub rate: Rate,
    /// Transmission time of a full packet at that rate.
    pub packet_time: Duration,
    /// Full packets that one channel carries in a data phase.
    pub channel_packets: u32,
    /// Token window over all channels, in packets.
    pub window_packets: u32,
    /// Whether one of the NICs is slower.
    pub unequal: bool,
}

/// The capacity of a host's link that is free for channels, in k-th parts of a bit per second.
#[derive(Clone, Copy)]
pub(super) struct Free(u128);

impl Free {
    /// Nothing.
    pub const NONE: Free = Free(0);

    /// Whether nothing is left.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Channels of this pair that fit.
    pub fn channels(self, pair: &Pair) -> u32 {
        u32::try_from(self.0 / u128::from(pair.rate.bps()).max(1)).unwrap_or(u32::MAX)
    }

    /// Takes channels of this pair.
    pub fn take(&mut self, channels: u32, pair: &Pair) {
        self.0 = self.0.saturating_sub(u128::from(channels) * u128::from(pair.rate.bps()));
    }
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
    pub fn new(config: &Config, site: &EndpointParams, network: &NetworkView) -> Params {
        let departures = config.departures;
        let even = departures.has(Departure::EvenPhase);
        let stages = 2 * i64::from(config.rounds) + i64::from(!even);
        let packet_time = site.nic_rate.transmit(u64::from(site.mtu_bytes));
        let channels = u32::from(config.channels);
        let stage = Duration::from_ps((site.control_rtt.ps() as f64 / 2.0 * config.beta) as u64);
        let (stage, requests_max) = if departures.has(Departure::SlowLinks) {
            // All hosts have stages of one length.
            let slowest = network.narrowest.transmit(u64::from(site.mtu_bytes));
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
        let longer =
            if departures.has(Departure::LooseWindow) { packet_time * u64::from(channels) } else { Duration::ZERO };
        let own = Pair { rate: site.nic_rate, packet_time, channel_packets: 1, window_packets: 1, unequal: false };
        let mut params = Params {
            rounds: config.rounds,
            channels,
            stage,
            stages,
            requests_max: usize::try_from(requests_max).unwrap_or(usize::MAX),
            phase,
            own,
            token_window: config.token_window.map(|bytes| bytes.get()),
            short_bytes: config.short_flow.map_or(bdp_bytes, |bytes| bytes.get()),
            rtt,
            grace: site.control_rtt / 2 + longer,
            lowest_class: config.priorities - 1,
            sizes_known: config.sizes_known,
            departures,
            site: site.clone(),
        };
        params.own = params.pair_at(site.nic_rate);
        params
    }

    fn pair_at(&self, rate: Rate) -> Pair {
        let mtu = u64::from(self.site.mtu_bytes);
        let packet_time = rate.transmit(mtu);
        let channel_packets = self.phase.ps() / packet_time.ps().max(1) / u64::from(self.channels);
        let window_bytes = self.token_window.unwrap_or_else(|| rate.bytes_in(self.rtt));
        Pair {
            rate,
            packet_time,
            channel_packets: channel_packets.clamp(1, u32::MAX.into()) as u32,
            window_packets: window_bytes.div_ceil(mtu).min(1 << 24) as u32,
            unequal: false,
        }
    }

    /// This host and another, which has told this rate in Kbps.
    pub fn pair(&self, kbps: u32) -> Pair {
        let told = Rate::from_bps(u64::from(kbps) * 1000);
        if !self.departs(Departure::SlowerNic) || kbps == 0 || kbps == u32::MAX || kbps == self.kbps(&self.own) {
            return self.own;
        }
        let pair = if told < self.own.rate { self.pair_at(told) } else { self.own };
        Pair { unequal: true, ..pair }
    }

    /// The rate of a pair as packets tell it, in Kbps: the largest number stands for all greater ones.
    pub fn kbps(&self, pair: &Pair) -> u32 {
        let told = pair.rate.bps().div_ceil(1000).min(u32::MAX.into()) as u32;
        if self.departs(Departure::SlowerNic) { told } else { 0 }
    }

    /// The free capacity of this host's link in a phase with these channels.
    pub fn free<'a>(&self, matched: impl Iterator<Item = (u32, &'a Pair)>) -> Free {
        let mut free = Free(u128::from(self.own.rate.bps()) * u128::from(self.channels));
        matched.for_each(|(channels, pair)| free.take(channels, pair));
        free
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

    /// Whether notifications and finishes are answered, and repeated until they are.
    pub fn handshakes(&self) -> bool {
        // Where sizes are not told, a receiver learns from the finish alone where a flow ends.
        !self.departs(Departure::NoHandshakes) || !self.sizes_known
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

    /// Packets in flight that `channels` channels of a pair may have.
    pub fn window(&self, channels: u32, pair: &Pair) -> u32 {
        (pair.window_packets * channels).div_ceil(self.channels)
    }

    /// Time between two tokens on `channels` channels of a pair.
    pub fn pace(&self, channels: u32, pair: &Pair) -> Duration {
        pair.packet_time * u64::from(self.channels) / u64::from(channels)
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

    /// The free capacity of the link in the running data phase with these channels, for channels that begin at once.
    pub fn idle<'a>(&self, matched: impl Iterator<Item = (u32, &'a Pair)>) -> Free {
        if self.departs(Departure::PromptLinks) { self.free(matched) } else { Free::NONE }
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
