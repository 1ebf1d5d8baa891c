use super::*;
use crate::network::Network;

#[test]
fn a_frame_counts_once_and_only_from_its_neighbour() {
    let text = "fabric.star = {}\n[[traffic]]\nsizes.constant = '50KB'\narrivals = 'all_at_once'\n";
    let plan = Plan::new(&scenario::read(text, "test", &[]).expect("a scenario")).expect("it can be planned");
    let sockets = Sockets::bind(plan.fabric.nodes()).expect("sockets");
    let mut network = Network::new(&plan, sockets, Clock::start());
    // Host 0 starts its first flow, and its NIC pulls.
    let (at, source) = network.driver.links.agenda.first();
    network.driver.act(at, source);
    let links = &mut network.driver.links;
    let (host, neighbour, switch) = (NodeId(0), NodeId(1), NodeId(8));
    let datagram = links.carrier.datagram.clone();
    let take = |links: &mut Links<_>, node| Datagrams::take_one(links, node);
    assert!(take(links, switch) == Taken::Frame && take(links, switch) == Taken::Nothing);
    for (from, to, refusal) in
        [(host, switch, Refusal::Repeated), (neighbour, switch, Refusal::Stranger), (host, neighbour, Refusal::Link)]
    {
        assert!(links.carrier.sockets.send(from, to, &datagram));
        assert!(take(links, to) == Taken::Refused);
        assert_eq!(links.carrier.refused[refusal as usize], 1, "{refusal}");
    }
    let codec = links.carrier.codec();
    let mut early = codec.parse(&datagram).expect("it is a frame");
    (early.number, early.gone) = (1, Time::from_ms(1_000_000));
    let mut bytes = Vec::new();
    codec.emit(&early, &mut bytes);
    assert!(links.carrier.sockets.send(host, switch, &bytes));
    assert!(take(links, switch) == Taken::Refused && links.carrier.refused[Refusal::Times as usize] == 1);
    assert_eq!(links.pipes.iter().map(|pipe| pipe.receiver.frames).sum::<u64>(), 1);
}
