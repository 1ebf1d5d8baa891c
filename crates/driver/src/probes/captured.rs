//! What some links carry, packet by packet, for files that other programs read (`clearway run --pcap`). It makes no
//! table. The caller of a run asks for it ([`Probes::capturing`](crate::Probes::capturing)), and takes the packets when
//! the run is over.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use node::{Loss, Packet};
use run::Plan;
use units::{LinkId, Problem, Time};

use super::packets::{loss_in_words, place};
use crate::capture::{Encoder, Noted, Wanted};
use crate::first_rows::{FirstRows, Timed};
use crate::{Leaving, NodePort, Probe, View, Wants};

/// Links that are captured, and what they have carried once a run is over.
pub struct Capturing {
    files: Vec<Wanted>,
    /// Most packets of a file. Each part notes as many that left, and as many that were lost.
    packets_max: u64,
    /// The ends of all links, by place: file, interface, link.
    senders: BTreeMap<NodePort, Vec<Interface>>,
    receivers: BTreeMap<NodePort, Vec<Interface>>,
    noted: Mutex<Vec<Noting>>,
}

#[derive(Clone, Copy)]
struct Interface {
    file: usize,
    number: u32,
    link: LinkId,
}

/// What a part has noted of a file: packets that left on its links, and packets that were lost at their ends.
struct Noting {
    file: usize,
    sent: FirstRows<Row>,
    lost: FirstRows<Row>,
}

#[derive(Clone, Copy)]
struct Row {
    /// When it left or was lost.
    noted: Time,
    /// When its last bit left, or when it was lost.
    at: Time,
    interface: Interface,
    packet: Packet,
    lost: Option<Loss>,
}

impl Timed for Row {
    fn time(&self) -> Time {
        self.noted
    }
}

/// What a part's nodes have sent on captured links, and lost at their ends.
#[derive(node::State)]
#[state(refuse("links are captured"), unsaved("links are captured"))]
pub(crate) struct Captured {
    of: Arc<Capturing>,
    noting: Vec<Noting>,
}

/// A packet that was lost at the receiving end of a captured link.
pub struct Lost {
    /// Which link of its file.
    pub interface: u32,
    /// When.
    pub at: Time,
    /// What it is.
    pub packet: Packet,
    /// Why, in words.
    pub why: &'static str,
}

/// Tells of packets that are lost at the receiving ends of captured links, while a run goes on.
#[derive(Clone, Default, node::State)]
#[state(refuse("links are captured"), unsaved("links are captured"))]
pub struct TellsLosses {
    /// By receiving end: the interface of the link in its file, and where its losses are sent.
    ends: BTreeMap<NodePort, Vec<(u32, Sender<Lost>)>>,
}

impl TellsLosses {
    /// None: a scenario cannot ask for this probe, only the caller of a run can.
    pub(crate) fn new(_: &Plan) -> Option<TellsLosses> {
        None
    }

    /// Losses of this link, which is interface `interface` of its file, are sent to `to`.
    pub fn tell(&mut self, plan: &Plan, link: LinkId, interface: u32, to: Sender<Lost>) {
        self.ends.entry(receiver(plan, link)).or_default().push((interface, to));
    }
}

impl Probe for TellsLosses {
    fn wants(&self) -> Wants {
        Wants { drops: true, ..Wants::default() }
    }

    fn on_drop(&mut self, now: Time, at: NodePort, packet: &Packet, why: Loss) {
        for (interface, to) in self.ends.get(&at).into_iter().flatten() {
            // Nobody listens any more once a file can't be written.
            let _ = to.send(Lost { interface: *interface, at: now, packet: *packet, why: loss_in_words(why) });
        }
    }
}

/// The receiving end of a link.
fn receiver(plan: &Plan, link: LinkId) -> NodePort {
    let ends = plan.fabric.link(link);
    place(plan, ends.to, ends.to_port)
}

/// A file's content.
pub struct Content {
    /// Whole blocks, from the first on.
    pub blocks: Vec<u8>,
    /// Whether there were more packets than there was room for.
    pub is_cut_off: bool,
}

