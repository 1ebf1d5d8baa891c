//! Additional slots: who gets them, and how they are asked for after refusals.

use super::super::AdditionalTo;
use super::*;

/// When a receiver asked for additional slots for a flow.
fn asked(scene: &Scene, flow: FlowId) -> Vec<Time> {
    let rsvps = sent!(scene, Header::Rsvp(rsvp) => rsvp);
    rsvps.iter().filter(|of| of.1.flow == flow && of.2.slot == Slot::Additional).map(|of| of.0).collect()
}

#[test]
fn a_refused_additional_slot_is_asked_for_more_and_more_seldom_and_no_more_than_one_at_a_time() {
    // The sender's two slots are the main ones of two messages. The second ends after 600 packets, 242 ns apart.
    let mut scene = scene(3, slots(2));
    let long = scene.send(Time::ZERO, 0, 1, packets(3_000));
    let other = scene.send(Time::ZERO, 0, 2, packets(600));
    scene.run_until(Time::from_ms(2));
    let free = scene.completed_at(other).unwrap();
    let asked = asked(&scene, long);
    let gap = |pair: &[Time]| pair[1].since(pair[0]);
    let in_vain: Vec<Time> = asked.iter().copied().filter(|&at| at < free).collect();
    // From one control round trip to as long as an additional slot lasts: 45 packets.
    let longest = Bounds::new(&slots(2), &network(&site())).period(1500) * 45;
    let gaps: Vec<Duration> = in_vain.windows(2).map(gap).collect();
    for (gap, pause) in gaps.iter().zip([CONTROL * 2, CONTROL * 4]) {
        // The reject may have waited for a packet.
        assert!(*gap >= pause && *gap < pause + PACKET * 2, "{gap} for {pause}");
    }
    assert!(gaps[2..].iter().all(|&gap| gap >= longest && gap < longest + PACKET * 2), "{gaps:?} for {longest}");
    assert!(gaps.len() as u64 >= free.since(Time::ZERO).ps() / longest.ps() - 2, "{}", gaps.len());
    // It has the other's slot before as long again is over, and asks without a pause from then on.
    let after: Vec<Time> = asked.iter().copied().filter(|&at| at >= free).collect();
    assert!(after[0].since(free) < longest + PACKET * 2);
    assert!(after.windows(2).all(|pair| gap(pair) < longest + CONTROL * 3), "{after:?}");
    assert_eq!(count(&scene, 1, "refused") as usize, in_vain.len());
}

#[test]
fn what_is_refused_together_counts_once_and_a_slot_that_is_granted_ends_the_pause() {
    // Three of four slots of the sender are taken by main ones for 100 us; the fourth message is asked for three more.
    let mut scene = scene(5, slots(4));
    let flow = scene.send(Time::ZERO, 0, 1, packets(3_000));
    for dst in 2..5 {
        scene.send(Time::ZERO, 0, dst, packets(200));
    }
    scene.run_until(Time::from_ms(2));
    let asked = asked(&scene, flow);
    assert!(asked[..3].iter().all(|&at| at.since(asked[0]) < Duration::from_ns(20)), "{asked:?}");
    let pause = asked[3].since(asked[0]);
    assert!(pause >= CONTROL * 2 && pause < CONTROL * 2 + PACKET * 5, "{pause}");
    // When the others have ended it soon has all four.
    let free = (2..5).filter_map(|dst| scene.completed_at(FlowId(dst - 1))).max().unwrap();
    let later = asked.iter().filter(|&&at| at > free && at < free + Duration::from_us(60)).count();
    assert!(later >= 4, "{later}");
}

#[test]
fn additional_slots_go_to_the_oldest_message_or_to_the_one_with_the_fewest() {
    let run = |additional_to| {
        let mut scene = scene(3, Config { additional_to, ..slots(8) });
        scene.send(Time::ZERO, 0, 1, packets(7_000));
        let short = scene.send(Time::from_us(100), 2, 1, packets(88));
        scene.run_until(Time::from_us(500));
        scene.completed_at(short).unwrap().since(Time::from_us(100))
    };
    // It waits until slots of the long one have ended, 45 packets after they began. Then it has one slot for 88
    // packets, or four.
    let (oldest, fewest) = (run(AdditionalTo::Oldest), run(AdditionalTo::Fewest));
    let ways = CONTROL * 4 + DATA;
    assert!(oldest > PERIOD * 87 + ways, "{oldest}");
    assert!(fewest > PERIOD * 21 + ways && fewest < PERIOD * (45 + 22) + ways, "{fewest}");
}
