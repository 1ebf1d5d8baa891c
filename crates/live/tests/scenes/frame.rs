//! Frames of every scheme in the catalogue, and bytes that are none.

use catalogue::{LinkControl, Sharing, Transport};
use clearway_live::frame::{Codec, Frame, Refusal};
use node::packet::flags::{TELEMETRY, TRIMMED};
use node::pool::TailLag;
use node::retry::RetryMessage;
use node::telemetry::HopRecord;
use node::{Packet, Telemetry};
use proptest::prelude::*;
use run::{Journey, Plan};
use units::{Duration, FlowId, HostId, LinkId, Rate, SwitchId, Time};

const HOSTS: u32 = 8;
const LINKS: u32 = 16;

fn codec(transports: &[Transport]) -> Codec<'_> {
    Codec {
        transports,
        flow_control: &LinkControl::None,
        sharing: &Sharing::PhysicalQueue,
        retry: true,
        outside: None,
        hosts: HOSTS,
        links: LINKS,
    }
}

fn transports() -> Vec<Transport> {
    Transport::NAMES.iter().map(|name| Transport::named(name).expect("it is in the catalogue")).collect()
}

/// What a host with a flow of each transport puts on its link first, so that headers are real ones. Each has a network
/// of its own: not all can share one.
fn first_packets() -> Vec<Packet> {
    let mut packets = Vec::new();
    for (index, name) in Transport::NAMES.iter().enumerate() {
        let text = format!(
            "fabric.star = {{}}\ntransport = '{name}'\n[[traffic]]\nsizes.constant = '50KB'\narrivals = 'all_at_once'\n"
        );
        let scenario = scenario::read(&text, "test", &[]).expect("a scenario");
        let mut host = Plan::new(&scenario).expect("it can be planned").host(HostId(0));
        let before = packets.len();
        for micros in 0..100 {
            host.wake(Time::from_us(micros));
            let pulled = host.pull(Time::from_us(micros));
            packets.extend(pulled.map(|mut packet| {
                packet.transport = index as u8;
                packet
            }));
        }
        assert!(packets.len() > before, "{name}");
    }
    packets
}

/// Where a packet is on its way: everything of a frame that is not the packet's own.
fn way() -> impl Strategy<Value = (u32, u64, u32, [u64; 5], u64)> {
    let span = 0..1_000_000_000_000u64;
    let spans = prop::array::uniform5(span.clone());
    (0..LINKS, any::<u64>(), any::<u32>(), spans, span)
}

fn framed(
    codec: &Codec<'_>,
    packet: Packet,
    (link, number, tail_lag, spans, more): (u32, u64, u32, [u64; 5], u64),
) -> Vec<u8> {
    let [sent, up, down, last, serialised] = spans;
    let queued = [up, down, last].map(Duration::from_ps);
    let journey = Journey { sent: Time::from_ps(sent), queued, serialised: Duration::from_ps(serialised) };
    let gone = Time::from_ps(spans.iter().sum::<u64>() + more);
    let mut telemetry = Telemetry::default();
    if packet.has(TELEMETRY) {
        let hop = HopRecord::new(Rate::from_gbps(100), Time::from_ps(sent), up, 3_000);
        (0..more % 12).for_each(|switch| telemetry.push(SwitchId(switch as u32), hop));
    }
    let mut content = vec![0; packet.payload_bytes.into()];
    clearway_live::content::write(packet.flow, more, &mut content);
    let (link, queue, retry) = (LinkId(link), more as u16, (more >> 16) as u16);
    let content = content.as_slice();
    let tail_lag = TailLag::from_bits(tail_lag);
    let frame = Frame { link, number, gone, tail_lag, packet, journey, queue, retry, telemetry, content };
    let mut bytes = Vec::new();
    codec.emit(&frame, &mut bytes);
    assert_eq!(codec.parse(&bytes), Ok(frame));
    bytes
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is(
        index: prop::sample::Index,
        way in way(),
        (label, class, hops) in any::<(u64, u8, u8)>(),
        flags in 0u8..16,
        telemetry: bool,
        bit: prop::sample::Index,
        cut: prop::sample::Index,
        more in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        let transports = transports();
        let codec = codec(&transports);
        let mut packet = *index.get(&first_packets());
        let flags = if telemetry { flags | TELEMETRY } else { flags };
        packet.class = class % 8;
        // R2C2's own header has the route and the place on it (Figure 6), and is refused where they are others than its
        // frame's.
        if transports[usize::from(packet.transport)].name() != "r2c2" {
            (packet.flags, packet.hops, packet.label) = (flags, hops, label);
        }
        let mut bytes = framed(&codec, packet, way);

        let bit = bit.index(8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(codec.parse(&bytes).is_err(), "bit {bit} flipped");
        bytes[bit / 8] ^= 1 << (bit % 8);

        let cut = cut.index(bytes.len());
        prop_assert!(codec.parse(&bytes[..cut]).is_err(), "cut at {cut}");
        bytes.extend(more);
        prop_assert_eq!(codec.parse(&bytes), Err(Refusal::Checksum));
    }

    #[test]
    fn any_bytes_are_refused_or_a_frame(bytes in prop::collection::vec(any::<u8>(), 0..200), sealed: bool) {
        let transports = transports();
        let codec = codec(&transports);
        let bytes = if sealed { seal(bytes) } else { bytes };
        if let Ok(frame) = codec.parse(&bytes) {
            let mut again = Vec::new();
            codec.emit(&frame, &mut again);
            prop_assert_eq!(codec.parse(&again), Ok(frame));
        }
    }

    /// A frame of which a field is any other, with the right checksum: what it says is checked, and no more than that.
    #[test]
    fn any_field_may_be_wrong(index: prop::sample::Index, way in way(), at: prop::sample::Index, byte: u8) {
        let transports = transports();
        let codec = codec(&transports);
        let mut bytes = framed(&codec, *index.get(&first_packets()), way);
        bytes.truncate(bytes.len() - 4);
        let at = 5 + at.index(bytes.len() - 5);
        bytes[at] = byte;
        let bytes = seal(bytes.split_off(5));
        if let Ok(frame) = codec.parse(&bytes) {
            prop_assert!(usize::from(frame.packet.transport) < transports.len());
            prop_assert!(frame.packet.src.0 < HOSTS && frame.packet.dst.0 < HOSTS && frame.link.0 < LINKS);
            prop_assert!(frame.packet.class < 8 && frame.packet.wire_bytes > 0);
            prop_assert!(frame.journey.sent <= frame.gone);
            prop_assert_eq!(frame.content.len(), usize::from(frame.packet.payload_bytes));
        }
    }
}

/// The bytes as the fields of a frame: magic and version before, checksum after them.
fn seal(fields: Vec<u8>) -> Vec<u8> {
    let mut bytes = b"CLWY\x04".to_vec();
    bytes.extend(fields);
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_be_bytes());
    bytes
}

