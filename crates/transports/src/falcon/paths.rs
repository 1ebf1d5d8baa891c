//! Which path a packet takes: the flow label of one of the connection's paths, which switches hash.
//!
//! New packets take paths in turn, each as often in a round as its fabric window is large (weighted round robin;
//! Isekai, `gen2/reliability_manager.cc`). A packet that goes again takes its path again, by the label that this has
//! now.

use units::{Stream, Time};

use super::params::{PATHS, Params};
use super::windows::Windows;

/// The greatest weight of a path (`kMaxFlowWeight`).
const WEIGHT_MAX: f64 = 15.0;
/// Bits of a flow label (RFC 6437) above those that name the path.
const RANDOM_BITS: u32 = 18;

#[derive(Clone, Debug, node::State)]
#[state(given(Time))]
pub(super) struct Paths {
    labels: [u32; PATHS],
    /// How many packets each may still have in this round.
    credits: [u8; PATHS],
    turn: usize,
    #[state(each(when(*item > *given, time, past)))]
    changed_at: [Time; PATHS],
}

fn label(path: usize, random: &mut Stream) -> u32 {
    // Never 0, which is no label.
    let random = 1 + random.below((1 << RANDOM_BITS) - 1) as u32;
    random << 2 | path as u32
}

impl Paths {
    pub fn new(random: &mut Stream) -> Paths {
        Paths {
            labels: std::array::from_fn(|path| label(path, random)),
            credits: [0; PATHS],
            turn: 0,
            changed_at: [Time::ZERO; PATHS],
        }
    }

    pub fn label(&self, path: u8) -> u32 {
        self.labels[usize::from(path) % PATHS]
    }

    /// Gives a path another label, and so, most likely, other links.
    pub fn change(&mut self, path: u8, now: Time, random: &mut Stream) {
        let path = usize::from(path) % PATHS;
        self.labels[path] = label(path, random);
        self.changed_at[path] = now;
    }

    /// When it got the label that it has.
    pub fn changed_at(&self, path: u8) -> Time {
        self.changed_at[usize::from(path) % PATHS]
    }

    /// The path of the next new packet.
    pub fn next(&mut self, windows: &Windows, params: &Params) -> u8 {
        if self.credits == [0; PATHS] {
            let all = windows.fcwnd(params);
            for path in 0..params.paths {
                let weight = (WEIGHT_MAX * windows.of_path(path) / all + 0.5) as u8;
                self.credits[path] = weight.clamp(1, WEIGHT_MAX as u8);
            }
        }
        while self.credits[self.turn] == 0 {
            self.turn = (self.turn + 1) % params.paths;
        }
        let path = self.turn;
        self.credits[path] -= 1;
        self.turn = (self.turn + 1) % params.paths;
        path as u8
    }
}

#[cfg(test)]
mod tests;
