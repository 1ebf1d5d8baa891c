use super::*;

/// RFC 6675 section 4, segment by segment.
#[derive(Default)]
struct Model {
    dup_thresh: u64,
    una: u64,
    next: u64,
    high_rxt: u64,
    given_up_below: u64,
    sacked: Vec<u64>,
}

impl Model {
    fn is_lost(&self, segment: u64) -> bool {
        let above = self.sacked.iter().filter(|&&sacked| sacked > segment).count() as u64;
        above >= self.dup_thresh || segment < self.given_up_below
    }

    fn open(&self) -> impl Iterator<Item = u64> + '_ {
        (self.una..self.next).filter(|segment| !self.sacked.contains(segment))
    }

    fn pipe(&self) -> u64 {
        self.open().map(|s| u64::from(!self.is_lost(s)) + u64::from(s < self.high_rxt)).sum()
    }

    fn next_lost(&self) -> Option<u64> {
        self.open().find(|&s| s >= self.high_rxt && self.is_lost(s))
    }

    fn next_hole(&self) -> Option<u64> {
        let highest = self.sacked.iter().max()?;
        self.open().find(|s| *s >= self.high_rxt && s < highest)
    }
}

proptest::proptest! {
    #[test]
    fn edges_and_pipe_are_those_of_the_rfc(
        dup_thresh in 1u32..8,
        steps in proptest::collection::vec((0u8..8, 0u64..12, 1u64..5), 1..150),
    ) {
        let mut board = Scoreboard::new(dup_thresh, false);
        let mut model = Model { dup_thresh: dup_thresh.into(), ..Model::default() };
        let now = Time::ZERO;
        for (kind, offset, count) in steps {
            match kind {
                0..=2 => {
                    board.send(now);
                    model.next += 1;
                }
                3 | 4 => {
                    let (first, end) = (model.una + 1 + offset, model.una + 1 + offset + count);
                    let before = model.sacked.len();
                    for segment in first..end.min(model.next) {
                        if !model.sacked.contains(&segment) {
                            model.sacked.push(segment);
                        }
                    }
                    let progress = board.acknowledge(model.una, [(first, end)]);
                    proptest::prop_assert_eq!(progress.delivered as usize, model.sacked.len() - before);
                }
                5 => {
                    // A receiver acknowledges up to its first hole.
                    let mut upto = (model.una + count).min(model.next);
                    while model.sacked.contains(&upto) {
                        upto += 1;
                    }
                    board.acknowledge(upto, []);
                    model.una = upto;
                    model.high_rxt = model.high_rxt.max(upto);
                    model.sacked.retain(|&segment| segment >= upto);
                }
                6 => {
                    let segment = board.next_lost().or(board.next_hole());
                    proptest::prop_assert_eq!(segment, model.next_lost().or(model.next_hole()));
                    if let Some(segment) = segment {
                        board.resend(segment, now);
                        model.high_rxt = segment + 1;
                    }
                }
                _ if offset == 0 => {
                    board.give_up();
                    model.given_up_below = model.next;
                    model.high_rxt = model.una;
                }
                _ => {}
            }
            proptest::prop_assert_eq!(board.pipe(), model.pipe());
            proptest::prop_assert_eq!(board.next_lost(), model.next_lost());
            proptest::prop_assert_eq!(board.next_hole(), model.next_hole());
            proptest::prop_assert_eq!(board.last_unsacked(), model.open().last());
            proptest::prop_assert_eq!((board.una(), board.next()), (model.una, model.next));
        }
    }
}

#[test]
fn karn_samples_no_segment_that_was_sent_twice() {
    let mut board = Scoreboard::new(DUP_THRESH, false);
    for at in 0..4 {
        board.send(Time::from_us(at));
    }
    board.give_up();
    board.resend(0, Time::from_us(100));
    assert_eq!(board.acknowledge(1, []).rtt(Time::from_us(110)), None);
    assert_eq!(board.acknowledge(3, []).rtt(Time::from_us(110)), Some(Duration::from_us(108)));
}
