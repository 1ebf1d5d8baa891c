use super::*;

#[test]
fn up_to_300_fit_in_a_packet_of_1500_bytes() {
    let sizes = |count: u32| {
        let some: Vec<Assignment> = (0..count).map(|flow| Assignment { flow, protocol: 1 }).collect();
        pack(&some, 1_500).iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert!(sizes(0).is_empty());
    assert_eq!(sizes(1), [5]);
    assert_eq!(sizes(300), [1_500]);
    assert_eq!(sizes(512), [1_500, 1_060]);
    let some = [Assignment { flow: 7, protocol: 2 }; 5];
    assert_eq!(pack(&some, 14).iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5], "as much as a packet may have");
}

proptest::proptest! {
    #[test]
    fn assignments_survive_the_wire(pairs in proptest::collection::vec((0u32.., 0u8..), 0..700), noise: Vec<u8>) {
        let some: Vec<Assignment> =
            pairs.into_iter().map(|(flow, protocol)| Assignment { flow, protocol }).collect();
        let read: Result<Vec<_>, _> = pack(&some, 1_500).iter().map(|packet| parse(packet)).collect();
        proptest::prop_assert_eq!(read.map(|packets| packets.concat()), Ok(some));
        if let Ok(read) = parse(&noise) {
            proptest::prop_assert_eq!(pack(&read, 1_500), [noise]);
        }
    }
}
