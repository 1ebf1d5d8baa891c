//! A UDP socket on loopback for every node.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::NodeId;

use crate::frame::FRAME_BYTES_MAX;

pub(crate) struct Sockets {
    sockets: Vec<UdpSocket>,
    addresses: Vec<SocketAddr>,
    nodes: BTreeMap<SocketAddr, NodeId>,
    buffer: Vec<u8>,
}

impl Sockets {
    /// One for each of `nodes` nodes, on ports that the system picks.
    pub fn bind(nodes: u32) -> io::Result<Sockets> {
        let mut sockets = Vec::new();
        let mut addresses = Vec::new();
        for _ in 0..nodes {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            addresses.push(socket.local_addr()?);
            sockets.push(socket);
        }
        let node = |(id, &address)| (address, NodeId::from(id));
        let nodes = addresses.iter().enumerate().map(node).collect();
        Ok(Sockets { sockets, addresses, nodes, buffer: vec![0; FRAME_BYTES_MAX] })
    }

    /// Where each node can be reached.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether the system took the datagram.
    pub fn send(&self, from: NodeId, to: NodeId, datagram: &[u8]) -> bool {
        let sent = self.sockets[from.index()].send_to(datagram, self.addresses[to.index()]);
        sent.is_ok_and(|count| count == datagram.len())
    }

    /// The next datagram for `node`, if there is one, and the node that it is from, if it is from one.
    pub fn receive(&mut self, node: NodeId) -> Option<(&[u8], Option<NodeId>)> {
        loop {
            match self.sockets[node.index()].recv_from(&mut self.buffer) {
                Ok((count, from)) => return Some((&self.buffer[..count], self.nodes.get(&from).copied())),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing there; or an error that a stranger's closed port left behind, and then the next look finds
                // what there is.
                Err(_) => return None,
            }
        }
    }

    /// Sleeps until a datagram is there for some node, `span` at most; those nodes go into `ready`.
    pub fn wait(&self, span: Duration, ready: &mut Vec<NodeId>) {
        ready.clear();
        let timeout = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
        let mut polled: Vec<PollFd<'_>> =
            self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        // Woken by a signal, or refused: the loop looks again, as after any sleep.
        if poll(&mut polled, Some(&timeout)).is_ok() {
            let woken = polled.iter().enumerate().filter(|(_, socket)| !socket.revents().is_empty());
            ready.extend(woken.map(|(node, _)| NodeId::from(node)));
        }
    }
}
