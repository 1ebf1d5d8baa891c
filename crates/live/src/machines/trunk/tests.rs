use units::Stream;

use super::*;
use crate::machines::token::Token;

const SESSION: u64 = 77;

fn trunk(me: u8, session: u64) -> Trunk {
    let token = Token::new("a token of these tests").expect("long enough");
    let keys = [b"0 to 1", b"1 to 0"].map(|way| token.key("trunk", &[way]));
    let [to, from] = if me == 0 {
        keys
    } else {
        let [to, from] = keys;
        [from, to]
    };
    Trunk::new(me, session, Keys { to, from }, 100_000, 0)
}

fn two() -> (Trunk, Trunk) {
    (trunk(0, SESSION), trunk(1, SESSION))
}

/// All segments that one wants to send now.
fn segments(from: &mut Trunk, now_us: u64) -> Vec<Vec<u8>> {
    let (mut all, mut segment) = (Vec::new(), Vec::new());
    while from.next(now_us, &mut segment) {
        all.push(segment.clone());
    }
    all
}

fn stream_of(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((at * at) >> 7) as u8).collect()
}

fn inbox(of: &mut Trunk) -> &[u8] {
    of.inbox.make_contiguous()
}

#[test]
fn a_stream_comes_over_whole_and_in_full_segments() {
    let (mut one, mut other) = two();
    let words = stream_of(10 * DATA_BYTES + 17);
    one.write(&words);
    let sent = segments(&mut one, 5);
    assert_eq!(sent.len(), 11);
    assert!(sent[..10].iter().all(|segment| segment.len() == SEGMENT_BYTES));
    sent.iter().for_each(|segment| other.take(9, segment).expect("it is the trunk's"));
    assert_eq!(inbox(&mut other), words);
    assert_eq!((one.unread(), segments(&mut other, 30).len()), (words.len(), 1), "one answer for all");
    other.answers = true;
    segments(&mut other, 31).iter().for_each(|answer| one.take(42, answer).expect("it is the trunk's"));
    assert_eq!((one.unread(), one.trip_us), (0, Some(37)));
    assert!(segments(&mut one, 43).is_empty());
    assert_eq!(segments(&mut one, ALIVE_US + 5).len(), 1, "still there");
}

/// A network that drops, doubles, delays, cuts and turns bits: the streams of both sides come over as they are.
#[test]
fn whatever_the_network_does_both_streams_come_over() {
    let (mut again, mut repeated) = (0, 0);
    for seed in 0..20 {
        let mut chance = Stream::new(seed, 0, "trunk");
        let mut ends = [trunk(0, SESSION), trunk(1, SESSION)];
        let words = [stream_of(200_000), stream_of(70_000)];
        let mut heard = [Vec::new(), Vec::new()];
        let (mut way, mut written, mut now): (Vec<(usize, Vec<u8>)>, _, _) = (Vec::new(), [0, 0], 0);
        while heard[1].len() < words[0].len() || heard[0].len() < words[1].len() {
            now += 1 + chance.below(2_000);
            assert!(now < 60_000_000, "it goes on: {:?}", ends.each_ref().map(|end| end.counts));
            for end in 0..2 {
                let more = (chance.below(9_000) as usize).min(words[end].len() - written[end]);
                ends[end].write(&words[end][written[end]..written[end] + more]);
                written[end] += more;
                way.extend(segments(&mut ends[end], now).into_iter().map(|segment| (1 - end, segment)));
            }
            for _ in 0..way.len() {
                let at = chance.below(way.len() as u64) as usize;
                let (to, mut segment) = way[at].clone();
                let is_changed = chance.below(20) == 0;
                match chance.below(10) {
                    0 => drop(way.swap_remove(at)), // lost
                    1 | 2 => continue,              // later
                    3 => {}                         // twice
                    _ => drop(way.swap_remove(at)),
                }
                if is_changed {
                    let bit = chance.below(8 * segment.len() as u64) as usize;
                    segment[bit / 8] ^= 1 << (bit % 8);
                    assert!(ends[to].take(now, &segment).is_err());
                } else {
                    ends[to].take(now, &segment).expect("it is the trunk's");
                }
                let bytes = ends[to].inbox.make_contiguous().to_vec();
                ends[to].read(bytes.len());
                heard[to].extend(bytes);
            }
        }
        assert!(heard[1] == words[0] && heard[0] == words[1], "seed {seed}");
        again += ends.iter().map(|end| end.counts.again).sum::<u64>();
        repeated += ends.iter().map(|end| end.counts.repeated).sum::<u64>();
    }
    assert!(again > 1_000 && repeated > 1_000, "{again} {repeated}");
}

