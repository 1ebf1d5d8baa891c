use fabric::FabricSpec;
use units::Duration;

use super::*;
use scenario::read;

const ONE: &str = "[[traffic]]\nsizes.constant = '1KB'\nflows = 1\narrivals = 'all_at_once'\n";

#[test]
fn what_is_guaranteed_needs_room() {
    let fabric = FabricSpec::Star(fabric::Star { hosts: 4, ..Default::default() }).build().unwrap();
    let queue_bytes: Vec<u64> = (0..fabric.links.len() as u64).map(|link| 6_000 + link % 2).collect();
    let guarantee =
        Some(Guarantee { class: 0, room_bytes: queue_bytes.clone(), queue_bytes, wait: Duration::ZERO, proven: true });
    let reserved = Reserved { transport: 0, classes: 2, guarantee };
    let check = |buffer: &str, alone| {
        let scenario = read(&format!("switch.buffer.{buffer}\n{ONE}"), "test", &[]).unwrap();
        reserved.check_room(&scenario, &fabric, "harmony", alone).map_err(|problem| problem.message)
    };
    let room = reserved.room(&fabric, SwitchId(0)).unwrap();
    let [most, sum]: [u64; 2] = [*room.port_bytes.iter().max().unwrap(), room.port_bytes.iter().sum()];
    assert!(
        room.guaranteed == 1 && room.reserved == 2 && room.port_bytes.len() == 4 && (6_000..=6_001).contains(&most)
    );
    // A packet more, for signals; with other traffic, as much again for them.
    let needed = sum + 1_500;
    assert_eq!(check(&format!("shared.bytes = '{needed}B'"), true), Ok(()));
    let lacking = check(&format!("shared.bytes = '{}B'", needed - 1), true).unwrap_err();
    assert!(lacking.contains(&format!("the memory of switch0 needs {needed} bytes")), "{lacking}");
    assert!(check(&format!("shared.bytes = '{needed}B'"), false).is_err());
    assert_eq!(check(&format!("shared.bytes = '{}B'", needed + sum), false), Ok(()));
    assert_eq!(check("per_port.bytes = '14KB'", false), Ok(()));
}

#[test]
fn all_that_is_guaranteed_is_kept_where_it_fits_and_else_what_must_be() {
    let fabric = FabricSpec::Star(fabric::Star { hosts: 4, ..Default::default() }).build().unwrap();
    let (queue_bytes, room_bytes) = (vec![9_000; fabric.links.len()], vec![6_000; fabric.links.len()]);
    let guarantee = Guarantee { class: 0, queue_bytes, room_bytes, wait: Duration::ZERO, proven: true };
    let kept = |bytes: u64, alone| {
        let text = format!("switch.buffer.per_port.bytes = '{bytes}B'\n{ONE}");
        let scenario = read(&text, "test", &[]).unwrap();
        let mut reserved = Reserved { transport: 0, classes: 2, guarantee: Some(guarantee.clone()) };
        reserved.check_room(&scenario, &fabric, "harmony", alone).ok()?;
        reserved.widen(&scenario, &fabric, alone);
        Some(reserved.room(&fabric, SwitchId(0)).unwrap().port_bytes)
    };
    assert_eq!(kept(10_500, true), Some(vec![9_000; 4]));
    assert_eq!(kept(10_499, true), Some(vec![6_000; 4]));
    assert_eq!(kept(7_500, true), Some(vec![6_000; 4]));
    assert_eq!(kept(7_499, true), None);
    assert_eq!(kept(19_499, false), Some(vec![6_000; 4]));
    assert_eq!(kept(19_500, false), Some(vec![9_000; 4]));
}
