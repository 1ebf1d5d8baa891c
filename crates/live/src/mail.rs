//! The threads that carry what processes, or machines, say to each other of programs' messages: for each connection one
//! that reads and one that writes. The one that reads never waits for the one that writes, so that no two processes
//! wait for each other.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration as Span;

use crate::clock::instant_ns;
use crate::maze::{Branch, Exchange, Outbox};

/// How long the other end may take for its last notes when the run is over: longer than machines wait for packets that
/// are still on their way.
const FAREWELL_NS: u64 = 30_000_000_000;

/// How often it is looked whether they have come.
const LOOK: Span = Span::from_millis(1);

type Hear = dyn FnMut(&mut Vec<u8>) -> Result<bool, Over> + Send;
type Say = dyn FnMut(Option<&[u8]>) -> io::Result<()> + Send;
type Shut = dyn Fn() + Send + Sync;

/// A connection for notes.
pub(crate) struct Connection {
    /// Waits for the next note. Whether more has come already.
    pub hear: Box<Hear>,
    /// Sends a note with its length; none says that it was the last.
    pub say: Box<Say>,
    /// Ends the connection at once: whoever hears hears the end.
    pub shut: Box<Shut>,
}

/// A connection with its threads.
struct Line {
    shut: Box<Shut>,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    /// Why nothing more is read.
    over: Arc<OnceLock<Over>>,
}

/// Why nothing more is read.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    /// The other end has said its last, or is gone.
    Closed,
    /// It says what can't be.
    Wrong(String),
}

impl Line {
    /// Writes what comes into `outbox`, and gives `take` each note that comes, with whether more lies there already.
    fn start(
        connection: Connection,
        outbox: Arc<Outbox>,
        mut take: impl FnMut(&[u8], bool) -> Result<(), String> + Send + 'static,
    ) -> io::Result<Line> {
        let Connection { mut hear, mut say, shut } = connection;
        let over = Arc::new(OnceLock::new());
        let tells = over.clone();
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let reader = thread("reports").spawn(move || {
            let mut note = Vec::new();
            let why = loop {
                match hear(&mut note).map(|more| take(&note, more)) {
                    Ok(Ok(())) => {}
                    Ok(Err(wrong)) => break Over::Wrong(wrong),
                    Err(over) => break over,
                }
                if note.capacity() > 1 << 20 {
                    note = Vec::new();
                }
            };
            let _ = tells.set(why);
        })?;
        let writer = thread("orders").spawn(move || write(&mut say, &outbox))?;
        Ok(Line { shut, reader, writer, over })
    }

    /// The outbox has ended: waits for the last notes of both ends.
    fn finish(self) {
        let began = instant_ns();
        while !(self.reader.is_finished() && self.writer.is_finished()) {
            if instant_ns() - began > FAREWELL_NS {
                (self.shut)();
            }
            std::thread::park_timeout(LOOK);
        }
        // A thread that panicked has already said so.
        let _ = self.reader.join();
        let _ = self.writer.join();
    }
}

/// Writes notes until there are no more, and says so to the other end.
fn write(say: &mut impl FnMut(Option<&[u8]>) -> io::Result<()>, outbox: &Outbox) {
    loop {
        match outbox.take(None) {
            Some(Ok(note)) if say(Some(&note)).is_ok() => {}
            None => {}
            Some(_) => break,
        }
    }
    outbox.clear();
    // Whoever can't be told is gone.
    let _ = say(None);
}

/// What the first process has of the others.
pub(crate) struct Mail {
    exchange: Arc<Exchange>,
    /// By process; none for the first.
    lines: Vec<Option<Line>>,
}

impl Mail {
    /// Takes in what other processes report, to which these connections lead, by process.
    pub fn start(exchange: &Arc<Exchange>, connections: Vec<Option<Connection>>) -> io::Result<Mail> {
        let mut mail = Mail { exchange: exchange.clone(), lines: Vec::new() };
        for (process, connection) in connections.into_iter().enumerate() {
            let line = connection.map(|connection| {
                let hears = exchange.clone();
                let outbox = exchange.branches().outbox(process).unwrap_or_default();
                Line::start(connection, outbox, move |note, _| hears.hear(process, note))
            });
            mail.lines.push(line.transpose()?);
        }
        Ok(mail)
    }

    /// Why a process is lost, if it is: it has ended, or does not say what it should.
    pub fn why_lost(&self, process: usize) -> Option<String> {
        match self.lines.get(process)?.as_ref()?.over.get() {
            Some(Over::Closed) => Some("it has ended".to_owned()),
            Some(Over::Wrong(why)) => Some(format!("it was ended, as it said what can't be: {why}")),
            None if self.exchange.branches().is_stalled(process) => {
                Some("it was ended, as it took no notice of new messages".to_owned())
            }
            None => None,
        }
    }

    /// The run is over: says so to the others, and takes in the last that they report.
    pub fn finish(&mut self) {
        let over = self.exchange.stop(self.exchange.why_over());
        for process in 0..self.lines.len() {
            self.exchange.branches().outbox(process).iter().for_each(|outbox| outbox.end(over.clone()));
        }
        std::mem::take(&mut self.lines).into_iter().flatten().for_each(Line::finish);
    }
}

impl Drop for Mail {
    fn drop(&mut self) {
        // If it is not finished, nobody waits for what the others say.
        self.lines.iter().flatten().for_each(|line| (line.shut)());
        self.finish();
    }
}

/// What another process has of the first.
pub(crate) struct BranchMail {
    branch: Arc<Branch>,
    line: Option<Line>,
}

impl BranchMail {
    /// Obeys the process to which this connection leads.
    pub fn start(branch: &Arc<Branch>, connection: Connection) -> io::Result<BranchMail> {
        let obeys = branch.clone();
        let take = move |note: &[u8], more: bool| obeys.obey(note, more);
        let line = Line::start(connection, branch.outbox.clone(), take)?;
        Ok(BranchMail { branch: branch.clone(), line: Some(line) })
    }

    /// What the first process has said that can't be.
    pub fn wrong(&self) -> Option<String> {
        match self.line.as_ref()?.over.get()? {
            Over::Wrong(why) => Some(why.clone()),
            Over::Closed => None,
        }
    }

    /// The run is over, and all that happened was reported. Waits until the first process knows.
    pub fn finish(&mut self) {
        let Some(line) = self.line.take() else { return };
        // All flows have to be known before tables are made: the first process says its last behind them.
        let began = instant_ns();
        while !line.reader.is_finished() && instant_ns() - began < FAREWELL_NS {
            std::thread::park_timeout(LOOK);
        }
        self.branch.end();
        line.finish();
    }
}

impl Drop for BranchMail {
    fn drop(&mut self) {
        self.line.iter().for_each(|line| (line.shut)());
        self.finish();
    }
}
