use node::packet::flags;
use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId};

use super::aeolus::Queue;
use super::traffic::{Levels, Traffic};
use super::{Config, Header};
use contract::NetworkView;

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: EndpointParams,
    /// RTTbytes, in full packets.
    pub rtt_packets: u32,
    priorities: u8,
    unscheduled: Option<u8>,
    /// Sizes between unscheduled levels, if fixed.
    cutoffs: Vec<u64>,
    overcommitment: Option<u8>,
    /// How long a receiver waits for packets in flight before it requests them again.
    pub resend_after: Duration,
    /// How long a sender waits for any packet. This is longer, since a receiver that knows the message knows better
    /// what to request.
    pub ask_after: Duration,
    pub graduated: bool,
    /// Where unscheduled packets queue, if they may be dropped early (Aeolus).
    pub aeolus: Option<Queue>,
}

/// Priority class of control packets (section 3.2: all but data have the highest).
pub(super) const CONTROL: u8 = 0;
/// Aeolus with a single queue: the class of all data.
const DATA: u8 = 1;

impl Params {
    pub fn new(config: &Config, aeolus: Option<Queue>, site: &EndpointParams, network: &NetworkView) -> Params {
        let bytes = config.rtt_bytes.map(|bytes| bytes.get().div_ceil(u64::from(site.payload_max())));
        let packets = bytes.unwrap_or_else(|| site.bdp_bytes().div_ceil(u64::from(site.mtu_bytes)));
        let resend_after = config.resend_after(network);
        let fixed = (!config.cutoffs.is_empty()).then_some(config.cutoffs.len() as u8 + 1);
        Params {
            site: site.clone(),
            rtt_packets: packets.clamp(1, u64::from(u16::MAX)) as u32,
            priorities: config.priorities,
            unscheduled: fixed.or(config.unscheduled_levels),
            cutoffs: config.cutoffs.iter().map(|bytes| bytes.get()).collect(),
            overcommitment: config.overcommitment,
            resend_after,
            ask_after: resend_after + site.data_rtt * 2,
            graduated: config.graduated,
            aeolus,
        }
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.site.payload_max())).min(u64::from(u32::MAX)) as u32
    }

    /// Message bytes in the first `packets` packets.
    pub fn bytes(&self, packets: u32) -> u64 {
        u64::from(packets) * u64::from(self.site.payload_max())
    }

    /// How a receiver measures its traffic.
    pub fn traffic(&self) -> Traffic {
        Traffic::new(self.priorities, self.unscheduled)
    }

    /// Whether receivers report cutoffs.
    pub fn tells(&self) -> bool {
        self.cutoffs.is_empty()
    }

    /// Class of the unscheduled packets of a message of this size.
    pub fn unscheduled_class(&self, levels: &Levels, bytes: u64) -> u8 {
        if self.aeolus == Some(Queue::One) {
            return DATA;
        }
        if self.tells() { levels.of(bytes) } else { self.cutoffs.partition_point(|&cutoff| bytes > cutoff) as u8 }
    }

    /// Number of messages that may have grants at a time (section 3.5: the number of scheduled levels).
    pub fn overcommitment(&self, levels: &Levels) -> usize {
        usize::from(self.overcommitment.unwrap_or(self.priorities - levels.count))
    }

    /// Most scheduled packets in flight in total. Homa bounds them only by its active messages, each of which has
    /// RTTbytes in flight when it is fully granted. With Aeolus messages that are no longer than that need grants too,
    /// and any number of them could arrive together.
    pub fn scheduled_max(&self, degree: usize) -> u32 {
        if self.aeolus.is_some() { degree as u32 * self.rtt_packets } else { u32::MAX }
    }

    /// How long a probe waits at its receiver for packets that it may have overtaken on another path: the difference of
    /// transmission times between a full packet and a control packet.
    pub fn probe_lag(&self) -> Duration {
        self.site.data_rtt.saturating_sub(self.site.control_rtt)
    }

    /// Class of the scheduled packets of the `rank`-th active message, fewest remaining bytes first. The lowest levels
    /// are used first, so that a new shorter message finds a higher level free (section 3.4).
    pub fn scheduled_class(&self, levels: &Levels, rank: usize, active: usize) -> u8 {
        if self.aeolus == Some(Queue::One) {
            return DATA;
        }
        let scheduled = usize::from(self.priorities - levels.count);
        let above = usize::from(levels.count) + scheduled.saturating_sub(active);
        (above + rank).min(usize::from(self.priorities) - 1) as u8
    }

    /// The class of scheduled packets before the first grant.
    pub fn lowest_class(&self) -> u8 {
        if self.aeolus == Some(Queue::One) { DATA } else { self.priorities - 1 }
    }

    /// A packet of this class without payload.
    pub fn packet(&self, flow: FlowId, to: HostId, class: u8, header: Header) -> Packet {
        let mut packet = self.site.control_packet(flow, to, header);
        packet.class = class;
        if self.aeolus.is_some() {
            // It is dropped only if there is no room at all.
            packet.flags = flags::ECT;
        }
        packet
    }

    /// A control packet.
    pub fn control(&self, flow: FlowId, to: HostId, header: Header) -> Packet {
        self.packet(flow, to, CONTROL, header)
    }
}
