//! Notes between processes: what is written is read back, and nothing else is.

use proptest::prelude::*;

use super::super::wire::read;
use super::*;

fn note_of(emit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let (mut out, mut note) = (Vec::new(), Vec::new());
    emit(&mut out);
    read(&mut &out[..], NOTE_BYTES_MAX, &mut note, || ()).expect("a note");
    assert_eq!(note.len() + 4, out.len());
    note
}

fn an_address() -> impl Strategy<Value = Address> {
    (any::<u32>(), any::<u16>()).prop_map(|(host, port)| Address { host: HostId(host), port })
}

fn an_event() -> impl Strategy<Value = Event> {
    let at = || (0..=LATEST_PS).prop_map(Time::from_ps);
    let content = prop::collection::vec(any::<u8>(), 0..50);
    prop_oneof![
        at().prop_map(Event::Started),
        at().prop_map(Event::Completed),
        (any::<bool>(), "[a-zé]{0,20}")
            .prop_map(|(is_rejected, reason)| Event::GivenUp { is_rejected, reason: reason.into() }),
        Just(Event::Forgotten),
        (at(), any::<(u16, u16)>(), content).prop_map(|(at, ports, content)| Event::Delivered { at, ports, content }),
        Just(Event::Damaged),
    ]
}

proptest! {
    #[test]
    fn orders_come_as_they_were(of in an_address(), numbers in any::<(u64, u32, u32, u16)>(), content in ".{0,40}") {
        let (place, src, dst, class) = numbers;
        let (at, content) = (Time::from_ps(place), content.as_bytes());
        let (src, dst) = (HostId(src), HostId(dst));
        let orders = [
            Order::Flow { place, src, dst, class, bytes: content.len() as u64, content },
            Order::Go { count: place },
            Order::Wake { of, at },
            Order::Forget { of, at },
        ];
        for order in orders {
            let note = note_of(|out| order.emit(out));
            let read = Order::parse(&note);
            prop_assert_eq!(read.as_ref(), Ok(&order));
            if !matches!(order, Order::Flow { .. }) {
                prop_assert!(Order::parse(&note[..note.len() - 1]).is_err());
                prop_assert!(Order::parse(&[&note[..], &[0]].concat()).is_err());
            }
        }
    }

    #[test]
    fn reports_come_as_they_were(of in an_address(), at: u64, flow: u32, what in an_event()) {
        let delivered = matches!(what, Event::Delivered { .. });
        let happened = Report::Happened { flow: FlowId(flow), what };
        for report in [Report::Knows { count: at }, Report::Passed { of, at: Time::from_ps(at) }, happened] {
            let note = note_of(|out| report.emit(out));
            let read = Report::parse(&note);
            prop_assert_eq!(read.as_ref(), Ok(&report));
            if !(delivered && matches!(report, Report::Happened { .. })) {
                prop_assert!(Report::parse(&note[..note.len() - 1]).is_err());
                prop_assert!(Report::parse(&[&note[..], &[0]].concat()).is_err());
            }
        }
    }

    /// Whatever comes is read or refused.
    #[test]
    fn nothing_panics(kind in prop_oneof![0..6u8, 64..74u8], rest in prop::collection::vec(any::<u8>(), 0..60)) {
        is_note(&[&[kind], &rest[..]].concat());
        is_note(&rest);
    }
}

#[test]
fn a_time_after_the_end_of_all_runs_is_none() {
    for at in [LATEST_PS, LATEST_PS + 1, u64::MAX] {
        let what = Event::Started(Time::from_ps(at));
        let note = note_of(|out| Report::Happened { flow: FlowId(1), what }.emit(out));
        assert_eq!(Report::parse(&note).is_ok(), at == LATEST_PS);
    }
}
