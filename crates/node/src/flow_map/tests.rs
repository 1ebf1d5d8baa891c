use super::*;

#[test]
fn slots_are_used_again_and_ids_are_not_confused() {
    let mut map = FlowMap::default();
    let (a, b) = (map.insert(FlowId(7), 'a'), map.insert(FlowId(9), 'b'));
    assert_eq!((map.slot(FlowId(9)), map.get(b)), (Some(b), Some((FlowId(9), &'b'))));
    assert_eq!(map.remove(a), Some('a'));
    assert_eq!((map.remove(a), map.slot(FlowId(7)), map.get(a)), (None, None, None));
    assert_eq!(map.insert(FlowId(1_000_000), 'c'), a);
    assert_eq!(map.len(), 2);
    assert_eq!((map.of(FlowId(9)), map.of(FlowId(7))), (Some(&'b'), None));
}
