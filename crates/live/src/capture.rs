//! The files of captured links, which are written during the run (`live.capture`). [`driver::capture`] says what is in
//! them.
//!
//! A file always ends with a whole block. Packets are on the disk a moment later (`DELAY`). The worker with a link's
//! sending end writes its packets; the worker with the receiving end reports losses to it, or writes them itself if it
//! is in another process. The links of one file may belong to several workers, which write in turn: each what it has
//! noted since it wrote last. So packets of two workers are in order to `DELAY` (Wireshark's `reordercap` sorts them).
//! Several processes of a machine append whole blocks to the same file, which the first of them has begun. Each of
//! several machines has a file of its own ([`numbered`]), with the same interfaces.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Span;

use driver::capture::{Encoder, Noted, wanted};
use driver::{Lost, TellsLosses};
use node::Packet;
use run::Plan;
use units::{LinkId, NodeId, Problem, Time};

use crate::outside::Share;

/// How long captured packets wait before they are written while the worker has nothing else to do, by the machine's
/// clock.
const DELAY: Span = Span::from_millis(20);

/// As soon as there are this many bytes, they are written even if the worker is busy.
const FULL: usize = 1 << 18;

/// The files of a worker's links.
pub(crate) struct Captures {
    encoder: Encoder,
    files: Vec<Capture>,
    /// By sending end: which files, and which link of each.
    of: Vec<Vec<(usize, usize)>>,
    /// When files were last written, by the machine's clock.
    written: Span,
}

/// A file that is being written.
pub(crate) struct Capture {
    /// Its links, or those of them whose sending ends a worker has.
    links: Vec<Captured>,
    path: String,
    file: Arc<Mutex<File>>,
    /// Whole blocks.
    blocks: Vec<u8>,
    /// Why no more is written.
    failed: Option<String>,
}

/// A link of a file.
struct Captured {
    link: LinkId,
    /// Its interface.
    number: u32,
    /// What is lost at its receiving end.
    lost: Receiver<Lost>,
}

const KEY: &str = "live.capture";

/// Opens the files of captured links that have an end in this part of the run, and gives what tells them of losses;
/// none if there are none.
pub(crate) fn open(
    plan: &Plan,
    share: Share,
    has: impl Fn(NodeId) -> bool,
) -> Result<(Vec<Capture>, Option<TellsLosses>), Problem> {
    let (mut files, mut losses) = (Vec::new(), TellsLosses::default());
    for mut wanted in wanted(plan, &plan.scenario.live.capture, KEY)? {
        let is_here = |link: LinkId| has(plan.fabric.link(link).from) || has(plan.fabric.link(link).to);
        let begins = matches!(share, Share::Whole | Share::Process(0, _) | Share::Machine(0, _));
        if !begins && !wanted.links.iter().any(|&link| is_here(link)) {
            continue;
        }
        if let Share::Machine(machine, _) = share {
            wanted.path = numbered(&wanted.path, machine);
        }
        if begins_file(share) {
            check(&wanted.path).map_err(|error| wanted.refused(KEY, &error))?;
        }
        let file = open_file(&wanted.path, share).map_err(|error| wanted.refused(KEY, &error))?;
        let blocks = if matches!(share, Share::Process(1.., _)) { Vec::new() } else { wanted.begin(plan) };
        let captured = |(number, &link): (u32, &LinkId)| {
            let (told, lost) = mpsc::channel();
            losses.tell(plan, link, number, told);
            Captured { link, number, lost }
        };
        let links = (0..).zip(&wanted.links).filter(|(_, link)| is_here(**link)).map(captured).collect();
        let file = Arc::new(Mutex::new(file));
        let mut file = Capture { links, path: wanted.path, file, blocks, failed: None };
        file.write();
        files.push(file);
    }
    let losses = (!files.is_empty()).then_some(losses);
    Ok((files, losses))
}

/// Whether this part of a run makes its files, and does not go on with another's.
fn begins_file(share: Share) -> bool {
    !matches!(share, Share::Process(1.., _))
}

/// Refuses to overwrite a file that is no capture: a scenario may have been received from others. A pipe may be written
/// to.
fn check(path: &str) -> io::Result<()> {
    let mut head = Vec::new();
    match std::fs::metadata(path) {
        Ok(about) if about.is_file() => File::open(path)?.take(4).read_to_end(&mut head)?,
        _ => return Ok(()),
    };
    // A section header block begins with these bytes, whatever their order.
    let is_capture = head.is_empty() || head == [0x0A, 0x0D, 0x0D, 0x0A];
    let why = "it is there and no capture; name another file";
    if is_capture { Ok(()) } else { Err(io::Error::new(io::ErrorKind::AlreadyExists, why)) }
}

