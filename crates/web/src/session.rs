use run::{Column, Data, Estimate, Plan, Progress, Table};
use scenario::{PacketsSpec, Scenario};
use serde_json::{Value, json};
use sim::{RunResult, Steps};

use crate::{Wrong, source};

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Every packet.
    Packet,
    /// Flows that share links.
    Flow,
}

/// A scenario under way.
pub struct Session {
    doing: Doing,
    /// How its errors find their lines.
    text: String,
}

enum Doing {
    Packets(Box<Steps>),
    /// Not begun: flow level goes through in one step.
    Flows(Box<Scenario>),
    Estimated(Results),
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    Going,
    /// The run is over.
    Over,
}

/// What a run gives.
pub struct Results {
    /// Its summary, as JSON.
    pub info: String,
    /// The scenario with every default filled in.
    pub scenario_toml: String,
    /// The tables.
    pub tables: Vec<Table>,
}

impl Session {
    /// Reads a scenario and works it out. A run that will hardly fit `memory_bytes_max` is refused. So many packets are
    /// recorded one by one, the first ones, unless the scenario says which; it moves none of them.
    pub fn new(text: &str, level: Level, memory_bytes_max: u64, packets_max: u64) -> Result<Session, Wrong> {
        let source = source(text);
        let mut read = source.read()?;
        if level == Level::Packet && packets_max > 0 && read.measure.packets.is_none() {
            read.measure.packets = Some(PacketsSpec { rows_max: packets_max, ..PacketsSpec::default() });
        }
        let located = |problem| Wrong::from(source.locate(problem));
        let doing = match level {
            Level::Flow => Doing::Flows(Box::new(read)),
            Level::Packet => {
                let plan = Plan::new(&read).map_err(located)?;
                Estimate::of(&plan).check_memory(&plan, memory_bytes_max).map_err(located)?;
                Doing::Packets(Box::new(Steps::new(plan)))
            }
        };
        Ok(Session { doing, text: text.to_owned() })
    }

    /// Goes on until `watch` returns true. At flow level that ends the run.
    pub fn advance(&mut self, mut watch: impl FnMut(Progress) -> bool) -> Result<Step, Wrong> {
        match &mut self.doing {
            Doing::Packets(steps) => Ok(if steps.advance(&mut watch) { Step::Over } else { Step::Going }),
            Doing::Flows(read) => {
                let estimate = fluid::estimate(read, watch);
                let estimate = estimate.map_err(|problem| Wrong::from(source(&self.text).locate(problem)))?;
                let info = serde_json::to_string(&estimate.info).expect("a summary is JSON");
                let (scenario_toml, tables) = (estimate.scenario_toml, estimate.tables);
                self.doing = Doing::Estimated(Results { info, scenario_toml, tables });
                Ok(Step::Over)
            }
            Doing::Estimated(_) => Ok(Step::Over),
        }
    }

    /// What a run of packets that goes on has given until now; none of any other.
    pub fn so_far(&self) -> Option<Results> {
        match &self.doing {
            Doing::Packets(steps) => Some(Results::of(steps.so_far())),
            Doing::Flows(_) | Doing::Estimated(_) => None,
        }
    }

    /// What it has given so far. None of a run at flow level that has not begun.
    pub fn conclude(self) -> Option<Results> {
        match self.doing {
            Doing::Packets(steps) => Some(Results::of(steps.conclude())),
            Doing::Flows(_) => None,
            Doing::Estimated(results) => Some(results),
        }
    }
}

impl Results {
    fn of(result: RunResult) -> Results {
        let info = serde_json::to_string(&result.info).expect("a summary is JSON");
        Results { info, scenario_toml: result.scenario_toml, tables: result.tables }
    }

    /// Names, units, descriptions and kinds of all columns, as JSON: `numbers` are floats with NaN for "none", `whole`
    /// are 32 bits, `flags` are 0 or 1, `names` index a list of names.
    pub fn described(&self) -> String {
        let column = |column: &Column| {
            let (kind, names): (_, &[String]) = match &column.data {
                Data::U64(_) | Data::OptU64(_) | Data::F64(_) => ("numbers", &[]),
                Data::U32(_) => ("whole", &[]),
                Data::Bool(_) => ("flags", &[]),
                Data::Names { names, .. } => ("names", names),
            };
            json!({ "name": column.name, "unit": column.unit, "doc": column.doc, "kind": kind, "names": names })
        };
        let table = |table: &Table| {
            let columns: Vec<Value> = table.columns.iter().map(column).collect();
            json!({ "name": table.name, "rows": table.len(), "columns": columns })
        };
        Value::from_iter(self.tables.iter().map(table)).to_string()
    }

    /// The values of a column of `numbers`; others have none. Times are exact up to 2^53 ps, two and a half hours.
    pub fn numbers(&self, table: usize, column: usize) -> Vec<f64> {
        let of = |value: &u64| *value as f64;
        match self.data(table, column) {
            Some(Data::U64(values)) => values.iter().map(of).collect(),
            Some(Data::OptU64(values)) => {
                values.iter().map(|value| if *value == u64::MAX { f64::NAN } else { of(value) }).collect()
            }
            Some(Data::F64(values)) => values.clone(),
            _ => Vec::new(),
        }
    }

    /// The values of a column of any other kind; columns of numbers have none.
    pub fn whole(&self, table: usize, column: usize) -> Vec<u32> {
        match self.data(table, column) {
            Some(Data::U32(values)) => values.clone(),
            Some(Data::Names { index, .. }) => index.clone(),
            Some(Data::Bool(values)) => values.iter().map(|&value| value.into()).collect(),
            _ => Vec::new(),
        }
    }

    fn data(&self, table: usize, column: usize) -> Option<&Data> {
        Some(&self.tables.get(table)?.columns.get(column)?.data)
    }
}
