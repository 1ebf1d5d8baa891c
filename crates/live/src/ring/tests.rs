use super::*;

fn two() -> (Ring, Ring, Arc<Lines>) {
    let lines = Arc::new(Lines::own(ring_lines(100)));
    (Ring::new(lines.clone(), 0, 100), Ring::new(lines.clone(), 0, 100), lines)
}

const MOST: usize = FIELDS_BYTES_MAX + 100;

#[test]
fn what_goes_in_comes_out_in_order_until_it_is_full() {
    let (mut to, mut from, _) = two();
    let mut entry = Vec::new();
    for turn in 0..20 {
        let packet = |number: usize| vec![number as u8; (MOST - turn) * number / (RING - 1)];
        for number in 0..RING {
            assert_eq!(to.push(&packet(number)), Ok(true));
        }
        assert_eq!(to.push(&[1]), Ok(false), "full");
        for number in 0..RING {
            assert!(from.has_some());
            assert_eq!(from.pop(&mut entry), Ok(true));
            assert_eq!(entry, packet(number));
        }
        assert!(!from.has_some() && from.pop(&mut entry) == Ok(false));
    }
    assert_eq!(to.push(&[0; MOST + 1]), Err(Refusal::Length));
}

#[test]
fn counts_that_cannot_be_and_lengths_that_do_not_fit_are_refused() {
    let (mut to, mut from, lines) = two();
    let mut entry = Vec::new();
    assert_eq!(to.push(&[1, 2, 3]), Ok(true));
    for length in [u64::MAX, 1 << 31, 1 << 32, MOST as u64 + 1] {
        lines[2].0[0].store(length, Ordering::Relaxed);
        let mut again = Ring::new(lines.clone(), 0, 100);
        assert_eq!(again.pop(&mut entry), Err(Refusal::Length), "{length:x}");
        assert_eq!(again.pop(&mut entry), Ok(false), "it goes on behind that");
    }
    for written in [RING as u64 + 1, u64::MAX, 1 << 63] {
        lines[0].0[0].store(written, Ordering::Relaxed);
        assert_eq!(from.pop(&mut entry), Err(Refusal::Index));
    }
    for read in [2, u64::MAX / 2, 1u64.wrapping_sub(RING as u64 + 1)] {
        lines[1].0[0].store(read, Ordering::Relaxed);
        assert_eq!(to.push(&[]), Err(Refusal::Index), "{read}");
    }
}
