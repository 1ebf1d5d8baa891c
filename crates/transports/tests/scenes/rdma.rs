//! Scenes of RDMA on the virtual wire: what papers and arithmetic say of delivery, windows, loss recovery and rates.

mod delivery;
mod rates;
mod recovery;

use clearway_transports::rdma::control::Algorithm;
use clearway_transports::rdma::header::Header;
use clearway_transports::rdma::{
    Config, GoBackN, Irn, Recovery, TimeoutRange, Turns, Window, dcqcn, hpcc, line_rate, timely,
};
use contract::Scheme;
use node::{Event, Packet};
use testing::{PacketFate, Scene, Wire};
use units::{Bytes, Duration, FlowId, HostId, Time};

use crate::{MSS, PACKET, RTT, a_second_without_answers, counter, data, lose, resent, scene};

type Hpcc = Config<hpcc::Config>;
type LineRate = Config<line_rate::Config>;
type Dcqcn = Config<dcqcn::Config>;
type Timely = Config<timely::Config>;

/// What fits into a round trip at 100 Gbps.
const BDP: u64 = 65_580;

const IRN: Recovery = Recovery::Irn(Irn {
    rto_low: Some(Duration::from_us(100)),
    rto_high: Some(Duration::from_us(320)),
    few_packets: 3,
    reordering_packets: 0,
});

const GO_BACK_N: Recovery = Recovery::GoBackN(GoBackN {
    nack_interval: Some(Duration::from_us(500)),
    timeout: Some(Duration::from_ms(16)),
    ack_timeout: None,
    retry_cnt: None,
    adaptive: Vec::new(),
});

/// What a sender has sent and not heard of, at most, by the packets of a scene: message bytes of each of its flows.
fn in_flight_peak(scene: &Scene, flow: FlowId) -> u64 {
    // An answer that leaves the receiver at t is heard half a delay, a link and half a delay later.
    let heard = |at: Time| at + Duration::from_ps(2 * 3_200) + Duration::from_ns(2_500);
    let mut happenings = Vec::new();
    for (at, packet) in scene.sent.iter().filter(|sent| sent.1.flow == flow) {
        match packet.header() {
            Header::Data(data) => happenings.push((*at, 1, data.sequence + u64::from(packet.payload_bytes))),
            Header::Ack(ack) | Header::Nack(ack) => happenings.push((heard(*at), 0, ack.answer.sequence)),
            Header::Cnp(_) => {}
        }
    }
    happenings.sort_unstable();
    let (mut una, mut peak) = (0, 0);
    for (_, kind, sequence) in happenings {
        match kind {
            0 => una = sequence.max(una),
            _ => peak = (sequence.saturating_sub(una)).max(peak),
        }
    }
    peak
}
