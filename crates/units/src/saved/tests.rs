use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::{Duration, Stream, Time};

fn bytes(value: &impl Saved) -> Vec<u8> {
    let mut to = Saver::default();
    value.save(&mut to);
    to.finish().expect("nothing is refused")
}

type Many = (Vec<(u64, i64)>, HashMap<u32, Option<bool>>, VecDeque<String>, BinaryHeap<u16>);

proptest! {
    #[test]
    fn what_is_saved_comes_back(
        many in (
            prop::collection::vec(any::<(u64, i64)>(), 0..20),
            prop::collection::hash_map(any::<u32>(), any::<Option<bool>>(), 0..20),
            prop::collection::vec_deque(".*", 0..5),
            prop::collection::binary_heap(any::<u16>(), 0..20),
        ),
        others in prop::collection::vec(any::<(u64, i64)>(), 0..20),
    ) {
        let many: Many = many;
        let saved = bytes(&many);
        let mut from = Loader::new(&saved);
        let made = Many::make(&mut from).expect("it is whole");
        prop_assert!(from.is_empty());
        prop_assert_eq!((&made.0, &made.1, &made.2), (&many.0, &many.1, &many.2));
        prop_assert_eq!(made.3.into_vec(), many.3.clone().into_vec());
        let mut over: Many = (others, HashMap::default(), VecDeque::new(), BinaryHeap::new());
        over.load(&mut Loader::new(&saved)).expect("it is whole");
        prop_assert_eq!(bytes(&over), saved);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Many::make(&mut Loader::new(&bytes));
        let _ = <Vec<Vec<Time>>>::make(&mut Loader::new(&bytes));
    }

    #[test]
    fn every_shorter_file_is_refused(values in prop::collection::vec(any::<u64>(), 1..20)) {
        let saved = bytes(&values);
        for end in 0..saved.len() {
            prop_assert!(<Vec<u64>>::make(&mut Loader::new(&saved[..end])).is_err());
        }
    }
}

#[test]
fn a_count_beyond_the_bytes_is_refused_before_it_takes_memory() {
    let mut to = Saver::default();
    to.number(u64::MAX);
    let saved = to.finish().expect("nothing is refused");
    let why = <Vec<u64>>::make(&mut Loader::new(&saved)).expect_err("fewer bytes follow than the count");
    assert!(why.0.starts_with("more items than bytes"), "{why}");
}

#[test]
fn a_stream_goes_on() {
    let mut stream = Stream::new(1, 2, "test");
    let before = [(); 5].map(|()| stream.bits());
    assert!(before.iter().any(|bits| *bits > 0));
    let mut again = Stream::make(&mut Loader::new(&bytes(&stream))).expect("it is whole");
    assert!((0..100).all(|_| again.bits() == stream.bits()));
}

#[test]
fn a_tree_has_names_and_units() {
    let mut to = Saver::drawing();
    to.begin();
    to.field("due");
    Time::from_ps(1_500_000).save(&mut to);
    to.field("by_flow");
    BTreeMap::from([(7u32, Some(Duration::from_ps(2_000))), (9, None)]).save(&mut to);
    to.end();
    let text = |of: &str| Tree::Text(of.to_owned());
    let by_flow = vec![("7".to_owned(), text("2ns")), ("9".to_owned(), Tree::None)];
    let fields = vec![("due".to_owned(), text("1.5us")), ("by_flow".to_owned(), Tree::Fields(by_flow))];
    assert_eq!(to.tree(), Tree::Fields(fields));
}
