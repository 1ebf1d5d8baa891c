//! Alarms ring when the worker's present has come to them, once, and in the mailbox of their port.

use std::sync::Arc;

use units::{HostId, Time};

use super::*;

const PORT: Address = Address { host: HostId(3), port: 7 };

fn has_passed(mailbox: &Mailbox<Arrived>, at: u64) -> bool {
    matches!(mailbox.take_before(Time::from_ps(at), PORT, Some(std::time::Duration::ZERO)), Some(Ok(None)))
}

fn ring(alarms: &Alarms, at: u64) {
    alarms.ring(Time::from_ps(at), |of, at, mailbox| {
        mailbox.upgrade().iter().for_each(|mailbox| mailbox.pass(of, at));
    });
}

#[test]
fn the_first_is_known_and_rings_at_its_time() {
    let (alarms, mailbox) = (Alarms::default(), Arc::<Mailbox<Arrived>>::default());
    assert_eq!(alarms.first(), Time::from_ps(u64::MAX));
    for at in [30, 10, 20, 20] {
        alarms.set(Time::from_ps(at), PORT, Arc::downgrade(&mailbox));
    }
    assert_eq!(alarms.first(), Time::from_ps(10));
    ring(&alarms, 9);
    assert!(!has_passed(&mailbox, 10));
    ring(&alarms, 20);
    assert!(has_passed(&mailbox, 10) && has_passed(&mailbox, 20) && !has_passed(&mailbox, 21));
    assert_eq!(alarms.first(), Time::from_ps(30));
    alarms.forget(Time::from_ps(30), PORT);
    assert_eq!(alarms.first(), Time::from_ps(u64::MAX));
    ring(&alarms, 40);
    assert!(!has_passed(&mailbox, 30));
}

#[test]
fn of_a_port_that_is_closed_nothing_is_kept() {
    let (alarms, mailbox) = (Alarms::default(), Arc::<Mailbox<Arrived>>::default());
    alarms.set(Time::from_ps(10), PORT, Arc::downgrade(&mailbox));
    drop(mailbox);
    ring(&alarms, 10);
    assert_eq!(alarms.first(), Time::from_ps(u64::MAX));
}
