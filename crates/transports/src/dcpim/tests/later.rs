//! The authors' program of 2023: channels that are used at once, and accepts that are more than a sender can serve.

use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};

use super::*;

fn with(departures: &[Departure], channels: u8) -> Config {
    Config { channels, departures: departures.iter().copied().collect(), ..Config::default() }
}

#[test]
fn idle_channels_are_used_as_soon_as_they_are_accepted() {
    let mut scene = scene(2, with(&[Departure::PromptLinks], 4));
    let flow = scene.send(Time::ZERO, 0, 1, packets(1_000));
    scene.run_until(ms(1));
    // Asked at stage 2, accepted at stage 4; the data phase begins at stage 9.
    let accepts = sent!(scene, Header::Accept(accept) => accept);
    assert_eq!((accepts[0].0, accepts[0].2.channels, accepts[0].2.prompt), (stage(4), 4, 4));
    let tokens = sent!(scene, Header::Token(token) => token);
    assert_eq!(tokens[0].0, stage(4) + Duration::from_ps(3_200), "behind the accept");
    // At the lowest priority, at the pace of the whole link, which they fill until the data phase begins.
    let (before, after) = tokens.split_at(tokens.partition_point(|sent| sent.0 < stage(9)));
    assert!(before.iter().all(|sent| sent.2.class == 7) && after.iter().all(|sent| sent.2.class == 2));
    let pace = (stage(9) - stage(4)).ps() / 120_000;
    assert!((pace - 2..=pace + 1).contains(&(before.len() as u64)), "{} for {pace}", before.len());
    assert_eq!(resent(&scene, flow), 0);
    // The paper's protocol waits.
    let mut paper = self::scene(2, with(&[], 4));
    let waits = paper.send(Time::ZERO, 0, 1, packets(1_000));
    paper.run_until(ms(1));
    let earlier = paper.delivered_at(waits).expect("delivered") - scene.delivered_at(flow).expect("delivered");
    assert!(earlier > STAGE * 4 && earlier <= STAGE * 9, "{earlier}");
}

#[test]
fn channels_that_are_not_idle_wait_for_the_next_phase() {
    // The receiver's four channels are taken in the running phase, those of the second sender's are not.
    let mut scene = scene(3, with(&[Departure::PromptLinks], 4));
    scene.send(Time::ZERO, 0, 2, packets(2_000));
    scene.run_until(stage(12));
    scene.send(stage(12), 1, 2, packets(100));
    scene.run_until(ms(2));
    let of_second = |(_, packet, _): &&(Time, Packet, Accept)| packet.dst == HostId(1);
    let accepts = sent!(scene, Header::Accept(accept) => accept);
    let first = accepts.iter().find(of_second).expect("the second is matched");
    assert_eq!(first.2.prompt, 0, "at {}", first.0);
}

#[test]
fn a_sender_serves_no_more_than_its_channels_and_says_so() {
    // One channel a host. The first receiver's accept is late, so that the sender grants the second one, too.
    let late_accept = |departures: &[Departure], loses_trims: bool| {
        let mut scene = scene(3, with(departures, 1));
        scene.spoil(move |now, packet| match packet.header() {
            Header::Accept(_) if packet.src == HostId(1) && now < stage(9) => PacketFate::Delay(STAGE * 2),
            Header::Trim(_) if loses_trims => PacketFate::Drop,
            _ => PacketFate::Pass,
        });
        let flows = [scene.send(Time::ZERO, 0, 1, packets(100)), scene.send(stage(2), 0, 2, packets(100))];
        scene.run_until(ms(1));
        assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some()));
        let first_phase = |sent: &(Time, Packet, u32)| sent.0 > stage(9) && sent.0 < stage(18);
        let tokens = sent!(scene, Header::Token(token) => token.phase);
        let by = [1, 2].map(|host| {
            tokens.iter().filter(|sent| first_phase(sent) && sent.1.src == HostId(host) && sent.2 == 0).count()
        });
        (by, sent!(scene, Header::Trim(trim) => trim).len())
    };
    let (tokens, trims) = late_accept(&[], false);
    assert!(tokens.iter().all(|&tokens| tokens > 0) && trims == 0, "{tokens:?}");
    let (tokens, trims) = late_accept(&[Departure::TrimmedAccepts], false);
    assert_eq!((tokens.iter().filter(|&&tokens| tokens > 0).count(), trims), (1, 1), "{tokens:?}");
    // A lost one costs tokens that are not obeyed.
    let (tokens, _) = late_accept(&[Departure::TrimmedAccepts], true);
    assert!(tokens.iter().all(|&tokens| tokens > 0), "{tokens:?}");
}

#[test]
fn every_preset_of_the_authors_has_a_name() {
    let of = |name| Departures::named(name).expect("a preset");
    assert_eq!(of("authors_2022"), Departures::published());
    let later = of("authors_2023");
    assert!(
        later.has(Departure::PromptLinks) && later.has(Departure::TrimmedAccepts) && !later.has(Departure::Backoff)
    );
    let read = |name: &'static str| Departures::deserialize(StrDeserializer::<ValueError>::new(name));
    assert_eq!(read("authors_2023").unwrap(), later);
    let refused = read("authors").unwrap_err().to_string();
    assert_eq!(refused, "unknown variant `authors`, expected one of `authors_2022`, `authors_2023`, `paper`");
}
