use crate::Walk;
use std::sync::Arc;

use super::*;
use crate::walk::recurrence;

#[test]
fn a_record_keeps_what_the_wire_can_tell_of_the_first_eight_hops() {
    let hop = HopRecord::new(Rate::from_gbps(100), Time::from_ps(12_345_678), 1_500, 3_000);
    assert_eq!((hop.at, hop.sent_bytes, hop.queue_bytes), (Time::from_ns(12_345), 1_408, 2_960));
    let mut telemetry = Telemetry::default();
    (0..10).for_each(|switch| telemetry.push(SwitchId(switch), hop));
    assert_eq!((telemetry.hops().len(), telemetry.path()), (8, (0..10).fold(0, |path, switch| path ^ switch)));
    let mut echo = telemetry.echo();
    echo.push(SwitchId(5), hop);
    assert_eq!((echo.hops(), echo.path()), (telemetry.hops(), telemetry.path()));
}

#[test]
fn a_record_s_bytes_stay_what_they_are() {
    let mut telemetry = Telemetry::default();
    telemetry.push(
        SwitchId(0x123),
        HopRecord { rate: Rate::from_bps(1), at: Time::from_ps(2), sent_bytes: 3, queue_bytes: 4, place: 0 },
    );
    let mut bytes = Vec::new();
    telemetry.echo().emit(&mut Writer::new(&mut bytes));
    let words = [1u64, 2, 3, 4].map(u64::to_be_bytes).concat();
    assert_eq!(bytes, [&[1, 1, 0x01, 0x23][..], &words].concat());
}

proptest::proptest! {
    #[test]
    fn records_survive_the_wire_and_noise_is_no_panic(
        hops in proptest::collection::vec(proptest::prelude::any::<(u64, u64, u64, u32)>(), 0..9),
        echo: bool,
        noise: Vec<u8>,
    ) {
        let mut telemetry = Telemetry::default();
        for (number, &(rate, at, sent, queue)) in hops.iter().enumerate() {
            let hop = HopRecord::new(Rate::from_bps(rate), Time::from_ps(at), sent, queue);
            telemetry.push(SwitchId(number as u32 * 77), hop);
        }
        let telemetry = if echo { telemetry.echo() } else { telemetry };
        let mut bytes = Vec::new();
        telemetry.emit(&mut Writer::new(&mut bytes));
        let whole = bytes.len();
        bytes.extend(&noise);
        let mut from = Reader::new(&bytes, "");
        proptest::prop_assert_eq!((Telemetry::parse(&mut from), from.rest()), (Ok(telemetry), &noise[..]));
        for cut in 0..whole {
            let told = Telemetry::parse(&mut Reader::new(&bytes[..cut], ""));
            proptest::prop_assert_eq!(told, Err(Malformed { what: "telemetry" }));
        }
        let _ = Telemetry::parse(&mut Reader::new(&noise, ""));
    }
}

/// A port's counter moves for all who know of it, and what another port tells moves by itself.
#[test]
fn what_is_known_of_a_port_moves_with_it() {
    let notes = |now: u64, sent: [u64; 3]| {
        let mut walk = Walk::note(Time::from_ns(now), Arc::default());
        for (port, sent) in [0, 0, 1].into_iter().zip(sent) {
            let mut telemetry = Telemetry::default();
            let hop = HopRecord::new(Rate::from_gbps(100), Time::from_ns(now - 50), sent, 0);
            telemetry.push(SwitchId(3), hop.of(SwitchId(3), PortId(port)));
            crate::State::visit(&mut telemetry, &mut walk, &());
        }
        walk.finish().expect("nobody refuses").expect("notes are taken")
    };
    let before = notes(100, [1_280, 2_560, 0]);
    assert!(recurrence(&before, &notes(200, [2_560, 3_840, 128])).is_ok());
    let apart = recurrence(&before, &notes(200, [2_560, 3_968, 128])).expect_err("one port, two counters");
    assert_eq!(apart.what, SENT);
}
