//! GOAL text.

use std::io::{self, Write};

use units::Duration;

use super::{Before, tags};
use crate::{Graph, Rank, StepId, Work};

/// Writes a graph as GOAL text, with times in `unit` rounded to the nearest: LogGOPSim's is a nanosecond.
///
/// Computations are `calc` on cpu 0, delays on cpu 1, which [`GoalTrace`](crate::read::GoalTrace) takes for delays
/// again; LogGOPSim does one after the other there.
pub fn goal(graph: &Graph, unit: Duration, out: &mut dyn Write) -> io::Result<()> {
    let (tags, before) = (tags(graph), Before::new(graph));
    let unit = unit.ps().max(1);
    let amount = |time: Duration| time.ps() / unit + u64::from(time.ps() % unit >= unit.div_ceil(2));
    writeln!(out, "num_ranks {}", graph.ranks())?;
    for rank in 0..graph.ranks() {
        let steps = graph.of(Rank(rank));
        let label = |step: u32| step - steps.start + 1;
        writeln!(out, "\nrank {rank} {{")?;
        for step in steps.clone() {
            write!(out, "l{}: ", label(step))?;
            match graph.step(StepId(step)).work {
                Work::Compute(time) => writeln!(out, "calc {}", amount(time))?,
                Work::Delay(time) => writeln!(out, "calc {} cpu 1", amount(time))?,
                Work::Send(id) => {
                    let message = graph.message(id);
                    writeln!(out, "send {}b to {} tag {}", message.bytes, message.to.0, tags[id.index()])?;
                }
                Work::Receive(id) => {
                    let message = graph.message(id);
                    writeln!(out, "recv {}b from {} tag {}", message.bytes, message.from.0, tags[id.index()])?;
                }
            }
            for &other in before.of(step) {
                writeln!(out, "l{} requires l{}", label(step), label(other))?;
            }
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}
