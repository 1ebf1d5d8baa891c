use proptest::prelude::*;
use testing::check_header;

use super::*;

fn root() -> impl Strategy<Value = RootId> {
    (any::<u32>(), any::<u16>(), prop_oneof![0u8..8, Just(ALL_CLASSES)]).prop_map(|(node, port, class)| RootId {
        node,
        port,
        class,
    })
}

proptest! {
    #[test]
    fn frames_survive_the_wire(
        frame in prop_oneof![
            (root(), any::<u8>()).prop_map(|(root, distance)| Frame::Pause { root, distance }),
            root().prop_map(|root| Frame::Resume { root }),
            (root(), root(), any::<u8>()).prop_map(|(old, new, distance)| {
                Frame::Merge { old, new: RootId { class: old.class, ..new }, distance }
            }),
            root().prop_map(|root| Frame::Unassigned { root }),
        ],
        noise: Vec<u8>,
    ) {
        check_header(frame, &noise);
    }
}
#[test]
fn bytes_stay_what_they_are() {
    let (old, new) = (RootId { node: 0x0102_0304, port: 0x0506, class: 3 }, RootId { node: 7, port: 8, class: 3 });
    assert_eq!(check_header(Frame::Pause { root: old, distance: 9 }, &[]), [1, 9, 3, 1, 2, 3, 4, 5, 6]);
    let merge = [3, 4, 3, 1, 2, 3, 4, 5, 6, 0, 0, 0, 7, 0, 8];
    assert_eq!(check_header(Frame::Merge { old, new, distance: 4 }, &[]), merge);
}