#[test]
fn what_strangers_send_and_what_is_cut_off_is_refused_and_changes_nothing() {
    let (mut one, mut other) = two();
    one.write(b"words");
    let segment = segments(&mut one, 1).remove(0);
    let refused = |other: &mut Trunk, segment: &[u8]| other.take(1, segment).err();
    for length in 0..segment.len() {
        let refusal = refused(&mut other, &segment[..length]);
        let short = length < HEADER_BYTES + TAG_BYTES;
        assert_eq!(refusal, Some(if short { Refusal::Length } else { Refusal::Stranger }), "{length} bytes");
    }
    assert_eq!(refused(&mut other, &[0; SEGMENT_BYTES + 1]), Some(Refusal::Length));
    for bit in 0..8 * segment.len() {
        let mut changed = segment.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let expected =
            [Refusal::Magic, Refusal::Version, Refusal::Stranger][(bit / 8 >= 4) as usize + (bit / 8 >= 5) as usize];
        assert_eq!(refused(&mut other, &changed), Some(expected), "bit {bit}");
    }
    // Of another run, and its own words back to it.
    let mut earlier = trunk(0, SESSION - 1);
    earlier.write(b"words");
    assert_eq!(refused(&mut other, &segments(&mut earlier, 1)[0]), Some(Refusal::Stranger));
    assert_eq!(refused(&mut one, &segment), Some(Refusal::Stranger));
    assert!(inbox(&mut other).is_empty() && other.counts == Counts::default());
    assert_eq!(refused(&mut other, &segment), None);
}

#[test]
fn what_comes_twice_is_read_once() {
    let (mut one, mut other) = two();
    one.write(b"words");
    let first = segments(&mut one, 1).remove(0);
    (0..3).for_each(|_| other.take(1, &first).expect("it is the trunk's"));
    let answer = segments(&mut other, 2).remove(0);
    (0..3).for_each(|_| one.take(3, &answer).expect("it is the trunk's"));
    assert_eq!((other.counts.repeated, one.unread()), (2, 0));
    assert_eq!(inbox(&mut other), b"words");
    one.write(b", more");
    segments(&mut one, 4).iter().for_each(|segment| other.take(5, segment).expect("it is the trunk's"));
    other.take(6, &first).expect("it is the trunk's");
    assert_eq!(inbox(&mut other), b"words, more");
}

/// One that has the keys and means ill: it can say what can't be, and is told so.
#[test]
fn what_cannot_be_is_refused_though_the_tag_is_right() {
    let (one, mut other) = two();
    for (at, acked) in [(u64::MAX - 2, 0), (KEPT_BYTES, 0), (0, 1), (0, u64::MAX)] {
        let header = Header { from: 0, session: SESSION, at, acked, granted: 0, stamp: 1, echo: 0 };
        let mut segment = Vec::new();
        header.emit(&mut Writer::new(&mut segment));
        segment.extend([7; 5]);
        segment.extend(one.keys.to.tag(&segment));
        assert_eq!(other.take(1, &segment), Err(Refusal::Index), "{at} {acked}");
    }
    // It is granted so much, and then nothing before something is read.
    let (mut one, mut other) = two();
    one.most = u64::MAX / 4;
    one.write(&vec![1; KEPT_BYTES as usize + 10_000]);
    for turn in 0..20 {
        for segment in segments(&mut one, turn) {
            other.take(turn, &segment).expect("it keeps to what is granted");
        }
        for answer in segments(&mut other, turn) {
            one.take(turn, &answer).expect("it is the trunk's");
        }
    }
    assert_eq!((inbox(&mut other).len() as u64, one.unread()), (KEPT_BYTES, 10_000));
    other.read(KEPT_BYTES as usize);
    segments(&mut other, 30).iter().for_each(|answer| one.take(30, answer).expect("it is the trunk's"));
    segments(&mut one, 31).iter().for_each(|segment| other.take(31, segment).expect("it is granted"));
    assert_eq!(inbox(&mut other).len(), 10_000);
}
