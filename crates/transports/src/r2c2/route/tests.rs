use units::{FlowId, HostId};

use super::super::Header;
use super::*;

fn routed(ports: &[u32]) -> Option<Vec<u32>> {
    let ports: Vec<PortId> = ports.iter().map(|&port| PortId(port)).collect();
    let mut data = Data { last: false, rlen: 0, route: [0; 2], seq: 0, full: 1 };
    let mut packet = Packet::new(FlowId(0), HostId(0), HostId(1), Header::Data(data));
    if !set(&mut packet, &mut data, &ports) {
        return None;
    }
    let mut seen = Vec::new();
    for hops in 0..ports.len() as u8 {
        packet.hops = hops;
        let by_switch = packet.has(flags::SOURCE_ROUTED).then(|| packet.routed_to()).flatten();
        let long = packet.has(flags::ROUTER_ALERT).then(|| port(data.route, hops).map(|port| port.0)).flatten();
        seen.push(by_switch.or(long)?);
    }
    Some(seen)
}

proptest::proptest! {
    #[test]
    fn every_hop_is_read_as_it_was_written(short in proptest::collection::vec(0u32..8, 1..43),
        wide in proptest::collection::vec(0u32..256, 1..9)) {
        proptest::prop_assert_eq!(routed(&short), Some(short));
        proptest::prop_assert_eq!(routed(&wide), Some(wide));
    }
}

#[test]
fn forty_two_hops_fit_and_no_more() {
    assert!(routed(&[5; 42]).is_some() && routed(&[5; 43]).is_none());
    assert!(routed(&[300]).is_none() && routed(&[9; 9]).is_none());
}
