//! Modules and their instances.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transports::tcp::control::{Congestion, Start};
use transports::tcp::custom::contract::{
    Acks, Host, Module, Program, Reason, Sent, Verdict, acks_numbers, congestion_numbers, sent_numbers, start_numbers,
};
use transports::tcp::custom::{Setting, Settings};
use units::{Problem, Time};
use wasmtime::{Config, Engine, Instance, Memory, ResourceLimiter, Store, Trap, TypedFunc, WasmParams, WasmResults};

use crate::{ABI, FUEL, MEMORY_BYTES_MAX, STATE_BYTES_MAX};

mod bounds;

/// Functions that a module may export to learn of events; it must export those before `CALLS_NEEDED`.
const CALLS: [&str; 6] = [
    "clearway_on_start",
    "clearway_on_ack",
    "clearway_on_loss",
    "clearway_on_mark",
    "clearway_on_send",
    "clearway_on_timer",
];
const CALLS_NEEDED: usize = 4;

/// Numbers of an event, at most, and of a verdict.
const EVENT_NUMBERS: usize = 24;
const VERDICT_NUMBERS: usize = 5;
/// Where the timer is in a verdict.
const TIMER: usize = 2;

/// Most bytes of the text that names a module's settings.
const NAMES_BYTES_MAX: usize = 4_096;

/// A module that was compiled and has been tried.
pub struct Compiled {
    module: wasmtime::Module,
    digest: String,
    /// Its settings and their defaults.
    names: Vec<(String, f64)>,
}

/// Where the calls stand in [`CALLS`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Start,
    Ack,
    Loss,
    Mark,
    Send,
    Timer,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a module of digest {}", self.digest)
    }
}

impl Compiled {
    /// Compiles a module and tries an instance of it.
    pub fn new(bytes: &[u8]) -> Result<Compiled, String> {
        let engine = engine().map_err(|error| format!("can't be run on this machine: {error}"))?;
        bounds::check(bytes)?;
        let module = wasmtime::Module::new(&engine, bytes)
            .map_err(|error| format!("is not a module that can be run: {}", brief(&error)))?;
        if let Some(import) = module.imports().next() {
            return Err(format!(
                "imports \"{}.{}\", and a module gets nothing from outside; compile it without a standard library, as \
                 docs/own-protocol.md shows",
                import.module(),
                import.name()
            ));
        }
        let mut compiled =
            Compiled { module, digest: blake3::hash(bytes).to_hex().as_str()[..32].to_owned(), names: Vec::new() };
        compiled.names = Running::new(&compiled.module)?.names()?;
        Ok(compiled)
    }
}

/// Settings that make instances deterministic and small. Accesses to memory are checked by instructions and not by
/// signals, which belong to the process that this is in.
fn engine() -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_simd(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .signals_based_traps(false)
        .memory_reservation(0)
        .memory_guard_size(0)
        .memory_reservation_for_growth(0)
        .memory_init_cow(false);
    Engine::new(&config)
}

/// An error of the library, without the way by which it came.
fn brief(error: &wasmtime::Error) -> String {
    error.root_cause().to_string().lines().next().unwrap_or("").to_owned()
}

impl Module for Compiled {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn check(&self, settings: &Settings) -> Result<(), Problem> {
        for (name, value) in settings {
            if self.names.iter().all(|(known, _)| known != name) {
                let known: Vec<&str> = self.names.iter().map(|(name, _)| name.as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Problem::new(name, format!("is not a setting of the module; it has {known}")));
            }
            if !matches!(value, Setting::Number(_)) {
                return Err(Problem::new(name, "is not a number; a module's settings are numbers"));
            }
        }
        Ok(())
    }

    fn host(self: Arc<Self>, settings: &Settings) -> Arc<dyn Host> {
        let value = |(name, default): &(String, f64)| match settings.get(name) {
            Some(Setting::Number(value)) => *value,
            _ => *default,
        };
        let settings = self.names.iter().map(value).collect();
        Arc::new(AtHost(Arc::new(HostModule { compiled: self, settings, running: Mutex::new(None) })))
    }
}

/// A module in a host.
struct HostModule {
    compiled: Arc<Compiled>,
    settings: Vec<f64>,
    /// `None` before the first flow, and after a call that went wrong.
    running: Mutex<Option<Running>>,
}

struct AtHost(Arc<HostModule>);

impl Host for AtHost {
    fn start(&self, start: &Start) -> Result<(Box<dyn Program>, Verdict), Reason> {
        let answer = [start.window_bytes, 0, 0, 0, 0];
        let mut flow = Flow { place: self.0.clone(), state: Box::default(), answer, hears_of_sends: false };
        let verdict = flow.call(Call::Start, &start_numbers(start))?;
        Ok((Box::new(flow), verdict))
    }
}

