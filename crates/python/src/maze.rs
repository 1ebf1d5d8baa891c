//! Programs that send messages over a live network.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use live::maze::{self, Address, MazeError};
use pyo3::exceptions::{PyMemoryError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use units::Time;

use crate::aside::watched;
use crate::run::{Run, give, starting};
use crate::{Scenario, planned, scenario_error};

/// How often whoever waits looks for a signal.
const LOOK: Duration = Duration::from_millis(100);

/// Flow, host and port of the sender, class, content, when it was delivered in ps.
type Received<'py> = (u32, String, u16, String, Bound<'py, PyBytes>, u64);

/// A scenario that lives until it is closed.
#[pyclass(frozen, module = "clearway._core")]
pub(crate) struct Maze {
    /// None once it is closed.
    maze: Mutex<Option<maze::Maze>>,
    hosts: Vec<String>,
    classes: Vec<(String, String)>,
}

/// A scenario that lives in another program.
#[pyclass(frozen, module = "clearway._core")]
pub(crate) struct JoinedMaze {
    maze: maze::Remote,
    hosts: Vec<String>,
    classes: Vec<(String, String)>,
}

/// A port of a host.
#[pyclass(frozen, module = "clearway._core")]
pub(crate) struct Socket {
    socket: maze::Socket,
    /// Names of hosts and classes.
    hosts: Vec<String>,
    classes: Vec<String>,
}

/// A completion queue.
#[pyclass(frozen, module = "clearway._core")]
pub(crate) struct Completions(maze::Completions);

/// A message that was sent.
#[pyclass(frozen, module = "clearway._core")]
pub(crate) struct Sent(maze::Sent);

#[pymethods]
impl Maze {
    #[new]
    fn new(scenario: &Bound<'_, Scenario>) -> PyResult<Maze> {
        let maze = planned(scenario, maze::Maze::start)?;
        let classes = owned(maze.classes());
        Ok(Maze { hosts: maze.hosts().map(str::to_owned).collect(), classes, maze: Mutex::new(Some(maze)) })
    }

    /// Names of all hosts.
    #[getter]
    fn hosts(&self) -> Vec<String> {
        self.hosts.clone()
    }

    /// Classes of messages, and the transport of each.
    #[getter]
    fn classes(&self) -> Vec<(String, String)> {
        self.classes.clone()
    }

    /// Why nothing can be sent any more, if that is so.
    #[getter]
    fn over(&self) -> Option<String> {
        match &*self.maze.lock().ok()? {
            Some(maze) => maze.over().map(|over| over.to_string()),
            None => Some("the Maze is closed".to_owned()),
        }
    }

    /// The network's time, in ps.
    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        let guard = self.maze.lock().map_err(|_| PyValueError::new_err("the Maze is broken; start another"))?;
        let maze = guard.as_ref().ok_or_else(|| raised(py, MazeError::Over("the Maze is closed".to_owned())))?;
        maze.now().map(Time::ps).map_err(|error| raised(py, error))
    }

    #[pyo3(signature = (host, port=None))]
    fn socket(&self, py: Python<'_>, host: &str, port: Option<u16>) -> PyResult<Socket> {
        let guard = self.maze.lock().map_err(|_| PyValueError::new_err("the Maze is broken; start another"))?;
        let maze = guard.as_ref().ok_or_else(|| raised(py, MazeError::Over("the Maze is closed".to_owned())))?;
        let socket = maze.socket(host, port).map_err(|error| raised(py, error))?;
        Ok(Socket::new(socket, &self.hosts, &self.classes))
    }

    fn completions(&self, py: Python<'_>) -> PyResult<Completions> {
        let guard = self.maze.lock().map_err(|_| PyValueError::new_err("the Maze is broken; start another"))?;
        let maze = guard.as_ref().ok_or_else(|| raised(py, MazeError::Over("the Maze is closed".to_owned())))?;
        Ok(Completions(maze.completions()))
    }

    /// Ends the run, after `seconds` at most in which messages may end; None if that has been done.
    fn close<'py>(&self, py: Python<'py>, scenario: &Scenario, seconds: f64) -> PyResult<Option<Run<'py>>> {
        let taken = self.maze.lock().ok().and_then(|mut maze| maze.take());
        let Some(maze) = taken else { return Ok(None) };
        let settled = patiently(py, Some(seconds), |limit| match maze.settle(limit.unwrap_or_default()) {
            0 => Ok(()),
            _ => Err(MazeError::Late(String::new())),
        });
        let settled =
            settled.or_else(|error| if error.is_instance_of::<PyTimeoutError>(py) { Ok(()) } else { Err(error) });
        // Whoever interrupts it gets no result, but it is closed.
        if let Err(error) = settled.and_then(|()| patiently(py, None, |limit| maze.finish(limit.unwrap_or_default()))) {
            py.detach(|| drop(maze));
            return Err(error);
        }
        let result = py.detach(|| maze.close(Duration::ZERO));
        let result = result.map_err(|problem| scenario_error(py, scenario.source.locate(problem)))?;
        give(py, &result.info, result.scenario_toml, result.tables).map(Some)
    }
}