#[test]
fn what_is_wrong_is_named() {
    let transports = transports();
    let codec = codec(&transports);
    let packet = first_packets()[0];
    let refused = |change: &dyn Fn(&mut Frame<'_>)| {
        let mut content = vec![0; packet.payload_bytes.into()];
        clearway_live::content::write(packet.flow, 0, &mut content);
        let mut frame = Frame {
            link: LinkId(3),
            number: 0,
            gone: Time::from_ps(10),
            tail_lag: TailLag::default(),
            packet,
            journey: Journey::default(),
            queue: 0,
            retry: 0,
            telemetry: Telemetry::default(),
            content: &content,
        };
        change(&mut frame);
        let mut bytes = Vec::new();
        codec.emit(&frame, &mut bytes);
        codec.parse(&bytes).map(|_| ())
    };
    assert_eq!(refused(&|_| {}), Ok(()));
    assert_eq!(refused(&|frame| frame.link = LinkId(LINKS)), Err(Refusal::Link));
    assert_eq!(refused(&|frame| frame.packet.dst = HostId(HOSTS)), Err(Refusal::Host));
    assert_eq!(refused(&|frame| frame.packet.class = 8), Err(Refusal::Packet));
    assert_eq!(refused(&|frame| frame.packet.wire_bytes = 0), Err(Refusal::Packet));
    assert_eq!(refused(&|frame| frame.journey.sent = Time::from_ps(11)), Err(Refusal::Times));
    assert_eq!(refused(&|frame| frame.journey.queued = [Duration::MAX; 3]), Err(Refusal::Times));
    assert_eq!(codec.parse(b""), Err(Refusal::Length));
    assert_eq!(codec.parse(b"GET / HTTP/1.1"), Err(Refusal::Magic));
    assert_eq!(codec.parse(b"CLWY\x01and so on"), Err(Refusal::Version));
    assert_eq!(codec.parse(b"CLWY\x04and so on"), Err(Refusal::Checksum));
    // By its flags and transport, a message of link-level retry: without that there is none.
    assert_eq!(codec.parse(&seal(vec![0xFF; 300])), Err(Refusal::Link));
    let without = Codec { retry: false, ..codec };
    assert_eq!(without.parse(&seal(vec![0xFF; 300])), Err(Refusal::Transport));
    assert_eq!(refused(&|frame| frame.retry = 7), Ok(()));
}

