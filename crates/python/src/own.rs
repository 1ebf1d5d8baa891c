//! Python classes as congestion controls.
//!
//! A flow has an object of the class, made with the arguments of the user's object. Python's lock is taken for each
//! call, unless the run has it already (`run.rs`). An object's answers are fields of its native part (`Answer`), so
//! that reading them takes no time. The argument of a call is an object that belongs to the flow and is overwritten for
//! each call. Methods that a class does not override are not called.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use transports::tcp::control::{Congestion, Start};
use transports::tcp::custom::Settings;
use transports::tcp::custom::contract::{
    Acks, Host, Module, Program, Reason, Sent, Verdict, acks_numbers, congestion_numbers, sent_numbers, start_numbers,
};
use units::{Problem, Time};

/// Numbers that Rust writes and Python reads, or the other way round, a thread at a time. A class of these needs no
/// flag of who has borrowed it, and a run reads millions.
struct Numbers<const N: usize>([AtomicU64; N]);

impl<const N: usize> Numbers<N> {
    fn new(numbers: [u64; N]) -> Numbers<N> {
        Numbers(numbers.map(AtomicU64::new))
    }

    fn get(&self, place: usize) -> u64 {
        self.0[place].load(Ordering::Relaxed)
    }

    fn set(&self, place: usize, number: u64) {
        self.0[place].store(number, Ordering::Relaxed);
    }

    fn set_all(&self, numbers: [u64; N]) {
        (0..).zip(numbers).for_each(|(place, number)| self.set(place, number));
    }

    fn all(&self) -> [u64; N] {
        std::array::from_fn(|place| self.get(place))
    }
}

/// What `clearway.Control` is made of: the answer of a flow's control, and with what the object was made.
#[pyclass(frozen, subclass, module = "clearway._core", name = "Answer")]
pub(crate) struct Answer {
    numbers: Numbers<5>,
    arguments: Py<PyTuple>,
    named: Option<Py<PyDict>>,
}

// Where each stands in `Answer::numbers`.
const WINDOW: usize = 0;
const RATE: usize = 1;
const TIMER: usize = 2;
const QUIET_BYTES: usize = 3;
const QUIET_UNTIL: usize = 4;

/// A number of Python's as a whole one, cut as `int()` cuts it.
fn whole(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    if let Ok(value) = value.extract::<u64>() {
        return Ok(value);
    }
    match value.extract::<f64>() {
        // 2^64 as a float is beyond what fits.
        Ok(number) if (0.0..18_446_744_073_709_551_616.0).contains(&number) => Ok(number as u64),
        _ => Err(PyValueError::new_err(format!("{what} = {value}: must be a number from 0 to 2**64 - 1"))),
    }
}

#[pymethods]
impl Answer {
    #[new]
    #[pyo3(signature = (*arguments, **named))]
    fn new(arguments: Py<PyTuple>, named: Option<Py<PyDict>>) -> Answer {
        Answer { numbers: Numbers::new([0; 5]), arguments, named }
    }

    #[getter]
    fn _arguments(&self, py: Python<'_>) -> Py<PyTuple> {
        self.arguments.clone_ref(py)
    }

    #[getter]
    fn _named(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        self.named.as_ref().map(|named| named.clone_ref(py))
    }

    #[getter]
    fn window_bytes(&self) -> u64 {
        self.numbers.get(WINDOW)
    }

    #[setter]
    fn set_window_bytes(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.numbers.set(WINDOW, whole(value, "window_bytes")?);
        Ok(())
    }

    #[getter]
    fn rate_bps(&self) -> Option<u64> {
        Some(self.numbers.get(RATE)).filter(|&rate| rate > 0)
    }

    #[setter]
    fn set_rate_bps(&self, value: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let rate = value.map_or(Ok(0), |value| match whole(&value, "rate_bps") {
            Ok(0) => Err(PyValueError::new_err("rate_bps = 0: nothing would be sent; None is for no rate")),
            other => other,
        })?;
        self.numbers.set(RATE, rate);
        Ok(())
    }

    #[getter]
    fn quiet_bytes(&self) -> u64 {
        self.numbers.get(QUIET_BYTES)
    }

    #[setter]
    fn set_quiet_bytes(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.numbers.set(QUIET_BYTES, whole(value, "quiet_bytes")?);
        Ok(())
    }

    #[getter]
    fn quiet_until(&self) -> u64 {
        self.numbers.get(QUIET_UNTIL)
    }

    #[setter]
    fn set_quiet_until(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.numbers.set(QUIET_UNTIL, whole(value, "quiet_until")?);
        Ok(())
    }

