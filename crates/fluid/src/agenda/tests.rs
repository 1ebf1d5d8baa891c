use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn gives_what_a_sorted_map_gives(steps in prop::collection::vec((any::<bool>(), 0u32..20, 0u64..50), 0..200)) {
        let (mut agenda, mut model) = (Agenda::default(), BTreeMap::new());
        for (pop, slot, at) in steps {
            if pop {
                let first = model.iter().map(|(&slot, &at)| (at, slot)).min();
                prop_assert_eq!(agenda.pop(), first);
                first.map(|(_, slot)| model.remove(&slot));
            } else {
                agenda.set(slot, at);
                model.insert(slot, at);
            }
            prop_assert_eq!(agenda.first(), model.iter().map(|(&slot, &at)| (at, slot)).min());
        }
    }
}
