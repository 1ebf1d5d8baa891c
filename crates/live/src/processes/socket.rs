//! The messages of processes over a Unix socket: each with its length in front, and file descriptors.

use std::fs::File;
use std::io::{self, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::mail::{Connection, Over};
use crate::maze::notes::NOTE_BYTES_MAX;
use crate::maze::wire::{self, Broken};

/// The longest message: the words of a process on a very long run.
const MESSAGE_BYTES_MAX: u64 = 16 << 30;

pub fn send(mut to: &UnixStream, message: &[u8]) -> io::Result<()> {
    to.write_all(&(message.len() as u64).to_le_bytes())?;
    to.write_all(message)
}

pub fn receive(mut from: &UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MESSAGE_BYTES_MAX {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    // Nothing is reserved for what is only said to come.
    let mut message = Vec::new();
    from.take(length).read_to_end(&mut message)?;
    if message.len() as u64 == length { Ok(message) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

pub fn send_file(to: &UnixStream, file: &File) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(to, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub fn receive_file(from: &UnixStream) -> io::Result<File> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(from, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files.flatten().next().map(File::from).ok_or_else(|| io::Error::other("a message without a file"))
}

/// Whether the process at the other end is gone.
pub fn is_gone(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::RDHUP)
}

/// The stream as a connection for notes.
pub fn connection(stream: UnixStream) -> io::Result<Connection> {
    let (mut from, mut to) = (BufReader::new(stream.try_clone()?), stream.try_clone()?);
    Ok(Connection {
        hear: Box::new(move |note| match wire::read(&mut from, NOTE_BYTES_MAX, note, || ()) {
            Ok(()) => Ok(!from.buffer().is_empty()),
            Err(Broken::Gone) => Err(Over::Closed),
            Err(broken) => Err(Over::Wrong(broken.to_string())),
        }),
        say: Box::new(move |note| match note {
            Some(note) => wire::write(&mut to, note),
            None => to.shutdown(Shutdown::Write),
        }),
        // If that can't be, it is shut.
        shut: Box::new(move || _ = stream.shutdown(Shutdown::Both)),
    })
}
