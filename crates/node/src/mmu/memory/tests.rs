use super::*;

const PACKET: u64 = 1_500;

fn lossy(pool: usize, threshold: Threshold) -> Profile {
    Profile { pool, reserved: 0, threshold, headroom: 0, xon: 0, xon_offset: 0 }
}

fn pool(bytes: u64, headroom: Option<u64>) -> Pool {
    Pool { bytes, headroom }
}

/// Memory of two ports with these accounts each and no limits of ports.
fn memory(cell: u64, pools: Vec<Pool>, accounts: [Option<Profile>; CLASSES]) -> Memory {
    Memory::new(cell, pools, vec![accounts; 2], &[vec![], vec![]]).unwrap()
}

/// Packets that an account takes until it has no room, or has to pause.
fn fill(memory: &mut Memory, port: usize, account: usize, place: Room) -> u64 {
    let mut packets = 0;
    while memory.room(port, account, PACKET) == Some(place) {
        memory.take(port, account, PACKET, place);
        packets += 1;
        assert!(memory.is_balanced());
    }
    packets
}

/// A queue grows to alpha / (1 + alpha) of the free memory, a second one to alpha times what the first leaves.
#[test]
fn dynamic_thresholds_divide_memory_as_choudhury_and_hahne_say() {
    for power in -6..=3 {
        let alpha = f64::powi(2.0, power);
        let bytes = 10_000_000;
        let mut memory = memory(1, vec![pool(bytes, None)], [Some(lossy(0, Threshold::Dynamic(alpha))); CLASSES]);
        let first = fill(&mut memory, 0, 3, Room::Shared) * PACKET;
        let expected = bytes as f64 * alpha / (1.0 + alpha);
        assert!((first as f64 - expected).abs() <= PACKET as f64 * (1.0 + alpha), "alpha {alpha}: {first}");
        let second = fill(&mut memory, 1, 3, Room::Shared) * PACKET;
        let expected = (bytes - first) as f64 * alpha / (1.0 + alpha);
        assert!((second as f64 - expected).abs() <= PACKET as f64 * (1.0 + alpha), "alpha {alpha}: {second}");
    }
}

#[test]
fn a_static_threshold_is_to_the_byte() {
    let mut exact = memory(1, vec![pool(1 << 20, None)], [Some(lossy(0, Threshold::Static(15_000))); CLASSES]);
    assert_eq!(fill(&mut exact, 0, 0, Room::Shared), 10);
    let mut short = memory(1, vec![pool(1 << 20, None)], [Some(lossy(0, Threshold::Static(14_999))); CLASSES]);
    assert_eq!(fill(&mut short, 0, 0, Room::Shared), 9);
}

/// A packet of 1,500 bytes takes six cells of 254 bytes, 1,524 bytes.
#[test]
fn packets_take_whole_cells() {
    let mut memory = memory(254, vec![pool(15_240, None)], [Some(lossy(0, Threshold::Static(1 << 20))); CLASSES]);
    assert_eq!(memory.cells(1_500), 1_524);
    assert_eq!(memory.cells(254), 254);
    assert_eq!(memory.cells(255), 508);
    assert_eq!(fill(&mut memory, 0, 0, Room::Shared), 10);
    assert_eq!(memory.free(0), 0);
}

/// Bytes reserved for an account or a port are there whatever the others take, and come off the shared part.
#[test]
fn reserved_memory_stays_free_for_its_owner() {
    let rich = Profile { reserved: 4 * PACKET, ..lossy(0, Threshold::Dynamic(1e6)) };
    let poor = lossy(0, Threshold::Dynamic(1e6));
    let mut accounts = [Some(poor); CLASSES];
    accounts[6] = Some(rich);
    let of_port = |port| PortProfile { pool: 0, reserved: port, threshold: Threshold::Static(u64::MAX) };
    let ports = [vec![of_port(2 * PACKET)], vec![of_port(0)]];
    // 8 packets are reserved for account 6 of both ports, and 2 for port 0.
    let mut memory = Memory::new(1, vec![pool(20 * PACKET, None)], vec![accounts; 2], &ports).unwrap();
    assert_eq!(fill(&mut memory, 1, 0, Room::Shared), 10);
    assert_eq!(fill(&mut memory, 0, 0, Room::Shared), 2);
    assert_eq!(fill(&mut memory, 0, 6, Room::Shared), 4);
    assert_eq!(fill(&mut memory, 1, 6, Room::Shared), 4);
    // A packet of port 1 makes room for port 1's or port 0's alike.
    memory.give(1, 0, PACKET);
    assert_eq!(fill(&mut memory, 0, 1, Room::Shared), 1);
    let small = Memory::new(1, vec![pool(9 * PACKET, None)], vec![accounts; 2], &ports);
    assert_eq!(small.unwrap_err(), Shortage { pool: 0, reserved: 10 * PACKET });
}

