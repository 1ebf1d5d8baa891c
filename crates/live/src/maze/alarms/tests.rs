//! Alarms ring when the worker's present has come to them, once, and in the mailbox of their port.

use units::{HostId, Time};

use super::*;

const PORT: Address = Address { host: HostId(3), port: 7 };

fn has_passed(mailbox: &Mailbox<Arrived>, at: u64) -> bool {
    matches!(mailbox.take_before(Time::from_ps(at), PORT, Some(std::time::Duration::ZERO)), Some(Ok(None)))
}

#[test]
fn the_first_is_known_and_rings_at_its_time() {
    let (alarms, mailbox) = (Alarms::default(), Arc::default());
    assert_eq!(alarms.first(), Time::from_ps(u64::MAX));
    for at in [30, 10, 20, 20] {
        alarms.set(Time::from_ps(at), PORT, &mailbox);
    }
    assert_eq!(alarms.first(), Time::from_ps(10));
    alarms.ring(Time::from_ps(9));
    assert!(!has_passed(&mailbox, 10));
    alarms.ring(Time::from_ps(20));
    assert!(has_passed(&mailbox, 10) && has_passed(&mailbox, 20) && !has_passed(&mailbox, 21));
    assert_eq!(alarms.first(), Time::from_ps(30));
    alarms.forget(Time::from_ps(30), PORT);
    assert_eq!(alarms.first(), Time::from_ps(u64::MAX));
    alarms.ring(Time::from_ps(40));
    assert!(!has_passed(&mailbox, 30));
}

#[test]
fn of_a_port_that_is_closed_nothing_is_kept() {
    let (alarms, mailbox) = (Alarms::default(), Arc::<Mailbox<Arrived>>::default());
    alarms.set(Time::from_ps(10), PORT, &mailbox);
    drop(mailbox);
    alarms.ring(Time::from_ps(10));
    assert_eq!(alarms.first(), Time::from_ps(u64::MAX));
}