/// Opens a file of this part of a run.
fn open_file(path: &str, share: Share) -> io::Result<File> {
    match share {
        Share::Whole | Share::Machine(..) => File::create(path),
        Share::Process(0, _) => {
            let begun = File::create(path)?;
            let file = OpenOptions::new().append(true).open(path);
            drop(begun); // a pipe's reader would see the end of it if nobody had it open meanwhile
            file
        }
        Share::Process(..) => OpenOptions::new().append(true).open(path),
    }
}

/// The file of a machine: of the first, as it was asked for; of machine 2, out.2.pcapng for out.pcapng or
/// folder/out.pcapng, in its current folder: another machine says no more than a file's name.
fn numbered(path: &str, machine: usize) -> String {
    let name = Path::new(path).file_name().map_or(Path::new("capture"), Path::new);
    match (machine, name.extension().and_then(|end| end.to_str())) {
        (0, _) => path.to_owned(),
        (_, None) => format!("{}.{machine}", name.display()),
        (_, Some(end)) => name.with_extension(format!("{machine}.{end}")).to_string_lossy().into_owned(),
    }
}

impl Captures {
    /// Those of a worker; none if it has none. `link_tx` is a link's sending end, if it is here.
    pub fn new(plan: &Plan, files: Vec<Capture>, link_tx: impl Fn(LinkId) -> Option<u32>) -> Option<Captures> {
        let encoder = Encoder::new(plan).ok().filter(|_| !files.is_empty())?;
        let mut of = Vec::new();
        for (file, capture) in files.iter().enumerate() {
            for (place, captured) in capture.links.iter().enumerate() {
                let Some(link_tx) = link_tx(captured.link) else { continue };
                let link_tx = link_tx as usize;
                of.resize(of.len().max(link_tx + 1), Vec::new());
                of[link_tx].push((file, place));
            }
        }
        Some(Captures { encoder, files, of, written: Span::ZERO })
    }

    /// Whether what leaves there is captured.
    #[inline]
    pub fn wants(&self, link_tx: u32) -> bool {
        self.of.get(link_tx as usize).is_some_and(|files| !files.is_empty())
    }

    /// A packet's last bit has left; its content, if that is carried.
    pub fn note(&mut self, plan: &Plan, link_tx: u32, at: Time, packet: &Packet, content: Option<&[u8]>) {
        for &(file, place) in &self.of[link_tx as usize] {
            let capture = &mut self.files[file];
            if capture.failed.is_some() {
                continue;
            }
            let Captured { link, number: interface, .. } = capture.links[place];
            let noted = Noted { interface, link, at, packet, content, lost: None };
            self.encoder.note(plan, &noted, &mut capture.blocks);
            if capture.blocks.len() > FULL {
                capture.write();
            }
        }
    }

    /// Writes what has been noted if the last time is a moment ago.
    pub fn write_after(&mut self, plan: &Plan, machine: Span) {
        if machine.saturating_sub(self.written) >= DELAY {
            self.written = machine;
            self.write(plan);
        }
    }

    /// The run is over: writes the rest, and says which files are not whole.
    pub fn end(&mut self, plan: &Plan) -> Vec<String> {
        self.write(plan);
        self.files.iter().filter_map(|file| file.failed.clone()).collect()
    }

    fn write(&mut self, plan: &Plan) {
        for file in &mut self.files {
            for &Captured { link, ref lost, .. } in &file.links {
                for Lost { interface, at, packet, why } in lost.try_iter() {
                    let noted = Noted { interface, link, at, packet: &packet, content: None, lost: Some(why) };
                    self.encoder.note(plan, &noted, &mut file.blocks);
                }
            }
            file.write();
        }
    }
}

impl Capture {
    /// Splits off the links for which `is_here` is true, with the same file; none if there are none.
    pub fn part(&mut self, is_here: impl Fn(LinkId) -> bool) -> Option<Capture> {
        let (links, others): (Vec<_>, Vec<_>) = self.links.drain(..).partition(|captured| is_here(captured.link));
        self.links = others;
        let (path, file) = (self.path.clone(), self.file.clone());
        (!links.is_empty()).then(|| Capture { links, path, file, blocks: Vec::new(), failed: self.failed.clone() })
    }

    fn write(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&self.blocks)
        {
            self.failed = Some(format!("the capture \"{}\" ends early: {error}", self.path));
        }
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests;