#[pymethods]
impl JoinedMaze {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<JoinedMaze> {
        let joined = py.detach(|| maze::Remote::connect(&path)).map_err(|error| raised(py, error))?;
        let classes = owned(joined.classes());
        Ok(JoinedMaze { hosts: joined.hosts().map(str::to_owned).collect(), classes, maze: joined })
    }

    /// Names of all hosts.
    #[getter]
    fn hosts(&self) -> Vec<String> {
        self.hosts.clone()
    }

    /// Classes of messages, and the transport of each.
    #[getter]
    fn classes(&self) -> Vec<(String, String)> {
        self.classes.clone()
    }

    /// Why nothing can be sent any more, if that is so.
    #[getter]
    fn over(&self) -> Option<String> {
        self.maze.over().map(|over| over.to_string())
    }

    /// The network's time, in ps.
    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.maze.now()).map(Time::ps).map_err(|error| raised(py, error))
    }

    #[pyo3(signature = (host, port=None))]
    fn socket(&self, py: Python<'_>, host: &str, port: Option<u16>) -> PyResult<Socket> {
        let socket = py.detach(|| self.maze.socket(host, port)).map_err(|error| raised(py, error))?;
        Ok(Socket::new(socket, &self.hosts, &self.classes))
    }

    fn completions(&self) -> Completions {
        Completions(self.maze.completions())
    }

    /// Leaves the Maze, after `seconds` at most in which this program's messages may end.
    fn close(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let settled = patiently(py, Some(seconds), |limit| match self.maze.settle(limit.unwrap_or_default()) {
            0 => Ok(()),
            _ => Err(MazeError::Late(String::new())),
        });
        py.detach(|| self.maze.close());
        settled.or_else(|error| if error.is_instance_of::<PyTimeoutError>(py) { Ok(()) } else { Err(error) })
    }
}

impl Socket {
    fn new(socket: maze::Socket, hosts: &[String], classes: &[(String, String)]) -> Socket {
        let classes = classes.iter().map(|(name, _)| name.clone()).collect();
        Socket { socket, hosts: hosts.to_vec(), classes }
    }

    fn received<'py>(&self, py: Python<'py>, message: &maze::Message) -> Received<'py> {
        let (name, class) = (&self.hosts[message.from.host.index()], &self.classes[message.class]);
        let content = PyBytes::new(py, &message.content);
        (message.flow, name.clone(), message.from.port, class.clone(), content, message.delivered.ps())
    }
}

/// Runs a scenario by the machine's clock, in this many processes, over which programs send messages that connect to a
/// socket at `path`. `command` starts a process that calls `live_part`.
#[pyfunction]
#[pyo3(signature = (scenario, path, progress=None, processes=1, command=Vec::new()))]
pub(crate) fn live_sockets<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
    processes: usize,
    command: Vec<String>,
) -> PyResult<Run<'py>> {
    let result =
        watched(py, scenario.as_unbound(), progress, move |read, watch| match (processes, starting(&command)) {
            (2.., Some(start)) => maze::serve_processes(read, &path, processes, start, watch),
            _ => maze::serve(read, &path, watch),
        })?;
    give(py, &result.info, result.scenario_toml, result.tables)
}

