//! Prometheus text over HTTP, to any number of scrapers at once, by one thread that waits for none of them.
//!
//! A scraper that sends nothing or reads nothing keeps its connection for some seconds, and delays no other. Of more
//! connections than there is room for, the oldest goes. There is one answer to every GET, so a library for HTTP would
//! add more than it takes away.

#![allow(clippy::disallowed_methods, reason = "a process beside the kernel works in real time")]

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};

/// Connections at a time.
const ROOM: usize = 256;
/// How long a scraper may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a request.
const REQUEST: usize = 8_192;

/// Where text is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A port of this machine's own.
    Loopback(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(format!("\"{text}\" is no address: a socket's path begins with /"));
            }
            return Ok(Address::Unix(PathBuf::from(path)));
        }
        let address: SocketAddr = text.parse().map_err(|_| {
            format!("\"{text}\" is no address; write it like \"127.0.0.1:9121\" or \"unix:/run/clearway-aq/metrics\"")
        })?;
        if !address.ip().is_loopback() {
            return Err(format!(
                "\"{text}\" can be reached from elsewhere, and there is no password; write a loopback address, and \
                 put a proxy before it"
            ));
        }
        Ok(Address::Loopback(address))
    }
}

/// A listening socket and its connections.
#[derive(Debug)]
pub struct Server {
    listener: OwnedFd,
    address: Address,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: OwnedFd,
    asked: Vec<u8>,
    answer: Option<Rc<Vec<u8>>>,
    sent: usize,
    since: Instant,
}

impl Server {
    /// Listens at an address.
    pub fn new(address: &Address) -> Result<Server, String> {
        let wrong = |error: std::io::Error| format!("{address:?}: {error}");
        let listener: OwnedFd = match address {
            Address::Loopback(address) => {
                let listener = TcpListener::bind(address).map_err(|error| format!("{address}: {error}"))?;
                listener.set_nonblocking(true).map_err(wrong)?;
                listener.into()
            }
            Address::Unix(path) => {
                // The socket of a killed process would keep the next from its place.
                if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
                    let _ = fs::remove_file(path);
                }
                let listener = UnixListener::bind(path).map_err(|error| format!("{}: {error}", path.display()))?;
                listener.set_nonblocking(true).map_err(wrong)?;
                listener.into()
            }
        };
        Ok(Server { listener, address: address.clone(), clients: Vec::new() })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The descriptors to wait for.
    pub fn waits(&self) -> Vec<PollFd<'_>> {
        let client = |client: &Client| match client.answer {
            Some(_) => PollFlags::OUT,
            None => PollFlags::IN,
        };
        let mut all = vec![PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN)];
        all.extend(self.clients.iter().map(|one| PollFd::from_borrowed_fd(one.stream.as_fd(), client(one))));
        all
    }

    /// When the next connection has taken too long.
    pub fn deadline(&self) -> Option<Instant> {
        self.clients.iter().map(|client| client.since + PATIENCE).min()
    }

    /// Does what can be done without waiting. `text` is asked for once for all that ask now.
    pub fn turn(&mut self, mut text: impl FnMut() -> Result<String, String>) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(stream) = accept_with(&self.listener, flags) {
            if self.clients.len() >= ROOM {
                self.clients.remove(0);
            }
            self.clients.push(Client { stream, asked: Vec::new(), answer: None, sent: 0, since: Instant::now() });
        }
        let mut made: Option<Rc<Vec<u8>>> = None;
        self.clients.retain_mut(|client| {
            if client.since.elapsed() > PATIENCE {
                return false;
            }
            if client.answer.is_none() {
                match client.read() {
                    Asked::More => return true,
                    Asked::Gone => return false,
                    Asked::Wrong => client.answer = Some(Rc::new(answer("405 Method Not Allowed", "only GET\n"))),
                    Asked::Text => {
                        let whole = made.get_or_insert_with(|| {
                            Rc::new(match text() {
                                Ok(body) => answer("200 OK", &body),
                                Err(why) => answer("500 Internal Server Error", &why),
                            })
                        });
                        client.answer = Some(whole.clone());
                    }
                }
            }
            client.write()
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            let _ = fs::remove_file(path);
        }
    }
}

/// Serves on a port of this machine until the process is killed. `text` is asked for whenever a scraper asks.
pub fn serve(port: u16, mut text: impl FnMut() -> Result<String, String>) -> Result<(), String> {
    let address = Address::Loopback(SocketAddr::from(([127, 0, 0, 1], port)));
    let mut server = Server::new(&address).map_err(|why| format!("--prometheus {port}: {why}"))?;
    loop {
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        match poll(&mut server.waits(), Some(&second)) {
            Ok(_) | Err(Errno::INTR) => server.turn(&mut text),
            Err(error) => return Err(format!("poll: {error}")),
        }
    }
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let kind = "text/plain; version=0.0.4";
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
    format!("{head}Connection: close\r\n\r\n{body}").into_bytes()
}

enum Asked {
    /// There is more to come.
    More,
    /// The connection is closed.
    Gone,
    /// No GET.
    Wrong,
    /// The text.
    Text,
}

impl Client {
    fn read(&mut self) -> Asked {
        let mut buffer = [0; 1_024];
        loop {
            match recv(self.fd(), &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Asked::Gone,
                Ok((read, _)) => self.asked.extend(buffer.get(..read).unwrap_or_default()),
                Err(Errno::AGAIN) => return Asked::More,
                Err(Errno::INTR) => {}
                Err(_) => return Asked::Gone,
            }
            if self.asked.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                return if self.asked.starts_with(b"GET ") { Asked::Text } else { Asked::Wrong };
            }
            if self.asked.len() > REQUEST {
                return Asked::Wrong;
            }
        }
    }

    /// Sends what the connection takes. False when all is sent, or nothing can be any more.
    fn write(&mut self) -> bool {
        let Some(answer) = self.answer.clone() else { return true };
        while let Some(left) = answer.get(self.sent..).filter(|left| !left.is_empty()) {
            match send(self.fd(), left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        false
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests;
