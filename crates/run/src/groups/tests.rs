use super::{Group, Groups};
use crate::{FlowInfo, FlowTable};
use units::{FlowId, HostId, Time};

/// Flows of these transports and classes.
fn flows(of: &[(u8, u16)]) -> FlowTable {
    let flow = |&(transport, class)| FlowInfo {
        src: HostId(0),
        dst: HostId(1),
        bytes: 1,
        start: Time::ZERO,
        after: None,
        class,
        transport,
    };
    FlowTable::new(of.iter().map(flow).collect(), 2)
}

#[test]
fn classes_are_told_apart_where_a_transport_carries_several() {
    let groups = Groups::new(&flows(&[(0, 0), (1, 3), (1, 1), (1, 3)]), 3, &[], 2);
    let group = |transport, class| Group { transport, class };
    let all = [group(0, Some(0)), group(1, Some(1)), group(1, Some(3)), group(2, None)];
    assert_eq!(groups.all(), all);
    assert_eq!((0..4).map(|flow| groups.of(1, FlowId(flow))).collect::<Vec<_>>(), [1, 2, 1, 2].map(Some));
    // An unknown flow, an unknown transport.
    assert_eq!((groups.of(1, FlowId(99)), groups.of(2, FlowId(0)), groups.of(3, FlowId(0))), (Some(1), Some(3), None));
    assert_eq!(Groups::new(&flows(&[(0, 0), (0, 1)]), 1, &[], u32::MAX).all(), [group(0, None)]);
}