    fn set_timer(&self, after_ps: &Bound<'_, PyAny>) -> PyResult<()> {
        match whole(after_ps, "after_ps")? {
            0 => Err(PyValueError::new_err("after_ps = 0: a timer needs at least 100,000 ps")),
            after => {
                self.numbers.set(TIMER, after);
                Ok(())
            }
        }
    }

    /// Answers as another object has, whose timer is then taken.
    fn _answer_as(&self, other: &Answer) {
        self.numbers.set_all(other.numbers.all());
        other.numbers.set(TIMER, 0);
    }

    fn cancel_timer(&self) {
        self.numbers.set(TIMER, u64::MAX);
    }
}

/// Makes a class of events: an attribute a number. `maybe` ones are None at 0, `is` ones are bool.
macro_rules! event {
    ($name:ident, $count:literal; $($at:literal $plain:ident,)* ; $($maybe_at:literal $maybe:ident,)* ;
     $($is_at:literal $is:ident,)*) => {
        #[pyclass(frozen, module = "clearway._core")]
        pub(crate) struct $name(Numbers<$count>);

        impl $name {
            fn new(numbers: [u64; $count]) -> $name {
                $name(Numbers::new(numbers))
            }
        }

        #[pymethods]
        impl $name {
            $(#[getter] fn $plain(&self) -> u64 { self.0.get($at) })*
            $(#[getter] fn $maybe(&self) -> Option<u64> { Some(self.0.get($maybe_at)).filter(|&value| value > 0) })*
            $(#[getter] fn $is(&self) -> bool { self.0.get($is_at) != 0 })*
        }
    };
}

event!(StartEvent, 10;
    0 mss_bytes, 1 window_bytes, 2 packet_bytes, 3 rtt_ps, 4 base_rtt_ps, 5 hop_rtt_ps, 7 seed, 8 now_ps, 9 flow,;
    6 virtual_serialisation_ps,;);
event!(AckEvent, 23;
    0 now_ps, 1 count, 2 acked_bytes, 3 marked_bytes, 4 growing_bytes, 5 delivered_bytes, 6 lost_bytes, 7 una, 8 next,
    9 in_flight_bytes, 10 in_flight_before_bytes, 14 srtt_ps, 18 hops, 21 phase,;
    11 rtt_ps, 12 rtt_min_ps, 13 delay_ps, 15 delivery_rate_bps, 17 virtual_delay_ps, 22 delivered_in_all_bytes,;
    16 rate_limited, 19 marked, 20 window_limited,);
event!(CongestionEvent, 5; 0 now_ps, 2 flight_bytes,;; 3 timeout, 4 again,);
event!(SentEvent, 5; 0 now_ps, 1 packet_bytes, 3 in_flight_bytes, 4 next,;; 2 again,);

impl CongestionEvent {
    fn of(congestion: &Congestion) -> CongestionEvent {
        let [now, signal, flight] = congestion_numbers(congestion);
        CongestionEvent::new([now, signal, flight, u64::from(signal >= 2), u64::from(signal == 3)])
    }
}

/// A class with the arguments of its objects.
pub(crate) struct Class {
    name: String,
    digest: String,
    settings: Settings,
    class: Py<PyType>,
    arguments: Py<PyTuple>,
    named: Option<Py<PyDict>>,
    /// Which of [`CALLS`] it has for itself.
    hears: [bool; CALLS.len()],
}

const CALLS: [&str; 5] = ["on_ack", "on_loss", "on_mark", "on_send", "on_timer"];
const ACK: usize = 0;
const LOSS: usize = 1;
const MARK: usize = 2;
const SEND: usize = 3;
const TIMED: usize = 4;

impl Class {
    /// The class of an object, with the object's arguments.
    pub(crate) fn of(object: &Bound<'_, Answer>, digest: String, settings: &str) -> PyResult<Class> {
        let (py, class) = (object.py(), object.get_type());
        let base = py.import("clearway.scenarios.control")?.getattr("Control")?;
        let mut hears = [false; CALLS.len()];
        for (hears, name) in hears.iter_mut().zip(CALLS) {
            *hears = !class.getattr(name)?.is(&base.getattr(name)?);
        }
        let settings = serde_json::from_str(settings).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let of = object.get();
        Ok(Class {
            name: class.name()?.to_string(),
            digest,
            settings,
            class: class.unbind(),
            arguments: of.arguments.clone_ref(py),
            named: of.named.as_ref().map(|named| named.clone_ref(py)),
            hears,
        })
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the class {} of digest {}", self.name, self.digest)
    }
}

impl Module for Class {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn check(&self, settings: &Settings) -> Result<(), Problem> {
        if *settings == self.settings {
            return Ok(());
        }
        let message = format!(
            "the arguments of a class in Python are its object's: give another by with_(transport={}(...))",
            self.name
        );
        Err(Problem::new("", message))
    }

    fn host(self: Arc<Self>, _: &Settings) -> Arc<dyn Host> {
        Arc::new(AtHost(self))
    }
}

struct AtHost(Arc<Class>);

impl Host for AtHost {
    fn start(&self, start: &Start) -> Result<(Box<dyn Program>, Verdict), Reason> {
        Python::attach(|py| {
            let begun = Flow::new(py, &self.0, start).map_err(|error| reason(py, "at its start", &error))?;
            let verdict = begun.answer("on_start")?;
            Ok((Box::new(begun) as Box<dyn Program>, verdict))
        })
    }
}

/// A flow's object.
struct Flow {
    class: Arc<Class>,
    control: Py<Answer>,
    /// Its methods, bound, where it has its own.
    methods: [Option<Py<PyAny>>; CALLS.len()],
    acks: Py<AckEvent>,
    /// The arguments of `on_ack`: that event.
    told: Py<PyTuple>,
}

impl Flow {
    fn new(py: Python<'_>, class: &Arc<Class>, start: &Start) -> PyResult<Flow> {
        let named = class.named.as_ref().map(|named| named.bind(py));
        let object = class.class.bind(py).call(class.arguments.bind(py), named)?;
        let control: Bound<'_, Answer> = object.cast_into().map_err(PyErr::from)?;
        control.get().numbers.set(WINDOW, start.window_bytes);
        control.call_method1("on_start", (StartEvent::new(start_numbers(start)),))?;
        let mut methods = [const { None }; CALLS.len()];
        for ((method, name), hears) in methods.iter_mut().zip(CALLS).zip(class.hears) {
            if hears {
                *method = Some(control.getattr(name)?.unbind());
            }
        }
        let acks = Py::new(py, AckEvent::new([0; 23]))?;
        let told = PyTuple::new(py, [acks.clone_ref(py)])?.unbind();
        Ok(Flow { class: class.clone(), control: control.unbind(), methods, acks, told })
    }

    /// What it has answered.
    fn answer(&self, call: &str) -> Result<Verdict, Reason> {
        let control = self.control.get();
        let numbers = control.numbers.all();
        // A timer is set once.
        control.numbers.set(TIMER, 0);
        Verdict::from_numbers(numbers)
            .map_err(|reason| Reason::new(format!("{} {} in {call}", self.class.name, reason.words())))
    }

    fn tell<'py, A>(&self, py: Python<'py>, call: usize, event: A) -> Result<Verdict, Reason>
    where
        A: pyo3::call::PyCallArgs<'py>,
    {
        if let Some(method) = &self.methods[call] {
            let answered = method.bind(py).call1(event);
            answered.map_err(|error| reason(py, &format!("in {}.{}", self.class.name, CALLS[call]), &error))?;
        }
        self.answer(CALLS[call])
    }
}

/// Why a flow has failed: the exception and where it came from.
fn reason(py: Python<'_>, place: &str, error: &PyErr) -> Reason {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // Ctrl-C came here: whoever runs this looks for it.
        let _ = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
        return Reason::new("the run was interrupted");
    }
    let way = error.traceback(py).and_then(|traceback| traceback.format().ok()).unwrap_or_default();
    Reason::new(format!("{error} {place}\n{}", way.trim_end()))
}

impl Program for Flow {
    fn wants_sends(&self) -> bool {
        self.methods[SEND].is_some()
    }

    fn on_send(&mut self, sent: &Sent) -> Result<Verdict, Reason> {
        Python::attach(|py| self.tell(py, SEND, (SentEvent::new(sent_numbers(sent)),)))
    }

    fn on_ack(&mut self, acks: &Acks) -> Result<Verdict, Reason> {
        Python::attach(|py| {
            self.acks.get().0.set_all(acks_numbers(acks));
            self.tell(py, ACK, self.told.bind(py).clone())
        })
    }

    fn on_loss(&mut self, loss: &Congestion) -> Result<Verdict, Reason> {
        Python::attach(|py| self.tell(py, LOSS, (CongestionEvent::of(loss),)))
    }

    fn on_mark(&mut self, mark: &Congestion) -> Result<Verdict, Reason> {
        Python::attach(|py| self.tell(py, MARK, (CongestionEvent::of(mark),)))
    }

    fn on_timer(&mut self, now: Time) -> Result<Verdict, Reason> {
        Python::attach(|py| self.tell(py, TIMED, (now.ps(),)))
    }
}
