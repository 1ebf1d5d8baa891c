//! The functions that JavaScript calls. Errors are JSON: line, key and message.

use wasm_bindgen::prelude::*;

use crate::{Level, Results, Session, Step};

/// Of 64 KiB.
const PAGE_BYTES: u64 = 1 << 16;
/// What is shown of a run that goes on may take as much memory as the run: no more than this part may be taken.
const ROOM_TO_SHOW: u64 = 3;
/// Number of windows between two looks at the clock.
const WINDOWS_A_LOOK: u32 = 16;

#[wasm_bindgen]
extern "C" {
    /// The page's clock, in milliseconds.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn now_ms() -> f64;

    /// The listener that learns the progress of a run at flow level, which is a single step.
    pub type Listener;

    #[wasm_bindgen(method)]
    fn tell(this: &Listener, at: Vec<f64>);
}

/// A panic reaches JavaScript as an error that says where it was.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&panic.to_string())));
}

/// Hands a file over, by the path that scenarios name it by.
#[wasm_bindgen]
pub fn file(path: &str, content: Vec<u8>) {
    fabric::hand_over(path.into(), content);
}

/// The JSON Schema of a scenario.
#[wasm_bindgen]
pub fn schema() -> String {
    crate::schema()
}

/// What is wrong with a scenario, or its name and defaults: JSON.
#[wasm_bindgen]
pub fn check(text: &str) -> String {
    json(&crate::check(text))
}

/// Clearway's version.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("it is JSON")
}

/// A run.
#[wasm_bindgen]
pub struct Run {
    /// None at its end.
    session: Option<Session>,
    level: Level,
    memory_bytes_max: u64,
    /// Status (0 going, 1 over, 2 out of memory), time and horizon in ps, flows ended, flows, share of the work done.
    at: [f64; 6],
}

/// Its results.
#[wasm_bindgen]
pub struct Tables(Results);

#[wasm_bindgen]
impl Run {
    /// Reads a scenario and works it out; `level` is "packet" or "flow". `packets_max` are recorded one by one.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, level: &str, memory_bytes_max: f64, packets_max: f64) -> Result<Run, String> {
        let memory_bytes_max = memory_bytes_max as u64;
        let level = if level == "flow" { Level::Flow } else { Level::Packet };
        let session = Session::new(text, level, memory_bytes_max, packets_max as u64).map_err(|wrong| json(&wrong))?;
        Ok(Run { session: Some(session), level, memory_bytes_max, at: [0.0; 6] })
    }

    /// Goes on for so long, and says how far it is: see `at`. A run at flow level goes on to its end, and tells
    /// `listener` as often.
    pub fn step(&mut self, budget_ms: f64, listener: &Listener) -> Result<Vec<f64>, String> {
        let Some(session) = &mut self.session else { return Ok(self.at.to_vec()) };
        let (mut until, most, at) = (now_ms() + budget_ms, self.memory_bytes_max, &mut self.at);
        let mut windows = 0;
        let step = session.advance(|progress| {
            windows += 1;
            if self.level == Level::Packet && windows % WINDOWS_A_LOOK != 0 {
                return false;
            }
            let counts = [progress.flows_done as f64, progress.flows as f64, progress.fraction()];
            *at = [0.0, progress.now.ps() as f64, progress.horizon.ps() as f64, counts[0], counts[1], counts[2]];
            let is_time = now_ms() >= until;
            if is_time && self.level == Level::Flow {
                listener.tell(at.to_vec());
                until = now_ms() + budget_ms;
                return taken_bytes() > most;
            }
            is_time || taken_bytes() > most
        });
        self.at[0] = match step.map_err(|wrong| json(&wrong))? {
            _ if taken_bytes() > most => 2.0,
            Step::Over => 1.0,
            Step::Going => 0.0,
        };
        Ok(self.at.to_vec())
    }

    /// What it has given until now, while it goes on. None where there is no room for that beside the run.
    pub fn so_far(&self) -> Option<Tables> {
        let has_room = taken_bytes() <= self.memory_bytes_max / ROOM_TO_SHOW;
        self.session.as_ref().filter(|_| has_room)?.so_far().map(Tables)
    }

    /// What it has given so far; once.
    pub fn conclude(&mut self) -> Option<Tables> {
        self.session.take()?.conclude().map(Tables)
    }
}

fn taken_bytes() -> u64 {
    core::arch::wasm32::memory_size(0) as u64 * PAGE_BYTES
}

#[wasm_bindgen]
impl Tables {
    /// The summary, as JSON.
    pub fn info(&self) -> String {
        self.0.info.clone()
    }

    /// The scenario with every default filled in.
    pub fn scenario(&self) -> String {
        self.0.scenario_toml.clone()
    }

    /// What there is: see [`Results::described`].
    pub fn described(&self) -> String {
        self.0.described()
    }

    /// A column of numbers.
    pub fn numbers(&self, table: usize, column: usize) -> Vec<f64> {
        self.0.numbers(table, column)
    }

    /// A column of anything else.
    pub fn whole(&self, table: usize, column: usize) -> Vec<u32> {
        self.0.whole(table, column)
    }
}
