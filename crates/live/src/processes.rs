//! A run in several processes of one machine.
//!
//! The first process makes the plan of the scenario and the shared memory, starts the others, and tells each over a
//! Unix socket what to run. Every process then makes the same plan and runs its own workers. A process's entries on the
//! [board](crate::board) are in memory that only it can write. Packets go through [rings](crate::ring): a piece of
//! memory for each pair of processes and direction, which no third process sees.
//!
//! A process that ends in the middle is a failure of its nodes: the first process says so on the board, and every
//! worker treats the links to them as failed and routes around them. When the run is over, each process sends its
//! nodes' results ([`driver::Summary`]), and the first one makes tables of them.
//!
//! Where programs send messages, there is a second stream to each process for these ([`mail`](crate::mail)), and the
//! first process has the exchange ([`maze`](crate::maze)).
//!
//! Absent on purpose: a remedy for a process that lives but makes no progress. It delays the others, since they wait
//! for what it may send. If the run is interrupted, the results are written without it.

#[cfg(target_os = "linux")]
mod first;
#[cfg(target_os = "linux")]
mod other;
#[cfg(target_os = "linux")]
mod socket;

#[cfg(target_os = "linux")]
pub(crate) use first::run_open;
#[cfg(target_os = "linux")]
pub use first::run_processes;
#[cfg(target_os = "linux")]
pub use other::take_part;

#[cfg(target_os = "linux")]
mod ends {
    use std::fs::File;
    use std::io;
    use std::sync::Arc;

    use driver::Cut;
    use run::Plan;

    use crate::board::{board_lines, workers_of};
    use crate::network::FarEnds;
    use crate::ring::{Ring, ring_lines};
    use crate::shared::{Lines, Shared};
    use crate::wires::Far;

    /// A run's processes and workers.
    #[derive(Clone, Copy)]
    pub struct Shape {
        pub processes: usize,
        pub workers: usize,
        /// The most bytes of content in a packet.
        pub room: usize,
    }

    impl Shape {
        pub fn of(plan: &Plan, cut: &Cut, processes: usize) -> Shape {
            Shape { processes, workers: cut.parts(), room: plan.scenario.host.mtu.get() as usize }
        }

        pub fn board_lines(self, process: usize) -> usize {
            board_lines(process, self.processes, self.workers)
        }

        /// Lines of all rings from a process to another: by writer, then reader.
        pub fn ring_lines(self, from: usize, to: usize) -> usize {
            self.own(from).len() * self.own(to).len() * ring_lines(self.room)
        }

        fn own(self, process: usize) -> std::ops::Range<usize> {
            workers_of(process, self.processes, self.workers)
        }

        /// The ends of rings of process `me`, whose files by other process are these: to it, from it.
        pub fn far(self, me: usize, files: &[Option<(File, File)>]) -> io::Result<FarEnds> {
            let own = self.own(me);
            let mut ends: FarEnds = own.clone().map(|_| (0..self.workers).map(|_| None).collect()).collect();
            for (other, files) in files.iter().enumerate() {
                let Some((to, from)) = files else { continue };
                let map = |file, lines| Shared::map(file, lines, true).map(|shared| Arc::new(Lines::Shared(shared)));
                let (to, from) = (map(to, self.ring_lines(me, other))?, map(from, self.ring_lines(other, me))?);
                let others = self.own(other);
                for (here, ends) in ends.iter_mut().enumerate() {
                    for (there, worker) in others.clone().enumerate() {
                        let at = |writer: usize, reader: usize, readers: usize| {
                            (writer * readers + reader) * ring_lines(self.room)
                        };
                        ends[worker] = Some(Far {
                            to: Ring::new(to.clone(), at(here, there, others.len()), self.room),
                            from: Ring::new(from.clone(), at(there, here, own.len()), self.room),
                            lost: false,
                        });
                    }
                }
            }
            Ok(ends)
        }
    }
}

/// Runs a scenario in several processes: here they need Linux.
#[cfg(not(target_os = "linux"))]
pub fn run_processes(
    _: &scenario::Scenario,
    _: usize,
    _: impl FnMut() -> std::process::Command,
    _: impl FnMut(run::Progress) -> bool,
) -> Result<crate::RunResult, units::Problem> {
    Err(units::Problem::new("live.processes", "several processes need Linux, whose memory they share"))
}

/// The same where programs send messages.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run_open(
    scenario: &scenario::Scenario,
    processes: usize,
    command: impl FnMut() -> std::process::Command,
    _: impl FnOnce(&std::sync::Arc<crate::maze::Exchange>) -> Result<(), units::Problem>,
    watch: impl FnMut(run::Progress) -> bool,
) -> Result<crate::RunResult, units::Problem> {
    run_processes(scenario, processes, command, watch)
}

/// Takes part in a run of several processes: here they need Linux.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn take_part(_: std::os::fd::OwnedFd) -> Result<(), units::Problem> {
    Err(units::Problem::new("live.processes", "several processes need Linux, whose memory they share"))
}
