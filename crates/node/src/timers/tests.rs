use std::collections::BTreeMap;

use super::*;

proptest::proptest! {
    /// Against a simple model: a map from key to deadline.
    #[test]
    fn behaves_as_a_map_of_deadlines(steps in proptest::collection::vec((0u32..5, 0u64..50, 0u8..3), 1..200)) {
        let (mut timers, mut model, mut now) = (Timers::default(), BTreeMap::new(), 0);
        for (key, span, kind) in steps {
            match kind {
                0 => {
                    timers.set(key, Time::from_ps(now + span));
                    model.insert(key, now + span);
                }
                1 => {
                    timers.clear(key);
                    model.remove(&key);
                }
                _ => {
                    now += span;
                    let mut fired = std::iter::from_fn(|| timers.expire(Time::from_ps(now))).collect::<Vec<_>>();
                    fired.sort_unstable();
                    let due: Vec<u32> = model.iter().filter(|due| *due.1 <= now).map(|due| *due.0).collect();
                    model.retain(|_, at| *at > now);
                    proptest::prop_assert_eq!(fired, due);
                }
            }
            let earliest = model.values().min().copied().unwrap_or(u64::MAX);
            proptest::prop_assert!(timers.next().map_or(u64::MAX, Time::ps) <= earliest);
            // What has ended leaves nothing behind that would wake anyone.
            proptest::prop_assert!(!model.is_empty() || timers.next().is_none());
        }
    }
}
