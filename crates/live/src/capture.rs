//! The files of captured links, which are written during the run (`live.capture`). [`driver::capture`] says what is in
//! them.
//!
//! A file always ends with a whole block. Packets are on the disk a moment later (`DELAY`). The worker with the link's
//! sending end writes the file; the worker with the receiving end reports losses to it.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration as Span;

use driver::capture::{Encoder, Noted, wanted};
use driver::{Lost, TellsLosses};
use node::Packet;
use run::Plan;
use units::{LinkId, Problem, Time};

/// After so long by the machine's clock what has been captured is written, while nothing else is to be done.
const DELAY: Span = Span::from_millis(20);

/// So many bytes are written at once, whatever is to be done.
const FULL: usize = 1 << 18;

/// The files of a worker's links.
pub(crate) struct Captures {
    encoder: Encoder,
    files: Vec<Capture>,
    /// By sending end: which file, and which interface of it.
    of: Vec<Option<(u32, u32)>>,
    /// When files were last written, by the machine's clock.
    written: Span,
}

/// A file that is being written.
pub(crate) struct Capture {
    /// Its links, in the order of its interfaces.
    pub links: Vec<LinkId>,
    path: String,
    file: File,
    /// What is lost at the receiving ends of its links.
    lost: Receiver<Lost>,
    /// Whole blocks.
    blocks: Vec<u8>,
    /// Why no more is written.
    failed: Option<String>,
}

const KEY: &str = "live.capture";

/// Opens the files of all links that are to be captured, and gives what tells them of losses; none if there are none.
pub(crate) fn open(plan: &Plan) -> Result<(Vec<Capture>, Option<TellsLosses>), Problem> {
    let (mut files, mut losses) = (Vec::new(), TellsLosses::default());
    for wanted in wanted(plan, &plan.scenario.live.capture, KEY)? {
        let file = File::create(&wanted.path).map_err(|error| wanted.refused(KEY, &error))?;
        let blocks = wanted.begin(plan);
        let (told, lost): (Sender<Lost>, _) = mpsc::channel();
        losses.tell(plan, &wanted.links, &told);
        let mut file = Capture { links: wanted.links, path: wanted.path, file, lost, blocks, failed: None };
        file.write();
        files.push(file);
    }
    let losses = (!files.is_empty()).then_some(losses);
    Ok((files, losses))
}

impl Captures {
    /// Those of a worker; none if it has none. `outlet` is a link's sending end, if it is here.
    pub fn new(plan: &Plan, files: Vec<Capture>, outlet: impl Fn(LinkId) -> u32) -> Option<Captures> {
        let encoder = Encoder::new(plan).ok().filter(|_| !files.is_empty())?;
        let mut of = Vec::new();
        for (file, capture) in (0..).zip(&files) {
            for (interface, &link) in (0..).zip(&capture.links) {
                let outlet = outlet(link) as usize;
                of.resize(of.len().max(outlet + 1), None);
                of[outlet] = Some((file, interface));
            }
        }
        Some(Captures { encoder, files, of, written: Span::ZERO })
    }

    /// Whether what leaves there is captured.
    #[inline]
    pub fn wants(&self, outlet: u32) -> bool {
        self.of.get(outlet as usize).is_some_and(Option::is_some)
    }

    /// A packet's last bit has left; its content, if that is carried.
    pub fn note(&mut self, plan: &Plan, outlet: u32, at: Time, packet: &Packet, content: Option<&[u8]>) {
        let Some((file, interface)) = self.of[outlet as usize] else { return };
        let capture = &mut self.files[file as usize];
        if capture.failed.is_some() {
            return;
        }
        let link = capture.links[interface as usize];
        let noted = Noted { interface, link, at, packet, content, lost: None };
        self.encoder.note(plan, &noted, &mut capture.blocks);
        if capture.blocks.len() > FULL {
            capture.write();
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
            for Lost { interface, at, packet, why } in file.lost.try_iter() {
                let link = file.links[interface as usize];
                let noted = Noted { interface, link, at, packet: &packet, content: None, lost: Some(why) };
                self.encoder.note(plan, &noted, &mut file.blocks);
            }
            file.write();
        }
    }
}

impl Capture {
    fn write(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(&self.blocks)
        {
            self.failed = Some(format!("the capture \"{}\" ends early: {error}", self.path));
        }
        self.blocks.clear();
    }
}
