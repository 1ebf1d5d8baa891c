//! The thread that makes several machines look like processes that share memory.
//!
//! Workers write packets for other machines into rings, as for other processes, and promises on the board. This thread
//! reads both and sends them over the trunk to the right machine. What arrives by a trunk, it writes into the rings and
//! boards from which workers read. It reads the board before the rings, and sends its changes after the packets from
//! the rings. So a promise never arrives before a packet that was sent earlier.
//!
//! A trunk's bytes are records: a kind, a length, and
//!
//! | kind | what |
//! |---|---|
//! | 0 | nothing, of a full segment's length: it shows that such segments get through |
//! | 1 | a packet: from which worker (2 bytes), to which (2), the body of its [frame](crate::frame) |
//! | 2 | what has changed on the board: which number (4 bytes), what it is now (8), any number of times |
//! | 3 | no packet comes behind this |

use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use node::wire::{Malformed, Reader, Writer};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::trunk::{Counts, DATA_BYTES, Header, Trunk};
use crate::board::Board;
use crate::board::mirror::{Change, Mirror};
use crate::clock::instant_ns;
use crate::frame::Refusal;
use crate::ring::Ring;
use crate::shared::Lines;

const HELLO: u8 = 0;
const PACKET: u8 = 1;
const BOARD: u8 = 2;
const END: u8 = 3;

/// A record's kind and length.
const RECORD_BYTES: usize = 5;

/// The longest record: a packet of 64 KB, or all numbers of a board.
const RECORD_BYTES_MAX: usize = 1 << 18;

/// Nothing more is taken out of rings while this much is to be sent.
const WAITING_BYTES: usize = 1 << 20;

/// A machine from which nothing comes for so long, in microseconds, is lost.
const SILENCE_US: u64 = 10_000_000;

/// The longest datagram, or several that the kernel has put together.
const BUFFER_BYTES: usize = 1 << 16;

/// The most bytes that are handed to the kernel at once.
const BATCH_BYTES: usize = 60_000;

/// How many reads of the socket in a row, before anything else is done.
const READS: u32 = 8;

/// The longest sleep: nobody wakes it but the other machines.
const SLEEP_NS: i64 = 50_000;

/// What the thread and the one that runs the machine tell each other.
#[derive(Default)]
pub(crate) struct Status {
    /// Machines to which the trunk works in both directions, as bits.
    up: AtomicU64,
    /// Machines that have sent everything and have received everything from this one, as bits.
    done: AtomicU64,
    /// No worker sends any more; nothing is to be done any more.
    closes: AtomicBool,
    ends: AtomicBool,
    seen: Mutex<Seen>,
}

/// What the thread has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub counts: Counts,
    pub refused: [u64; Refusal::ALL.len()],
    /// The least round trip to the farthest machine, in microseconds.
    pub trip_us: u32,
    /// Datagrams that the kernel takes at once.
    pub batch: u32,
}

impl Status {
    pub fn up(&self) -> u64 {
        self.up.load(Ordering::SeqCst)
    }

    pub fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    /// No worker sends any more.
    pub fn close(&self) {
        self.closes.store(true, Ordering::SeqCst);
    }

    /// The thread is to end.
    pub fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
    }

    pub fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A machine at the other end of a trunk.
pub(crate) struct Peer {
    pub machine: usize,
    pub address: SocketAddr,
    pub trunk: Trunk,
    pub workers: Range<usize>,
    /// The copy of its board on this machine.
    pub region: Arc<Lines>,
    /// The changes of this machine's board that were sent to it; `theirs` does the same for its board here.
    pub told: Mirror,
    pub theirs: Mirror,
    /// Rings to and from its workers: by worker here, then worker there.
    pub to: Vec<Ring>,
    pub from: Vec<Ring>,
    pub greeted: bool,
    pub closed: bool,
    pub ended: bool,
    pub lost: bool,
}

