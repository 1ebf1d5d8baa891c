//! The cost of a plan, before anything of it is made: a plan that can't fit is refused at once, with a setting that
//! would fit.

use fabric::{Fabric, Size};
use scenario::Scenario;
use units::Problem;
use workload::{Room, in_words};

use crate::estimate::{FLOW_BYTES, KEPT_BYTES, LINK_BYTES, PROGRAM_BYTES, ROUTE_BYTES, STEP_BYTES, UNLISTED_BYTES};
use crate::workload_plan::{STEPS_A_ROW, rows_of_jobs};

/// How much memory a plan and its run may take, by what they make of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    bytes: Option<u64>,
    link_bytes: u64,
    route_bytes: u64,
    flow_bytes: u64,
    unlisted_bytes: u64,
}

impl MemoryLimit {
    /// No limit.
    pub const NONE: MemoryLimit = MemoryLimit::packets(None);

    /// Of a simulation of packets: this many bytes, if there is a limit.
    pub const fn packets(bytes: Option<u64>) -> MemoryLimit {
        MemoryLimit {
            bytes,
            link_bytes: LINK_BYTES,
            route_bytes: ROUTE_BYTES,
            flow_bytes: FLOW_BYTES,
            unlisted_bytes: UNLISTED_BYTES,
        }
    }

    /// Of an estimate without packets, which has no nodes and no tables of routes.
    pub const fn flows(bytes: Option<u64>) -> MemoryLimit {
        MemoryLimit {
            bytes,
            link_bytes: FLUID_LINK_BYTES,
            route_bytes: 0,
            flow_bytes: FLUID_FLOW_BYTES,
            unlisted_bytes: FLUID_UNLISTED_BYTES,
        }
    }

    /// A scenario's fabric, unless it can't fit.
    pub fn fabric(&self, scenario: &Scenario) -> Result<Fabric, Problem> {
        self.check_fabric(scenario)?;
        let fabric = scenario.fabric.build().map_err(|problem| problem.under("fabric"))?;
        self.check_built(scenario, &fabric)?;
        Ok(fabric)
    }

    /// Refuses a fabric that can't fit, and says how much room it leaves.
    pub(crate) fn check_fabric(&self, scenario: &Scenario) -> Result<Room, Problem> {
        match scenario.fabric.size() {
            Some(size) => self.check(scenario, &size),
            // A file's is no larger than the file, and is looked at once it is built.
            None => Ok(Room::ANY),
        }
    }

    /// The same for a fabric from a file.
    pub(crate) fn check_built(&self, scenario: &Scenario, fabric: &Fabric) -> Result<Room, Problem> {
        let switches = u64::from(fabric.switches);
        let cables = fabric.links.len() as u64 / 2;
        self.check(
            scenario,
            &Size { hosts: fabric.hosts.into(), switches, racks: switches.min(fabric.hosts.into()), cables },
        )
    }

    fn check(&self, scenario: &Scenario, size: &Size) -> Result<Room, Problem> {
        let Some(most) = self.bytes else { return Ok(Room::ANY) };
        let needs = self.of(size);
        if let Some(bytes) = most.checked_sub(needs) {
            return Ok(Room {
                bytes,
                flow_bytes: self.flow_bytes,
                rows: rows_of_jobs(scenario),
                unlisted_bytes: self.unlisted_bytes,
                steps: rows_of_jobs(scenario).saturating_mul(STEPS_A_ROW),
                step_bytes: STEP_BYTES,
                kept_bytes: KEPT_BYTES,
            });
        }
        let (key, advice) = match scenario.fabric.smaller(|size| self.of(size) <= most) {
            Some((key, value)) => {
                let name = key.rsplit('.').next().unwrap_or(key);
                (format!("fabric.{key}"), format!("{name} = {value} would fit"))
            }
            None => ("fabric".to_owned(), "A smaller fabric would fit".to_owned()),
        };
        let Size { hosts, switches, cables, .. } = size;
        let message = format!(
            "{hosts} hosts, {switches} switches and {cables} cables will need about {} of memory, and there are {}. \
             {advice}",
            in_words(needs),
            in_words(most)
        );
        Err(Problem::new(key, message))
    }

    /// Bytes that a fabric takes.
    fn of(&self, size: &Size) -> u64 {
        let links = size.cables.saturating_mul(2).saturating_mul(self.link_bytes);
        let routes = size.switches.saturating_mul(size.racks).saturating_mul(self.route_bytes);
        PROGRAM_BYTES.saturating_add(links).saturating_add(routes)
    }
}

/// A direction of a link where there are no packets, with its half of a host. Measured as the peak of `clearway run
/// --level flow` with `fabric.star.hosts = 60000` and ten flows, less that of 20000: 1,001 bytes a host.
const FLUID_LINK_BYTES: u64 = 500;
/// A flow there, from the traffic to its row of the results. Measured likewise with 400,000 flows of 1 KB at a load of
/// 0.01 among 64 hosts of a star, less those of 100,000: 230 bytes.
const FLUID_FLOW_BYTES: u64 = 230;
/// A message of a job that has no row there: a bit, whether it was delivered.
const FLUID_UNLISTED_BYTES: u64 = 1;

#[cfg(test)]
mod tests;
