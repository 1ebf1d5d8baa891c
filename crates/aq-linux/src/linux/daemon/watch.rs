//! News: of folders by inotify, of devices by netlink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};

use super::super::netlink;
use super::super::netns::{file, within};

/// Folders whose entries are watched.
#[derive(Debug)]
pub struct Watch {
    inotify: OwnedFd,
    folders: BTreeMap<i32, PathBuf>,
}

impl Watch {
    /// Watches nothing yet.
    pub fn new() -> Result<Watch, String> {
        let inotify =
            init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(|error| format!("inotify: {error}"))?;
        Ok(Watch { inotify, folders: BTreeMap::new() })
    }

    /// The descriptor to wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Watches these folders and no others; of one that is not there, the nearest above it.
    pub fn set(&mut self, folders: BTreeSet<PathBuf>) {
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        let mut now = BTreeMap::new();
        for folder in folders {
            // A folder that was made again is another one, so each is added each time.
            for folder in folder.ancestors() {
                let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                if let Ok(number) = add_watch(&self.inotify, folder, flags) {
                    now.insert(number, folder.to_owned());
                    break;
                }
            }
        }
        for number in self.folders.keys().filter(|number| !now.contains_key(number)) {
            let _ = remove_watch(&self.inotify, *number);
        }
        self.folders = now;
    }

    /// Takes the news there is. Whether it is of one of these files.
    pub fn take(&mut self, files: &BTreeSet<PathBuf>) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 8_192];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut any = false;
        while let Ok(event) = reader.next() {
            let Some(name) = event.file_name() else { continue };
            let Some(folder) = self.folders.get(&event.wd()) else { continue };
            let folder = if folder == Path::new(".") { Path::new("") } else { folder };
            let path = folder.join(std::ffi::OsStr::from_bytes(name.to_bytes()));
            // Whole files only. Kubernetes gives a folder of configuration another content by one link, "..data".
            let whole = event.events().intersects(ReadFlags::CLOSE_WRITE | ReadFlags::MOVED_TO);
            any |= whole && (files.contains(&path) || name.to_bytes().starts_with(b".."));
        }
        any
    }
}

/// News of the devices of a namespace.
///
/// A socket keeps its namespace alive. So one of a namespace whose name is gone is closed, and then its devices go.
#[derive(Debug)]
pub struct Namespace {
    socket: OwnedFd,
    /// Which namespace has the name: another one has another file.
    file: Option<(u64, u64)>,
}

impl Namespace {
    /// This process's own.
    pub fn own() -> Result<Namespace, String> {
        Ok(Namespace { socket: netlink::news()?, file: None })
    }

    /// The one that has a name now; none if there is none. That it can't be entered is no sign that it is gone.
    pub fn named(name: &str, before: Option<Namespace>) -> Result<Option<Namespace>, String> {
        let Ok(found) = fs::metadata(file(name)) else { return Ok(None) };
        let now = Some((found.dev(), found.ino()));
        if let Some(before) = before.filter(|before| before.file == now) {
            return Ok(Some(before));
        }
        let socket = within(Some(name), netlink::news)??;
        Ok(Some(Namespace { socket, file: now }))
    }

    /// The descriptor to wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes the news there is; whether there was any.
    pub fn drain(&self) -> bool {
        netlink::drain(&self.socket)
    }
}