/// The thread's things.
pub(crate) struct Courier<'a> {
    pub socket: UdpSocket,
    pub state: UdpSocketState,
    pub peers: Vec<Peer>,
    pub own: Range<usize>,
    pub region: Arc<Lines>,
    pub board: &'a Board,
    pub status: &'a Status,
    pub sleeps: bool,
    pub seen: Seen,
}

impl Courier<'_> {
    /// Carries until it is told to end.
    pub fn live(mut self) {
        let mut buffers = vec![vec![0; BUFFER_BYTES]; BATCH_SIZE];
        let (mut batch, mut changes) = (Vec::with_capacity(BATCH_BYTES), Vec::new());
        self.seen.batch = self.state.max_gso_segments() as u32;
        self.peers.iter_mut().for_each(|peer| peer.hello());
        while !self.status.ends.load(Ordering::SeqCst) {
            let now = instant_ns() / 1_000;
            let closes = self.status.closes.load(Ordering::SeqCst);
            let mut busy = self.receive(now, &mut buffers);
            let dead = self.board.dead();
            for peer in &mut self.peers {
                if peer.lost || dead >> peer.machine & 1 != 0 {
                    continue;
                }
                busy |= peer.hear(&self.own, self.board);
                busy |= peer.tell(&self.region, closes, &mut changes);
                busy |= send(&self.socket, &self.state, peer, now, &mut batch);
                // Before it has greeted it may still be working out what its nodes are.
                let silent = peer.greeted && now.saturating_sub(peer.trunk.heard_at) > SILENCE_US;
                if peer.lost || silent {
                    peer.lost = true;
                    self.board.suspect(1 << peer.machine);
                }
            }
            self.say(closes);
            if !busy {
                self.wait();
            }
        }
    }

    /// Publishes the state of the trunks for the thread that runs the machine.
    fn say(&mut self, closes: bool) {
        let bits =
            |is: fn(&Peer) -> bool| self.peers.iter().filter(|of| is(of)).fold(0, |bits, of| bits | 1 << of.machine);
        let up = bits(|peer| peer.greeted && peer.trunk.acked() >= DATA_BYTES as u64);
        let before = self.status.up.swap(up, Ordering::SeqCst);
        if before == up && !closes {
            return;
        }
        let done = bits(|peer| peer.ended && peer.closed && peer.trunk.unread() == 0);
        let mut seen = self.seen;
        for peer in &self.peers {
            let Counts { sent, sent_bytes, again, received, repeated } = peer.trunk.counts;
            seen.counts.sent += sent;
            seen.counts.sent_bytes += sent_bytes;
            seen.counts.again += again;
            seen.counts.received += received;
            seen.counts.repeated += repeated;
            seen.trip_us = seen.trip_us.max(peer.trunk.trip_us.unwrap_or(0));
        }
        *self.status.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        self.status.done.store(done, Ordering::SeqCst);
    }

    /// Reads the datagrams that have come by the socket. Returns whether there were any.
    fn receive(&mut self, now_us: u64, buffers: &mut [Vec<u8>]) -> bool {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut some = false;
        for _ in 0..READS {
            let mut slices: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|of| IoSliceMut::new(of)).collect();
            let received = self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas);
            let count = match received {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Nothing there; or an error that a stranger left behind, and then the next look finds what there is.
                Err(_) => return some,
            };
            for (meta, buffer) in metas.iter().zip(&*buffers).take(count) {
                for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    self.take(now_us, datagram);
                }
            }
            some |= count > 0;
        }
        some
    }

    fn take(&mut self, now_us: u64, datagram: &[u8]) {
        let taken = Header::parse(datagram).and_then(|header| {
            let peer = self.peers.iter_mut().find(|peer| peer.machine == usize::from(header.from));
            peer.ok_or(Refusal::Stranger)?.trunk.take(now_us, datagram)
        });
        if let Err(refusal) = taken {
            self.seen.refused[refusal as usize] += 1;
        }
    }

    /// Nothing is to be done now.
    fn wait(&self) {
        if !self.sleeps {
            return std::thread::yield_now();
        }
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        // Woken by a signal, or refused: it looks again, as after any sleep.
        let _ = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: SLEEP_NS }));
    }
}