impl Capturing {
    /// The links of these files, and at most this many packets for each.
    pub fn new(plan: &Plan, files: Vec<Wanted>, packets_max: u64) -> Arc<Capturing> {
        let (mut senders, mut receivers) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for (file, wanted) in files.iter().enumerate() {
            for (number, &link) in (0..).zip(&wanted.links) {
                let (ends, interface) = (plan.fabric.link(link), Interface { file, number, link });
                senders.entry(place(plan, ends.from, ends.from_port)).or_default().push(interface);
                receivers.entry(receiver(plan, link)).or_default().push(interface);
            }
        }
        Arc::new(Capturing { files, packets_max, senders, receivers, noted: Mutex::default() })
    }

    /// The links of each file.
    pub fn links(&self) -> impl Iterator<Item = &[LinkId]> {
        self.files.iter().map(|file| &file.links[..])
    }

    /// The contents of the files, in their order, of what a run has noted; the same for any number of parts.
    pub fn contents(&self, plan: &Plan) -> Result<Vec<Content>, Problem> {
        let mut encoder = Encoder::new(plan)?;
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let content = |(file, wanted): (usize, &Wanted)| {
            let here = || noted.iter().filter(|noting| noting.file == file);
            // One part has the sending end of a link, and one its receiving end.
            let mut rows: Vec<&Row> = here().flat_map(|noting| noting.sent.iter().chain(&noting.lost)).collect();
            rows.sort_by_key(|row| (row.noted, row.lost.is_some(), row.interface.number));
            let most = usize::try_from(self.packets_max).unwrap_or(usize::MAX);
            let is_cut_off = rows.len() > most || here().any(|noting| noting.sent.more || noting.lost.more);
            rows.truncate(most);
            rows.sort_by_key(|row| (row.at, row.lost.is_some(), row.interface.number));
            let mut blocks = wanted.begin(plan);
            for &&Row { at, interface, ref packet, lost, .. } in &rows {
                let Interface { number, link, .. } = interface;
                let lost = lost.map(loss_in_words);
                encoder.note(plan, &Noted { interface: number, link, at, packet, content: None, lost }, &mut blocks);
            }
            Content { blocks, is_cut_off }
        };
        Ok(self.files.iter().enumerate().map(content).collect())
    }
}

impl Captured {
    /// None: a scenario cannot ask for this probe, only the caller of a run can.
    pub fn new(_: &Plan) -> Option<Captured> {
        None
    }

    /// The captured links of a part.
    pub fn of(of: Arc<Capturing>) -> Captured {
        let rows = || FirstRows::new(of.packets_max);
        let noting = (0..of.files.len()).map(|file| Noting { file, sent: rows(), lost: rows() }).collect();
        Captured { of, noting }
    }
}

impl Noting {
    fn push(&mut self, row: Row) {
        let rows = if row.lost.is_some() { &mut self.lost } else { &mut self.sent };
        rows.push(row);
    }
}

impl Probe for Captured {
    fn wants(&self) -> Wants {
        Wants { departures: true, drops: true, ..Wants::default() }
    }

    fn on_departure(&mut self, now: Time, from: NodePort, leaving: Leaving<'_>) {
        for &interface in self.of.senders.get(&from).into_iter().flatten() {
            let row = Row { noted: now, at: leaving.last, interface, packet: *leaving.packet, lost: None };
            self.noting[interface.file].push(row);
        }
    }

    fn on_drop(&mut self, now: Time, at: NodePort, packet: &Packet, why: Loss) {
        for &interface in self.of.receivers.get(&at).into_iter().flatten() {
            let row = Row { noted: now, at: now, interface, packet: *packet, lost: Some(why) };
            self.noting[interface.file].push(row);
        }
    }

    fn end(&mut self, _: View<'_>) {
        let noted = std::mem::take(&mut self.noting);
        self.of.noted.lock().unwrap_or_else(PoisonError::into_inner).extend(noted);
    }
}