/// Messages of link-level retry travel between processes, too, where links repeat.
#[test]
fn messages_of_link_level_retry_are_read_back() {
    let transports = transports();
    let codec = codec(&transports);
    for message in [RetryMessage::Ack(7), RetryMessage::Nack(65_535)] {
        let bytes = framed(&codec, message.packet(), (3, 1, 0, [5; 5], 9 << 16));
        assert_eq!(codec.parse(&bytes).map(|frame| frame.retry), Ok(9));
        let read = codec.parse(&bytes).map(|frame| RetryMessage::of(&frame.packet));
        assert_eq!(read, Ok(Some(message)));
        assert_eq!(Codec { retry: false, ..codec }.parse(&bytes).map(|_| ()), Err(Refusal::Transport));
    }
}

/// Packets of attached hosts travel between processes with their bytes, which a device is to get.
#[test]
fn packets_of_attached_hosts_are_read_back_if_they_are_ip_packets() {
    let transports = transports();
    let outside = transports.len() as u8;
    let codec = Codec { outside: Some(outside), ..codec(&transports) };
    let read = |content: &[u8], flags: u8| {
        let mut packet = Packet::bare(FlowId(7), HostId(1), HostId(2));
        (packet.transport, packet.flags, packet.wire_bytes) = (outside, flags, 60);
        packet.payload_bytes = content.len() as u16;
        let journey = Journey { sent: Time::ZERO, queued: [Duration::ZERO; 3], serialised: Duration::ZERO };
        let (link, number, gone, tail_lag) = (LinkId(3), 1, Time::from_us(1), TailLag::default());
        let (queue, retry, telemetry) = (0, 0, Telemetry::default());
        let frame = Frame { link, number, gone, tail_lag, packet, journey, queue, retry, telemetry, content };
        let mut bytes = Vec::new();
        codec.emit(&frame, &mut bytes);
        assert_eq!(Codec { outside: None, ..codec }.parse(&bytes).map(|_| ()), Err(Refusal::Transport));
        codec.parse(&bytes).map(|frame| (frame.packet, frame.content.to_vec()))
    };
    for (first, length) in [(0x45, 20), (0x46, 24), (0x60, 40)] {
        let content = [&[first][..], &vec![1; length - 1]].concat();
        let (packet, got) = read(&content, 0).expect("an IP packet");
        assert_eq!((got, packet.flow, packet.dst), (content.clone(), FlowId(7), HostId(2)));
        assert_eq!(read(&content[..length - 1], 0), Err(Refusal::Packet));
    }
    assert_eq!(read(&[], 0), Err(Refusal::Packet));
    assert_eq!(read(&[0x44; 40], 0), Err(Refusal::Packet));
    assert!(read(&[], TRIMMED).is_ok());
}

#[test]
fn what_r2c2_sends_is_in_its_frames_as_figure_6_has_it() {
    let transports = transports();
    let codec = codec(&transports);
    let r2c2 = Transport::NAMES.iter().position(|name| *name == "r2c2").expect("it is in the catalogue");
    let packets: Vec<Packet> =
        first_packets().into_iter().filter(|packet| usize::from(packet.transport) == r2c2).collect();
    let (said, data) = (packets[0], packets[1]);
    assert_eq!((said.wire_bytes, data.wire_bytes, data.payload_bytes), (16, 1_500, 1_465));
    let way = (3, 0, 0, [0; 5], 0);
    let own = |packet: Packet| {
        let bytes = framed(&codec, packet, way);
        // The driver's own fields are as long for every packet.
        let common = framed(&codec, said, way).len() - 16 - 4;
        bytes[common..bytes.len() - 4].to_vec()
    };
    // A broadcast: type 3, first version, from 0.
    let bytes = own(said);
    assert_eq!((bytes.len(), &bytes[..3]), (16, &[3, 0, 0][..]));
    // Data: type 1, of one switch, none passed; then flow, source, destination, number; two bytes of the driver's
    // behind them.
    let bytes = own(data);
    assert_eq!(bytes.len(), 35 + 2 + 1_465);
    assert_eq!(bytes[..3], [1, 1, 0]);
    assert_eq!(bytes[3..15], [0, 0, 0, data.flow.0 as u8, 0, data.src.0 as u8, 0, data.dst.0 as u8, 0, 0, 0, 0]);
    assert_eq!(bytes[17..19], 1_465u16.to_be_bytes());

    // The frame's checksum is put right again after each change: it is R2C2's own that finds it, but for ridx, which is
    // held against the frame.
    let whole = framed(&codec, data, way);
    let common = whole.len() - 4 - bytes.len();
    for at in (0..bytes.len()).step_by(7).chain(0..37) {
        let mut body = whole[5..whole.len() - 4].to_vec();
        body[common - 5 + at] ^= 0x10;
        let driver = at == 35 || at == 36;
        assert!(driver || codec.parse(&seal(body)) == Err(Refusal::Header), "byte {at}");
    }
}
