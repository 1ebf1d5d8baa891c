//! The switch's part (section 3.1): two queues at each port, trimming, and return to sender (section 3.2.4).

use node::{EndpointParams, Packet};

use super::header::Data;
use super::{Config, Header};
use crate::trimming::{Params, TrimmingQueues};

/// The part of a switch with this many ports, in a network of such hosts.
pub fn part(config: &Config, site: &EndpointParams, ports: usize) -> TrimmingQueues {
    let queue_bytes = u32::from(config.queue_packets) * u32::from(config.counted_bytes(site));
    let params = Params {
        transport: site.transport,
        data_bytes_max: queue_bytes,
        headers_bytes_max: queue_bytes,
        header_bytes: u32::from(site.header_bytes),
        headers_per_packet: config.headers_per_packet,
        marks_last_hop: true,
        send_back: config.return_to_sender.then_some(send_back as fn(&mut Packet) -> bool),
        trimmed_last_hop: None,
    };
    TrimmingQueues::new(params, (0..ports).map(|_| false))
}

/// Headers go back to their sender once.
fn send_back(packet: &mut Packet) -> bool {
    let Header::Data(data @ Data { returned: false, .. }) = packet.header() else { return false };
    packet.set_header(Header::Data(Data { returned: true, ..data }));
    true
}

#[cfg(test)]
mod tests;
