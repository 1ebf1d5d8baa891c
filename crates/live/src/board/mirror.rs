//! Copies a process's part of the board to a machine that can't see its memory.
//!
//! Changes of the numbers are sent, and written at the other machine into memory that represents the process's own. A
//! reader there must see what it could have seen here: a promise only after the packets that were sent before it (the
//! trunk's order ensures that), and the numbers of a resting worker in a consistent state. So a worker's numbers are
//! read again until they have not changed meanwhile, and they are written while its entry says that it does not rest.

use std::sync::atomic::Ordering;

use super::{header, post, post_lines};
use crate::shared::{Lines, WORDS};

/// A number on the board of a process that has changed: which, and what it is now.
pub(crate) type Change = (u32, u64);

/// How often a post is read again that changes while it is read. Then it waits for the next round.
const TRIES: u32 = 4;

/// What this machine has already sent of a process's board.
pub(crate) struct Mirror {
    said: Vec<u64>,
    /// Lines of a post.
    post: usize,
}

impl Mirror {
    /// Of a board with this many lines, where there are this many workers in all.
    pub fn new(lines: usize, workers: usize) -> Mirror {
        Mirror { said: vec![0; lines * WORDS], post: post_lines(workers) }
    }

    /// What has changed since the last time.
    pub fn changes(&mut self, lines: &Lines, out: &mut Vec<Change>) {
        out.clear();
        // Why the run is over is written last and so read first: what belongs to it is there then.
        for word in 0..=header::LAST {
            self.say(lines, word, out);
        }
        for first in (1..lines.len()).step_by(self.post) {
            self.post_changes(lines, first * WORDS, out);
        }
    }

    fn post_changes(&mut self, lines: &Lines, first: usize, out: &mut Vec<Change>) {
        self.say(lines, first + post::PROMISE, out);
        for _ in 0..TRIES {
            let turns = read(lines, first + post::TURNS);
            let begin = out.len();
            // While it moves, nothing else of it counts.
            if turns.is_multiple_of(2) && turns != self.said[first + post::TURNS] {
                let passed = first + WORDS..first + self.post * WORDS;
                for word in std::iter::once(first + post::NEXT_AT).chain(passed) {
                    let now = read(lines, word);
                    if now != self.said[word] {
                        out.push((word as u32, now));
                    }
                }
            }
            if read(lines, first + post::TURNS) == turns {
                if turns != self.said[first + post::TURNS] {
                    out.push(((first + post::TURNS) as u32, turns));
                }
                out[begin..].iter().for_each(|&(word, now)| self.said[word as usize] = now);
                return;
            }
            out.truncate(begin);
        }
    }

    fn say(&mut self, lines: &Lines, word: usize, out: &mut Vec<Change>) {
        let now = read(lines, word);
        if std::mem::replace(&mut self.said[word], now) != now {
            out.push((word as u32, now));
        }
    }

    /// Writes changes of another process to what stands for its board here.
    ///
    /// # Errors
    /// Where there is no such number; then nothing is written.
    pub fn apply(&self, lines: &Lines, changes: &[Change]) -> Result<(), ()> {
        let count = lines.len() * WORDS;
        if changes.iter().any(|&(word, _)| word as usize >= count) {
            return Err(());
        }
        let is_turns = |word: u32| {
            let (line, word) = (word as usize / WORDS, word as usize % WORDS);
            line > 0 && (line - 1).is_multiple_of(self.post) && word == post::TURNS
        };
        let turns = || changes.iter().filter(|&&(word, _)| is_turns(word));
        for &(word, _) in turns() {
            lines[word as usize / WORDS].0[word as usize % WORDS].fetch_or(1, Ordering::SeqCst);
        }
        for &(word, now) in changes.iter().rev().filter(|&&(word, _)| !is_turns(word)) {
            write(lines, word, now);
        }
        turns().for_each(|&(word, now)| write(lines, word, now));
        Ok(())
    }
}

fn read(lines: &Lines, word: usize) -> u64 {
    lines[word / WORDS].0[word % WORDS].load(Ordering::SeqCst)
}

fn write(lines: &Lines, word: u32, now: u64) {
    lines[word as usize / WORDS].0[word as usize % WORDS].store(now, Ordering::SeqCst);
}

#[cfg(test)]
mod tests;
