//! Each kind of packet is lost, once and for a while.

use super::*;

#[test]
fn what_an_outage_has_taken_is_repeated_at_the_flow_s_rate() {
    // 2,000 packets in a row, and every third of the next 3,000, are lost.
    let lost =
        |number: u32| (1_000..3_000).contains(&number) || (3_000..6_000).contains(&number) && number.is_multiple_of(3);
    let mut scene = scene(2, Config::default(), &[]);
    let mut seen = 0;
    scene.spoil(move |_, packet| {
        let first = packet.payload_bytes > 0;
        seen += u32::from(first);
        if first && lost(seen - 1) { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(8_000));
    scene.run_until(Time::from_ms(20));
    let Some(Event::Completed { resent_packets, .. }) =
        scene.events.iter().map(|event| event.2).find(|event| matches!(event, Event::Completed { .. }))
    else {
        panic!("{:?}", scene.events)
    };
    assert_eq!(resent_packets, 3_000, "nothing is sent twice that was not lost");
    // 12,000 bits a packet at 95 Gbps, the wait of a millisecond before it asks, and two round trips.
    let sending = Duration::from_ps(126_316 * 11_000);
    let delivered = scene.delivered_at(flow).unwrap();
    let least = Time::ZERO + sending + Duration::from_ms(1);
    assert!(delivered > least && delivered < least + CONTROL * 5, "{delivered} for {least}");
}

type Kind = (&'static str, fn(Header) -> bool);

const KINDS: [Kind; 5] = [
    ("announcement", |header| matches!(header, Header::Announce(_))),
    ("end", |header| matches!(header, Header::Finish(_))),
    ("probe", |header| matches!(header, Header::Probe { .. })),
    ("status", |header| matches!(header, Header::Status(_))),
    ("done", |header| header == Header::Done),
];

/// Three flows whose packets 100 to 500 are lost, and packets of one kind. Returns how many of these came up.
fn crowd(kind: fn(Header) -> bool, lost: std::ops::Range<usize>) -> (Scene, usize) {
    let config = Config { refresh: Some(Duration::from_ms(1)), ..Config::default() };
    let mut scene = scene(4, config, &[]);
    let seen = Arc::new(Mutex::new(0));
    let (count, mut of_data) = (seen.clone(), [0u32; 3]);
    scene.spoil(move |_, packet| {
        if packet.payload_bytes > 0 {
            let of_data = &mut of_data[packet.flow.0 as usize];
            *of_data += 1;
            return if (100..500).contains(of_data) { PacketFate::Drop } else { PacketFate::Pass };
        }
        let hit = kind(packet.header());
        let mut seen = count.lock().unwrap();
        *seen += usize::from(hit);
        if hit && lost.contains(&(*seen - 1)) { PacketFate::Drop } else { PacketFate::Pass }
    });
    for (at, src, dst) in [(0, 0, 1), (3, 0, 2), (5, 3, 1)] {
        scene.send(Time::from_us(at), src, dst, packets(2_000));
    }
    scene.run_until(Time::from_ms(60));
    let seen = *seen.lock().unwrap();
    (scene, seen)
}

fn last_end(scene: &Scene) -> Time {
    let completed = || scene.events.iter().filter(|event| matches!(event.2, Event::Completed { .. }));
    assert_eq!(completed().count(), 3, "{:?}", scene.events);
    for host in 0..4 {
        assert_eq!(count(scene, host, "busy_at_end"), 0, "host {host}");
    }
    completed().map(|event| event.0).max().unwrap()
}

#[test]
fn a_packet_of_any_kind_that_is_lost_costs_one_wait() {
    let undisturbed = last_end(&crowd(|_| false, 0..0).0);
    for (name, kind) in KINDS {
        let came = crowd(kind, 0..0).1;
        assert!(came >= 3, "{came} of {name}");
        for lost in 0..came {
            let end = last_end(&crowd(kind, lost..lost + 1).0);
            // A sender waits twice as long after the first question. An announcement that is not heard leaves others'
            // rates as they were until the next.
            assert!(end <= undisturbed + Duration::from_us(2_200), "{name} {lost}: {end} for {undisturbed}");
        }
    }
}
