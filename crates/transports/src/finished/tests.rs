use super::*;

#[test]
fn finished_flows_are_remembered_for_one_to_two_spans_since_they_were_last_heard_of() {
    let span = Duration::from_us(10);
    let mut finished = Finished::default();
    finished.add(FlowId(1), Time::from_us(1), span);
    assert!(finished.knows(FlowId(1), Time::from_us(9), span));
    finished.add(FlowId(2), Time::from_us(12), span);
    assert!(finished.knows(FlowId(1), Time::from_us(13), span));
    finished.add(FlowId(3), Time::from_us(22), span);
    assert!(finished.knows(FlowId(1), Time::from_us(23), span));
    finished.add(FlowId(3), Time::from_us(32), span);
    finished.add(FlowId(3), Time::from_us(42), span);
    assert!(!finished.knows(FlowId(2), Time::from_us(43), span));
}