/// A flow's state between calls, and what it has answered last.
struct Flow {
    place: Arc<HostModule>,
    state: Box<[u8]>,
    answer: [u64; VERDICT_NUMBERS],
    hears_of_sends: bool,
}

impl Flow {
    fn call(&mut self, call: Call, event: &[u64]) -> Result<Verdict, Reason> {
        let mut running: MutexGuard<'_, Option<Running>> =
            self.place.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            let mut fresh = Running::new(&self.place.compiled.module).map_err(Reason::new)?;
            fresh.set(&self.place.settings).map_err(Reason::new)?;
            *running = Some(fresh);
        }
        let now = running.as_mut().expect("just made");
        if call == Call::Start {
            self.state = now.first_state.clone();
            self.hears_of_sends = now.calls[Call::Send as usize].is_some();
        }
        if let Err(trouble) = now.call(call, event, &mut self.state, &mut self.answer) {
            *running = None;
            return Err(Reason::new(trouble));
        }
        let answer = self.answer;
        // A timer is set once.
        self.answer[TIMER] = 0;
        Verdict::from_numbers(answer)
            .map_err(|reason| Reason::new(format!("the module {} in {}", reason.words(), CALLS[call as usize])))
    }
}

impl Program for Flow {
    fn wants_sends(&self) -> bool {
        self.hears_of_sends
    }

    fn on_send(&mut self, sent: &Sent) -> Result<Verdict, Reason> {
        self.call(Call::Send, &sent_numbers(sent))
    }

    fn on_ack(&mut self, acks: &Acks) -> Result<Verdict, Reason> {
        self.call(Call::Ack, &acks_numbers(acks))
    }

    fn on_loss(&mut self, loss: &Congestion) -> Result<Verdict, Reason> {
        self.call(Call::Loss, &congestion_numbers(loss))
    }

    fn on_mark(&mut self, mark: &Congestion) -> Result<Verdict, Reason> {
        self.call(Call::Mark, &congestion_numbers(mark))
    }

    fn on_timer(&mut self, now: Time) -> Result<Verdict, Reason> {
        self.call(Call::Timer, &[now.ps()])
    }
}

/// Refuses memory beyond the limit with an error, so that the module stops. If it only learned that there is no more
/// memory, it would continue with wrong results.
struct Limits;

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > MEMORY_BYTES_MAX {
            return Err(wasmtime::Error::msg(format!(
                "asks for {desired} bytes of memory, and has at most {MEMORY_BYTES_MAX}"
            )));
        }
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > 10_000 {
            return Err(wasmtime::Error::msg(format!("asks for a table of {desired} entries, and has at most 10000")));
        }
        Ok(true)
    }
}

/// An instance.
struct Running {
    store: Store<Limits>,
    instance: Instance,
    memory: Memory,
    calls: [Option<TypedFunc<(), ()>>; CALLS.len()],
    /// Where things are in its memory.
    event: usize,
    verdict: usize,
    state: usize,
    /// The state of a new flow.
    first_state: Box<[u8]>,
}

impl Running {
    fn new(module: &wasmtime::Module) -> Result<Running, String> {
        let mut store = Store::new(module.engine(), Limits);
        store.limiter(|limits| limits);
        store.set_fuel(FUEL).expect("fuel is on");
        let instance = Instance::new(&mut store, module, &[]).map_err(|error| trouble("at its start", &error))?;
        let Some(memory) = instance.get_memory(&mut store, "memory") else {
            return Err("exports no memory named \"memory\"".to_owned());
        };
        let version: TypedFunc<(), i32> = function(&mut store, &instance, "clearway_abi")?;
        let version = version.call(&mut store, ()).map_err(|error| trouble("in clearway_abi", &error))?;
        if version != ABI {
            return Err(format!(
                "is written for version {version} of the interface, and this build has version {ABI}: compile it anew \
                 by the template of this version"
            ));
        }
        let mut calls = [const { None }; CALLS.len()];
        for (place, (call, name)) in calls.iter_mut().zip(CALLS).enumerate() {
            if place < CALLS_NEEDED || instance.get_export(&mut store, name).is_some() {
                *call = Some(function::<(), ()>(&mut store, &instance, name)?);
            }
        }
        let mut number = |name: &str| {
            let of: TypedFunc<(), i32> = function(&mut store, &instance, name)?;
            let value = of.call(&mut store, ()).map_err(|error| trouble(&format!("in {name}"), &error))?;
            Ok::<usize, String>(value as u32 as usize)
        };
        let (event, verdict) = (number("clearway_event")?, number("clearway_verdict")?);
        let (state, state_bytes) = (number("clearway_state")?, number("clearway_state_bytes")?);
        if state_bytes > STATE_BYTES_MAX {
            return Err(format!("has {state_bytes} bytes of state a flow, and may have {STATE_BYTES_MAX} at most"));
        }
        let data = memory.data(&store);
        let places = [
            ("clearway_event", event, EVENT_NUMBERS * 8),
            ("clearway_verdict", verdict, VERDICT_NUMBERS * 8),
            ("clearway_state", state, state_bytes),
        ];
        for (name, from, bytes) in places {
            if from.checked_add(bytes).is_none_or(|end| end > data.len()) {
                return Err(format!("says by {name} that {bytes} bytes are at {from}, which is outside its memory"));
            }
        }
        let first_state = data[state..state + state_bytes].into();
        Ok(Running { store, instance, memory, calls, event, verdict, state, first_state })
    }