#[pymethods]
impl Socket {
    /// Its host and port.
    #[getter]
    fn address(&self) -> (String, u16) {
        let Address { host, port } = self.socket.address();
        (self.hosts[host.index()].clone(), port)
    }

    #[pyo3(signature = (host, port, content, kind=None, queue=None))]
    fn send(
        &self,
        py: Python<'_>,
        host: &str,
        port: u16,
        content: &[u8],
        kind: Option<&str>,
        queue: Option<&Completions>,
    ) -> PyResult<Sent> {
        let to = self.socket.host(host).map_err(|error| raised(py, error))?;
        let queue = queue.map(|of| &of.0);
        let sent = py.detach(|| self.socket.submit(Address { host: to, port }, kind, content, queue));
        sent.map(Sent).map_err(|error| raised(py, error))
    }

    /// The next message; TimeoutError if it takes longer than `seconds`.
    #[pyo3(signature = (seconds=None))]
    fn receive<'py>(&self, py: Python<'py>, seconds: Option<f64>) -> PyResult<Received<'py>> {
        let message = patiently(py, seconds, |limit| self.socket.receive(limit))?;
        Ok(self.received(py, &message))
    }

    /// The next message that was delivered before `at` ps of the network; None if it has come to that and none is left.
    #[pyo3(signature = (at, seconds=None))]
    fn receive_until<'py>(&self, py: Python<'py>, at: u64, seconds: Option<f64>) -> PyResult<Option<Received<'py>>> {
        let message = patiently(py, seconds, |limit| self.socket.receive_until(Time::from_ps(at), limit))?;
        Ok(message.map(|message| self.received(py, &message)))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.socket.close());
    }
}

#[pymethods]
impl Completions {
    /// The flow of the next message that has ended; TimeoutError if it takes longer than `seconds`.
    #[pyo3(signature = (seconds=None))]
    fn next(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Sent> {
        patiently(py, seconds, |limit| self.0.next(limit)).map(Sent)
    }
}

#[pymethods]
impl Sent {
    /// The number of its flow.
    #[getter]
    fn flow(&self) -> u32 {
        self.0.flow()
    }

    /// When it started, was delivered, and was known to be, in ps of the network.
    #[pyo3(signature = (seconds=None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<(u64, u64, Option<u64>)> {
        let times = patiently(py, seconds, |limit| self.0.wait(limit))?;
        Ok((times.started.ps(), times.delivered.ps(), times.completed.map(|at| at.ps())))
    }
}

fn owned<'a>(classes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    classes.map(|(name, transport)| (name.to_owned(), transport.to_owned())).collect()
}

fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// Waits as long as the caller does, and looks for signals in between.
#[expect(clippy::disallowed_methods, reason = "the real clock, for whoever waits")]
fn patiently<R: Send>(
    py: Python<'_>,
    seconds: Option<f64>,
    wait: impl Fn(Option<Duration>) -> Result<R, MazeError> + Sync,
) -> PyResult<R> {
    let (began, whole) = (Instant::now(), seconds.map(span));
    loop {
        let left = whole.map(|whole| whole.saturating_sub(began.elapsed()));
        let found = py.detach(|| wait(Some(left.map_or(LOOK, |left| left.min(LOOK)))));
        match found {
            Err(MazeError::Late(_)) if left.is_none_or(|left| left > LOOK) => py.check_signals()?,
            found => return found.map_err(|error| raised(py, error)),
        }
    }
}

fn raised(py: Python<'_>, error: MazeError) -> PyErr {
    let class = match error {
        MazeError::Wrong(message) => return PyValueError::new_err(message),
        MazeError::Full(message) => return PyMemoryError::new_err(message),
        MazeError::Late(message) => return PyTimeoutError::new_err(message),
        MazeError::Undelivered(_) => "Undelivered",
        MazeError::Rejected(_) => "Rejected",
        MazeError::Over(_) => "MazeOver",
    };
    let made = py
        .import("clearway.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((error.to_string(),)));
    made.map_or_else(|error| error, PyErr::from_value)
}
