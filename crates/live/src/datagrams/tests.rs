use scenario::LiveLinks;
use units::{FlowId, HostId};

use super::*;
use crate::clock::Clock;
use crate::network::Network;

const TEXT: &str = "fabric.star = {}\n[[traffic]]\nsizes.constant = '50KB'\narrivals = 'all_at_once'\n";

fn datagrams<'l>(links: &'l mut Links<Wires<'_>>) -> &'l mut Datagrams {
    links.carrier.datagrams.as_mut().expect("links are sockets")
}

#[test]
fn a_frame_counts_once_and_only_from_its_neighbour() {
    let plan = Plan::new(&scenario::read(TEXT, "test", &[]).expect("a scenario")).expect("it can be planned");
    let mut network = Network::new(&plan, Clock::new(1, plan.lookahead), LiveLinks::Datagrams, 1).expect("sockets");
    let mut workers = network.workers(&plan, 1, || ());
    let driver = &mut workers[0].driver;
    // Host 0 starts its first flow, and its NIC pulls.
    let (at, source) = driver.links.agenda.first();
    driver.act(at, source);
    let links = &mut driver.links;
    let (host, neighbour, switch) = (NodeId(0), NodeId(1), NodeId(8));
    let datagram = datagrams(links).datagram.clone();
    let take = |links: &mut Links<Wires<'_>>, node| Datagrams::take_one(links, node);
    assert!(take(links, switch) == Taken::Frame && take(links, switch) == Taken::Nothing);
    for (from, to, refusal) in
        [(host, switch, Refusal::Repeated), (neighbour, switch, Refusal::Stranger), (host, neighbour, Refusal::Link)]
    {
        assert!(datagrams(links).sockets.send(from, to, &datagram));
        assert!(take(links, to) == Taken::Refused);
        assert_eq!(datagrams(links).refused[refusal as usize], 1, "{refusal}");
    }
    let codec = codec(&plan);
    let mut early = codec.parse(&datagram).expect("it is a frame");
    (early.number, early.gone) = (1, Time::from_ms(1_000_000));
    let mut bytes = Vec::new();
    codec.emit(&early, &mut bytes);
    assert!(datagrams(links).sockets.send(host, switch, &bytes));
    assert!(take(links, switch) == Taken::Refused && datagrams(links).refused[Refusal::Times as usize] == 1);
    assert_eq!(links.link_rxs.iter().map(|link_rx| link_rx.receiver.count.frames).sum::<u64>(), 1);
}

/// A packet of an attached host says where it goes, and whoever sends it may lie.
#[test]
fn an_attached_hosts_packet_goes_to_attached_hosts_alone() {
    let text = format!("live.attach = {{ host0 = 'tap0', host1 = 'tap1' }}\n{TEXT}");
    let plan = Plan::new(&scenario::read(&text, "test", &[]).expect("a scenario")).expect("it can be planned");
    let mut packet = Packet::bare(FlowId(0), HostId(0), HostId(1));
    packet.transport = plan.outside.expect("hosts are attached");
    (packet.wire_bytes, packet.payload_bytes) = (20, 20);
    assert!(is_attached_if_outside(&plan, &packet));
    packet.dst = HostId(2);
    assert!(!is_attached_if_outside(&plan, &packet));
    packet.transport = 0;
    assert!(is_attached_if_outside(&plan, &packet), "a transport's packets go to all hosts");
}