    /// Its settings, by a text in its memory that ends with a zero: a line each, `gain=0.0625`.
    fn names(&mut self) -> Result<Vec<(String, f64)>, String> {
        const NAME: &str = "clearway_settings";
        if self.instance.get_export(&mut self.store, NAME).is_none() {
            return Ok(Vec::new());
        }
        let at: TypedFunc<(), i32> = function(&mut self.store, &self.instance, NAME)?;
        function::<(i32, f64), ()>(&mut self.store, &self.instance, "clearway_set")?;
        let at = at.call(&mut self.store, ()).map_err(|error| trouble(&format!("in {NAME}"), &error))? as u32 as usize;
        let text = self.memory.data(&self.store).get(at..).unwrap_or_default();
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        let wrong = || format!("says by {NAME} what is not a text of lines like \"gain=0.0625\", ended by a zero");
        if text.len() > NAMES_BYTES_MAX {
            return Err(wrong());
        }
        let line = |line: &str| {
            let (name, default) = line.split_once('=')?;
            let default: f64 = default.trim().parse().ok()?;
            (!name.trim().is_empty() && default.is_finite()).then(|| (name.trim().to_owned(), default))
        };
        let text = std::str::from_utf8(text).map_err(|_| wrong())?;
        text.lines().filter(|of| !of.trim().is_empty()).map(|of| line(of).ok_or_else(wrong)).collect()
    }

    fn set(&mut self, settings: &[f64]) -> Result<(), String> {
        if settings.is_empty() {
            return Ok(());
        }
        let set: TypedFunc<(i32, f64), ()> = function(&mut self.store, &self.instance, "clearway_set")?;
        for (place, &value) in settings.iter().enumerate() {
            set.call(&mut self.store, (place as i32, value)).map_err(|error| trouble("in clearway_set", &error))?;
        }
        Ok(())
    }

    /// Calls a function with the flow's state and last answer in the module's memory. The answer stays valid unless the
    /// module writes another one. Nothing of any other flow is left in this memory.
    fn call(
        &mut self,
        call: Call,
        event: &[u64],
        state: &mut [u8],
        answer: &mut [u64; VERDICT_NUMBERS],
    ) -> Result<(), String> {
        let name = CALLS[call as usize];
        let data = self.memory.data_mut(&mut self.store);
        let numbers = event.iter().chain(std::iter::repeat(&0));
        for (to, number) in data[self.event..][..EVENT_NUMBERS * 8].chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        for (to, number) in data[self.verdict..].chunks_exact_mut(8).zip(&*answer) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        data[self.state..self.state + state.len()].copy_from_slice(state);
        self.store.set_fuel(FUEL).expect("fuel is on");
        let Some(function) = &self.calls[call as usize] else {
            return Err(format!("the module has set a timer, and exports no {name}"));
        };
        function
            .call(&mut self.store, ())
            .map_err(|error| format!("the module {}", trouble(&format!("in {name}"), &error)))?;
        let data = self.memory.data(&self.store);
        state.copy_from_slice(&data[self.state..self.state + state.len()]);
        for (number, from) in answer.iter_mut().zip(data[self.verdict..].chunks_exact(8)) {
            *number = u64::from_le_bytes(from.try_into().expect("eight bytes"));
        }
        Ok(())
    }
}

/// The text of an error of a call, for people.
fn trouble(place: &str, error: &wasmtime::Error) -> String {
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => format!("ran for too long {place}: more than {FUEL} units of fuel"),
        // The library's own words begin with "wasm trap: ".
        Some(trap) => format!("trapped {place}: {}", trap.to_string().trim_start_matches("wasm trap: ")),
        None => format!("{} {place}", brief(error)),
    }
}

/// A function that a module has to export, with this type.
fn function<P: WasmParams, R: WasmResults>(
    store: &mut Store<Limits>,
    instance: &Instance,
    name: &str,
) -> Result<TypedFunc<P, R>, String> {
    let Some(found) = instance.get_func(&mut *store, name) else {
        return Err(format!(
            "exports no function {name}, which a module has to; the templates in examples/wasm have it"
        ));
    };
    found.typed(&*store).map_err(|error| format!("exports {name} with another type: {}", brief(&error)))
}

#[cfg(test)]
mod tests;
