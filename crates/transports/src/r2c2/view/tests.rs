use super::*;

const PARAMS: Params =
    Params { weight: 1, priority: 0, demand_kbps: UNLIMITED, routing: Routing::RandomPacketSpraying };

fn key(src: u32, number: u8) -> Key {
    Key { src: HostId(src), dst: HostId(9), number }
}

#[test]
fn the_later_version_counts_whichever_comes_first() {
    let mut view = View::default();
    let wide = Params { weight: 2, ..PARAMS };
    assert!(view.hear(key(1, 0), wide, 15, Time::ZERO));
    assert!(view.hear(key(1, 0), PARAMS, next_version(15), Time::ZERO), "0 is after 15");
    assert!(!view.hear(key(1, 0), wide, 15, Time::ZERO), "late");
    assert_eq!(view.get(key(1, 0)).map(|known| known.params), Some(PARAMS));
    assert!(!view.finish(key(1, 0), 14) && view.finish(key(1, 0), 1) && view.is_empty());
}

#[test]
fn what_is_not_heard_of_is_forgotten_but_for_a_node_s_own() {
    let mut view = View::default();
    for src in 0..3 {
        view.hear(key(src, 0), PARAMS, 0, Time::ZERO);
    }
    view.hear(key(2, 0), PARAMS, 0, Time::from_us(8));
    view.forget(HostId(0), Time::from_us(11), Duration::from_us(10), |_| false);
    assert_eq!(view.iter().map(|flow| flow.0.src.0).collect::<Vec<_>>(), [0, 2]);
    view.forget(HostId(0), Time::from_us(11), Duration::from_us(10), |key| key.src.0 == 2);
    assert_eq!(view.len(), 1);
}

proptest::proptest! {
    #[test]
    fn flows_have_identifiers_of_their_own(src in 0u32..5_000, dst in 0u32..5_000, number: u8) {
        let key = Key { src: HostId(src), dst: HostId(dst), number };
        let known = src.max(dst) < IDENTIFIED_NODES_MAX;
        proptest::prop_assert_eq!(key.identifier().map(Key::identified), known.then_some(key));
    }

    #[test]
    fn views_are_equal_exactly_if_their_digests_are(
        news in proptest::collection::vec((0u32..4, 0u8..3, 1u8..3, 0u8..4, proptest::bool::ANY), 0..60),
    ) {
        let mut view = View::default();
        for (step, &(src, number, weight, code, ends)) in news.iter().enumerate() {
            let routing = Routing::from_code(code).unwrap();
            match ends {
                true => view.finish(key(src, number), step as u8 % VERSIONS),
                false => view.hear(key(src, number), Params { weight, routing, ..PARAMS }, step as u8 % VERSIONS,
                    Time::ZERO),
            };
            if step % 5 == 0 {
                view.assign(key(src, number), routing);
            }
        }
        // The same flows, heard of in another order.
        let mut other = View::default();
        for (key, known) in view.iter().collect::<Vec<_>>().into_iter().rev() {
            other.hear(key, known.params, 0, Time::ZERO);
        }
        proptest::prop_assert_eq!(view.digest(), other.digest());
        if let Some((first, known)) = view.iter().next() {
            other.hear(first, Params { weight: known.params.weight + 1, ..known.params }, 1, Time::ZERO);
            proptest::prop_assert_ne!(view.digest(), other.digest());
        }
    }
}