/// Sends what is to be sent now: segments of one length are handed over together.
fn send(socket: &UdpSocket, state: &UdpSocketState, peer: &mut Peer, now_us: u64, batch: &mut Vec<u8>) -> bool {
    let (most, destination) = (state.max_gso_segments(), peer.address);
    let flush = |batch: &mut Vec<u8>, count: &mut usize, length: usize| {
        let segment_size = (*count > 1).then_some(length);
        let transmit = Transmit { destination, ecn: None, contents: batch, segment_size, src_ip: None };
        // What the kernel does not take is lost, as on any network, and sent again.
        let _ = state.send(UdpSockRef::from(socket), &transmit);
        batch.clear();
        *count = 0;
    };
    let (mut segment, mut some) = (Vec::new(), false);
    let (mut count, mut length) = (0, 0);
    batch.clear();
    while peer.trunk.next(now_us, &mut segment) {
        some = true;
        if count > 0 && segment.len() > length {
            flush(batch, &mut count, length);
        }
        if count == 0 {
            length = segment.len();
        }
        batch.extend(&segment);
        count += 1;
        if segment.len() < length || count == most || batch.len() + length > BATCH_BYTES {
            flush(batch, &mut count, length);
        }
    }
    if count > 0 {
        flush(batch, &mut count, length);
    }
    some
}

impl Peer {
    fn write(&mut self, kind: u8, length: usize) {
        let mut head = Vec::with_capacity(RECORD_BYTES);
        let mut to = Writer::new(&mut head);
        to.u8(kind);
        to.u32(length as u32);
        self.trunk.write(&head);
    }

    /// The first record fills the first segment.
    fn hello(&mut self) {
        self.write(HELLO, DATA_BYTES - RECORD_BYTES);
        self.trunk.write(&[0; DATA_BYTES - RECORD_BYTES]);
    }

    /// Writes the packets from the rings and the changes of the board into the trunk. Returns whether there were any.
    fn tell(&mut self, region: &Lines, closes: bool, changes: &mut Vec<Change>) -> bool {
        if self.trunk.unread() > WAITING_BYTES {
            return false;
        }
        self.told.changes(region, changes);
        let (mut entry, mut some) = (Vec::new(), false);
        let theirs = self.workers.clone();
        for place in 0..self.to.len() {
            // Whatever was there when the board was read is no more than a ring holds.
            for _ in 0..crate::ring::RING {
                // Its writer is this process.
                if !matches!(self.to[place].pop(&mut entry), Ok(true)) {
                    break;
                }
                let (here, there) = (place / theirs.len(), place % theirs.len());
                let mut head = Vec::with_capacity(4);
                let mut to = Writer::new(&mut head);
                to.u16(here as u16);
                to.u16(there as u16);
                self.write(PACKET, head.len() + entry.len());
                self.trunk.write(&head);
                self.trunk.write(&entry);
                some = true;
            }
        }
        if !changes.is_empty() {
            let mut body = Vec::with_capacity(12 * changes.len());
            let mut to = Writer::new(&mut body);
            for &(word, now) in &*changes {
                to.u32(word);
                to.u64(now);
            }
            self.write(BOARD, body.len());
            self.trunk.write(&body);
        }
        if closes && !some && !self.closed {
            self.closed = true;
            self.write(END, 0);
        }
        some || !changes.is_empty()
    }

    /// Processes the records that have come, as long as rings have room for their packets. Returns whether there were
    /// any.
    fn hear(&mut self, own: &Range<usize>, board: &Board) -> bool {
        let mut inbox = std::mem::take(&mut self.trunk.inbox);
        let bytes = inbox.make_contiguous();
        let mut heard = 0;
        loop {
            match self.hear_record(&bytes[heard..], own, board) {
                Ok(0) => break,
                Ok(length) => heard += length,
                Err(Malformed { .. }) => {
                    self.lost = true;
                    break;
                }
            }
        }
        self.trunk.inbox = inbox;
        self.trunk.read(heard);
        heard > 0
    }