/// A port's limit holds for all of its accounts together.
#[test]
fn a_port_is_limited_as_a_whole() {
    let open = Some(lossy(0, Threshold::Dynamic(1e6)));
    let limit = |bytes| vec![PortProfile { pool: 0, reserved: 0, threshold: Threshold::Static(bytes) }];
    let pools = vec![pool(1 << 20, None)];
    let mut memory = Memory::new(1, pools, vec![[open; CLASSES]; 2], &[limit(5 * PACKET), limit(7 * PACKET)]).unwrap();
    assert_eq!(fill(&mut memory, 0, 0, Room::Shared), 5);
    assert_eq!(fill(&mut memory, 0, 1, Room::Shared), 0);
    assert_eq!(fill(&mut memory, 1, 1, Room::Shared), 7);
}

/// A lossless group pauses at its limit, takes its headroom and no more, and goes on when it is `xon_offset` below the
/// limit, or below `xon`.
#[test]
fn a_group_pauses_at_its_limit_and_goes_on_below_it() {
    let (reserved, threshold) = (2 * PACKET, Threshold::Static(10 * PACKET));
    for (xon, xon_offset, below) in [(0, 0, 12), (0, 3 * PACKET, 9), (5 * PACKET, 9 * PACKET, 5)] {
        let profile = Profile { pool: 0, reserved, threshold, headroom: 4 * PACKET, xon, xon_offset };
        let mut memory = memory(1, vec![pool(1 << 20, None)], [Some(profile); CLASSES]);
        assert_eq!(fill(&mut memory, 0, 3, Room::Shared), 12);
        assert_eq!(fill(&mut memory, 0, 3, Room::Headroom), 4);
        assert_eq!(memory.room(0, 3, 64), None);
        assert_eq!(memory.bytes(0, 3), 16 * PACKET);
        let mut left = 16;
        while !memory.resumes(0, 3) {
            memory.give(0, 3, PACKET);
            left -= 1;
            assert!(memory.is_balanced());
        }
        assert_eq!(left, below, "xon {xon}, offset {xon_offset}");
    }
}

/// Groups that share headroom have as much as it holds, and each no more than its own.
#[test]
fn shared_headroom_is_shared() {
    let profile = Profile { headroom: 6 * PACKET, ..lossy(0, Threshold::Static(PACKET)) };
    let mut memory = memory(1, vec![pool(1 << 20, Some(10 * PACKET))], [Some(profile); CLASSES]);
    for (port, account, headroom) in [(0, 3, 6), (0, 4, 4), (1, 3, 0)] {
        assert_eq!(fill(&mut memory, port, account, Room::Shared), 1);
        assert_eq!(fill(&mut memory, port, account, Room::Headroom), headroom);
    }
    // A packet leaves headroom first.
    memory.give(0, 3, PACKET);
    assert_eq!(fill(&mut memory, 1, 3, Room::Headroom), 1);
    assert_eq!(memory.most().collect::<Vec<_>>(), [(3 * PACKET, 10 * PACKET)]);
}

proptest::proptest! {
    /// Whatever comes and goes, in whatever order: no pool holds more than its size, sums are right, and an empty
    /// memory is empty.
    #[test]
    fn bytes_balance_and_pools_never_overcommit(
        size in 20_000u64..200_000,
        headroom in proptest::option::of(0u64..40_000),
        cell in 1u64..300,
        given in proptest::collection::vec((0usize..2, 0u64..3_000, -6i32..4, 0u64..20_000, proptest::bool::ANY), 8),
        kept in proptest::collection::vec((0u64..2_000, 0u64..60_000), 2),
        steps in proptest::collection::vec((0usize..2, 0usize..8, 64u64..9_000, proptest::bool::ANY), 1..400),
    ) {
        let profile = |&(pool, reserved, power, headroom, dynamic): &(usize, u64, i32, u64, bool)| {
            let threshold = match dynamic {
                true => Threshold::Dynamic(f64::powi(2.0, power)),
                false => Threshold::Static(headroom * 3),
            };
            Some(Profile { pool, reserved, threshold, headroom, xon: 0, xon_offset: 1_000 })
        };
        let accounts: [Option<Profile>; CLASSES] = std::array::from_fn(|at| profile(&given[at]));
        let limit = |&(reserved, most): &(u64, u64)| {
            vec![PortProfile { pool: 1, reserved, threshold: Threshold::Static(most) }]
        };
        let ports: Vec<Vec<PortProfile>> = kept.iter().map(limit).collect();
        let pools = vec![pool(size, headroom), pool(size / 2, None)];
        let Ok(mut memory) = Memory::new(cell, pools, vec![accounts; 2], &ports) else { return Ok(()) };
        let empty: Vec<u64> = (0..2).map(|pool| memory.free(pool)).collect();
        let mut held = Vec::new();
        for (port, account, bytes, leaves) in steps {
            if leaves && !held.is_empty() {
                let (port, account, bytes) = held.remove(bytes as usize % held.len());
                memory.give(port, account, bytes);
            } else if let Some(place) = memory.room(port, account, bytes) {
                memory.take(port, account, bytes, place);
                held.push((port, account, bytes));
            }
            proptest::prop_assert!(memory.is_balanced());
        }
        for (port, account, bytes) in held {
            memory.give(port, account, bytes);
        }
        proptest::prop_assert!(memory.is_balanced());
        proptest::prop_assert_eq!(empty, (0..2).map(|pool| memory.free(pool)).collect::<Vec<_>>());
    }
}
