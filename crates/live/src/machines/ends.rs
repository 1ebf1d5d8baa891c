//! A machine's ends of the rings and trunks that lead to other machines.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration as Span;

use ::run::Plan;
use driver::{Cut, Probe};
use quinn_udp::{UdpSockRef, UdpSocketState};
use units::Duration;

use super::courier::{Courier, Peer, Seen, Status};
use super::token::Token;
use super::trunk::{Keys, Trunk};
use crate::board::mirror::Mirror;
use crate::board::{Board, board_lines, workers_of};
use crate::clock::instant_ns;
use crate::network::FarEnds;
use crate::ring::{Ring, ring_lines};
use crate::several;
use crate::shared::Lines;
use crate::wires::Far;
use crate::worker::Worker;

/// So long a machine waits until the trunks to all others work: they make their nodes meanwhile.
const UP: Span = Span::from_secs(30);

/// The longest wait, at the end, for packets that are still under way.
const LAST: Span = Span::from_secs(20);

/// What the buffer of a socket is asked to hold; the system may give less.
const BUFFER_BYTES: usize = 4 << 20;

/// How often it looks while it waits.
const MOMENT: Span = Span::from_micros(200);

/// Rings and boards of a machine.
pub(crate) struct Ends {
    me: usize,
    machines: usize,
    workers: usize,
    pub regions: Vec<Arc<Lines>>,
    /// For the courier, by machine: rings to it, rings from it.
    rings: Vec<(Vec<Ring>, Vec<Ring>)>,
}

impl Ends {
    /// The machine's ends, and those of its workers.
    pub fn new(plan: &Plan, cut: &Cut, me: usize, machines: usize) -> (Ends, FarEnds) {
        let (workers, room) = (cut.parts(), plan.scenario.host.mtu.get() as usize);
        let own = workers_of(me, machines, workers);
        let mut far: FarEnds = own.clone().map(|_| (0..workers).map(|_| None).collect()).collect();
        let mut rings = Vec::new();
        for machine in 0..machines {
            let (mut to, mut from) = (Vec::new(), Vec::new());
            if machine != me {
                for far in &mut far {
                    for worker in workers_of(machine, machines, workers) {
                        let [out, back] = [(); 2].map(|()| Arc::new(Lines::own(ring_lines(room))));
                        let end = |of: &Arc<Lines>| Ring::new(of.clone(), 0, room);
                        to.push(end(&out));
                        from.push(end(&back));
                        far[worker] = Some(Far { to: end(&out), from: end(&back), lost: false });
                    }
                }
            }
            rings.push((to, from));
        }
        let lines = |machine| Arc::new(Lines::own(board_lines(machine, machines, workers)));
        (Ends { me, machines, workers, regions: (0..machines).map(lines).collect(), rings }, far)
    }

    /// Makes the courier, which carries between these rings and boards and those of the machines at these addresses.
    pub fn courier<'a>(
        self,
        socket: UdpSocket,
        addresses: &[SocketAddr],
        (token, session): (&Token, &[u8; 32]),
        (board, status, sleeps): (&'a Board, &'a Status, bool),
    ) -> io::Result<Courier<'a>> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        for set in [UdpSocketState::set_recv_buffer_size, UdpSocketState::set_send_buffer_size] {
            // With less of it more is lost and sent again.
            let _ = set(&state, UdpSockRef::from(&socket), BUFFER_BYTES);
        }
        // Small segments need several times their length there.
        let most = state.recv_buffer_size(UdpSockRef::from(&socket))? / 4 / (self.machines - 1).max(1);
        let [number, ..] = session.as_chunks::<8>().0 else { return Err(io::Error::other("no session")) };
        let now_us = instant_ns() / 1_000;
        let Ends { me, machines, workers, regions, rings } = self;
        let own = workers_of(me, machines, workers);
        let key = |from: usize, to: usize| token.key("trunk", &[session, &[from as u8, to as u8]]);
        let peer = |(machine, (to, from)): (usize, (Vec<Ring>, Vec<Ring>))| {
            let keys = Keys { to: key(me, machine), from: key(machine, me) };
            Peer {
                machine,
                address: addresses[machine],
                trunk: Trunk::new(me as u8, u64::from_be_bytes(*number), keys, most as u64, now_us),
                workers: workers_of(machine, machines, workers),
                region: regions[machine].clone(),
                told: Mirror::new(regions[me].len(), workers),
                theirs: Mirror::new(regions[machine].len(), workers),
                to,
                from,
                greeted: false,
                closed: false,
                ended: false,
                lost: false,
            }
        };
        let peers = rings.into_iter().enumerate().filter(|(machine, _)| *machine != me).map(peer).collect();
        let region = regions[me].clone();
        Ok(Courier { socket, state, peers, own, region, board, status, sleeps, seen: Seen::default() })
    }
}

/// Ends the courier when its machine has ended, however it does.
pub(crate) struct Ending<'a>(pub &'a Status);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// All machines but one, as bits.
pub(crate) fn others(me: usize, machines: usize) -> u64 {
    (u64::MAX >> (64 - machines)) & !(1 << me)
}

/// Waits until the trunks to all others work.
pub(crate) fn wait_until_up(status: &Status, others: u64, addresses: &[SocketAddr]) -> Result<(), String> {
    let began = instant_ns();
    while status.up() & others != others {
        if instant_ns() - began > UP.as_nanos() as u64 {
            let silent = (0..addresses.len()).filter(|machine| (others & !status.up()) >> machine & 1 != 0);
            let silent: Vec<String> = silent.map(|of| format!("machine {of} at {}", addresses[of])).collect();
            return Err(format!(
                "full datagrams do not go to and fro between this machine and {}: UDP must get through, with packets \
                 of 1,500 B",
                silent.join(", ")
            ));
        }
        std::thread::sleep(MOMENT);
    }
    Ok(())
}

/// The run is over: waits until everything on its way has arrived, unless `gives_up` returns true. Returns the
/// machines, as bits, from which something is still missing.
pub(crate) fn drain<P: Probe>(
    workers: &mut [Worker<'_, P>],
    board: &Board,
    status: &Status,
    others: u64,
    mut gives_up: impl FnMut() -> bool,
) -> u64 {
    let began = instant_ns();
    loop {
        // A machine that is done sends nothing more. What it has sent is delivered by the call below.
        let missing = others & !status.done() & !board.dead();
        if !several::push_held(workers) {
            status.close();
        }
        if missing == 0 || instant_ns() - began > LAST.as_nanos() as u64 || gives_up() {
            return missing;
        }
        std::thread::sleep(MOMENT);
    }
}

/// A warning if a trunk's one-way delay is too long for the least delay of links between machines; none otherwise.
pub(crate) fn slow_trunk(plan: &Plan, seen: &Seen) -> Option<String> {
    let way = Duration::from_ns(u64::from(seen.trip_us) * 1_000 / 2);
    let dilation = u64::from(plan.scenario.live.dilation);
    let needed = way.ps().div_ceil(plan.lookahead.ps().max(1));
    (needed > dilation).then(|| {
        format!(
            "live.dilation: one way between machines takes {way}, and promises go no further than the least delay of a \
             link, {}: at {dilation} the network has to stand still; {needed} would do",
            plan.lookahead
        )
    })
}