    /// Processes a record. Returns its length, or 0 if it is incomplete or a ring has no room for its packet.
    fn hear_record(&mut self, bytes: &[u8], own: &Range<usize>, board: &Board) -> Result<usize, Malformed> {
        let wrong = Malformed { what: "record of a trunk" };
        if bytes.len() < RECORD_BYTES {
            return Ok(0);
        }
        let mut from = Reader::new(bytes, wrong.what);
        let (kind, length) = (from.u8()?, from.u32()? as usize);
        if length > RECORD_BYTES_MAX || (self.ended && kind != BOARD) {
            return Err(wrong);
        }
        let Ok(body) = from.bytes(length) else { return Ok(0) };
        match kind {
            HELLO => self.greeted = true,
            PACKET => {
                if !self.take_packet(body, own, board)? {
                    return Ok(0);
                }
            }
            BOARD => self.take_changes(body)?,
            END if length == 0 => self.ended = true,
            _ => return Err(wrong),
        }
        Ok(RECORD_BYTES + length)
    }

    /// Whether there was room for it.
    fn take_packet(&mut self, body: &[u8], own: &Range<usize>, board: &Board) -> Result<bool, Malformed> {
        let wrong = Malformed { what: "packet of a trunk" };
        let mut from = Reader::new(body, wrong.what);
        let (there, here) = (usize::from(from.u16()?), usize::from(from.u16()?));
        if there >= self.workers.len() || here >= own.len() {
            return Err(wrong);
        }
        // Its reader is this process, so that only a length can be wrong.
        let put = self.from[here * self.workers.len() + there].push(from.rest()).map_err(|_| wrong)?;
        if put {
            board.nudge(own.start + here);
        }
        Ok(put)
    }

    fn take_changes(&mut self, body: &[u8]) -> Result<(), Malformed> {
        let wrong = Malformed { what: "numbers of a board" };
        let mut from = Reader::new(body, wrong.what);
        let mut changes = Vec::with_capacity(body.len() / 12);
        while !from.rest().is_empty() {
            changes.push((from.u32()?, from.u64()?));
        }
        self.theirs.apply(&self.region, &changes).map_err(|()| wrong)
    }
}

/// What a machine makes of records that another has sent, whatever they are: how many packets there were for workers
/// here, and whether all was as it should be. For fuzzing.
pub fn read_any(bytes: &[u8], mut take: impl FnMut(&[u8])) -> (usize, bool) {
    use crate::board::board_lines;
    use crate::ring::ring_lines;
    use units::Duration;
    const ROOM: usize = 256;
    let lines = |machine| Arc::new(Lines::own(board_lines(machine, 2, 2)));
    let ring = Arc::new(Lines::own(ring_lines(ROOM)));
    let end = || Ring::new(ring.clone(), 0, ROOM);
    let delays = vec![vec![Duration::from_us(1); 2]; 2];
    let regions = vec![lines(0), lines(1)];
    let board = Board::over(regions.clone(), 0, delays, true);
    let mut peer = Peer {
        machine: 1,
        address: SocketAddr::from(([127, 0, 0, 1], 1)),
        trunk: Trunk::unkeyed(bytes),
        workers: 1..2,
        region: regions[1].clone(),
        told: Mirror::new(regions[0].len(), 2),
        theirs: Mirror::new(regions[1].len(), 2),
        to: Vec::new(),
        from: vec![end()],
        greeted: false,
        closed: false,
        ended: false,
        lost: false,
    };
    let (mut packets, mut entry, mut reads) = (0, Vec::new(), end());
    let mut more = true;
    while more {
        more = peer.hear(&(0..1), &board) && !peer.lost;
        while let Ok(true) = reads.pop(&mut entry) {
            take(&entry);
            packets += 1;
        }
    }
    // Of a board that says anything, this must give something.
    let _ = (board.limit(0), board.quiet_until(), board.ended_flows(), board.suspects(1));
    (packets, !peer.lost && peer.trunk.inbox.is_empty())
}

#[cfg(test)]
mod tests;
