use node::{EndpointParams, Packet};
use units::{Duration, FlowId, HostId, Rate};

use super::{Config, Departure, Header, PullOrder};

/// Values derived from configuration and site, computed once.
pub(super) struct Params {
    pub site: EndpointParams,
    /// IW, in packets.
    pub window: u32,
    /// Time between pulls: transmission time of a full packet, or with [`Departure::PayloadOnly`] of its payload.
    pub packet_time: Duration,
    /// Longest time of an answer.
    pub rto: Duration,
    /// Whether pulls go by traffic class.
    pub by_class: bool,
    /// Whether packets leave in the order of their permissions: [`Departure::InOrder`].
    pub in_order: bool,
    /// Whether a last packet's mark removes pulls; not with [`Departure::PullsToTheEnd`].
    pub mark_ends_pulls: bool,
}

/// Priority class of control packets.
pub(super) const CONTROL: u8 = 0;
/// Priority class of data at the host, where NDP's own queues are not involved.
pub(super) const DATA: u8 = 1;

impl Params {
    /// For `site` in a network whose slowest link has this rate.
    pub fn new(config: &Config, site: &EndpointParams, slowest: Rate) -> Params {
        let mtu = u64::from(site.mtu_bytes);
        let queue_bytes = u64::from(config.queue_packets) * mtu;
        // Section 6.2: at 10 Gbps with 9 KB packets 20 packets are needed to fill a network whose bandwidth-delay
        // product is 8. On the way data meet queues, and pulls the headers and data before them; two queues' worth
        // covers it there (24) as anywhere else, where the paper's number of packets would not.
        let window_bytes = config.initial_window.map_or(site.bdp_bytes() + 2 * queue_bytes, |window| window.get());
        let switches = site.data_rtts.iter().map(|of| u64::from(of.0)).max().unwrap_or(1);
        // At each switch a packet waits for a full data queue at most, with as many headers between as go before data,
        // and one that is trimmed, or its answer, for a full header queue, which in an incast goes at that pace too. In
        // the paper's network that makes 4.7 ms, most of it for 1,125 headers at each of five switches. The paper calls
        // 1 ms safe (section 3.2.4), its program waits 5 ms: with 1 ms, an incast that fills a header queue has packets
        // time out that are merely late.
        let [packet, header] = [mtu, u64::from(site.header_bytes)].map(|bytes| slowest.transmit(bytes));
        let turn = packet + header * u64::from(config.headers_per_packet);
        let turns = (queue_bytes / u64::from(site.header_bytes)).div_ceil(u64::from(config.headers_per_packet));
        let waiting = turn * (turns + u64::from(config.queue_packets)) * switches;
        Params {
            window: window_bytes.div_ceil(mtu).clamp(1, 1 << 24) as u32,
            packet_time: site.nic_rate.transmit(u64::from(config.counted_bytes(site))),
            rto: config.rto.unwrap_or(site.data_rtt + waiting),
            by_class: config.pulls == PullOrder::ByClass,
            in_order: config.departures.has(Departure::InOrder),
            mark_ends_pulls: !config.departures.has(Departure::PullsToTheEnd),
            site: site.clone(),
        }
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.site.payload_max())).min(u64::from(u32::MAX)) as u32
    }

    /// A control packet.
    pub fn control(&self, flow: FlowId, to: HostId, header: Header) -> Packet {
        let mut packet = self.site.control_packet(flow, to, header);
        packet.class = CONTROL;
        packet
    }
}
