//! Memory that several processes see.
//!
//! It consists of atomic numbers only. So a process that writes anything at any time can make another read wrong
//! numbers, and nothing worse: there are no references into such memory. Its length is sealed, because a process that
//! shortened it would crash others. Memory of another process that must only be read is mapped read-only.

#[cfg(target_os = "linux")]
use std::{fs::File, io};

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

#[cfg(target_os = "linux")]
use rustix::mm::{MapFlags, ProtFlags};

/// Two cache lines of numbers: processors fetch lines by pairs.
#[derive(Default)]
#[repr(C, align(128))]
pub(crate) struct Line(pub [AtomicU64; WORDS]);

/// Numbers in a [`Line`].
pub(crate) const WORDS: usize = 16;

/// Lines of this process alone, or of several.
pub(crate) enum Lines {
    Own(Box<[Line]>),
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has sealed files in memory"))]
    Shared(Shared),
}

impl Lines {
    /// Of this process alone.
    pub fn own(count: usize) -> Lines {
        Lines::Own(std::iter::repeat_with(Line::default).take(count).collect())
    }
}

impl Deref for Lines {
    type Target = [Line];

    #[inline]
    fn deref(&self) -> &[Line] {
        match self {
            Lines::Own(lines) => lines,
            Lines::Shared(lines) => lines,
        }
    }
}

/// Lines of a file in memory.
pub(crate) struct Shared {
    first: NonNull<Line>,
    count: usize,
}

/// A file in memory with room for this many lines, all zero, whose length nobody can change any more.
#[cfg(target_os = "linux")]
pub(crate) fn create(count: usize) -> io::Result<File> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    let file = File::from(memfd_create("clearway", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len((count * size_of::<Line>()) as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// The same file, for whoever may only read it.
#[cfg(target_os = "linux")]
pub(crate) fn read_only(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl Shared {
    /// Maps lines of a file that [`create`] made.
    ///
    /// # Errors
    /// Where it is shorter, its length is not sealed, or the system refuses.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "the standard library has no shared memory")]
    pub fn map(file: &File, count: usize, writable: bool) -> io::Result<Shared> {
        use rustix::fs::{SealFlags, fcntl_get_seals};
        let bytes = count * size_of::<Line>();
        let sealed = fcntl_get_seals(file)?.contains(SealFlags::SHRINK);
        if count == 0 || file.metadata()?.len() < bytes as u64 || !sealed {
            return Err(io::Error::other("shared memory is too short, or may be shortened"));
        }
        let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: with no address given the system picks one where nothing is, and the file is as long as that.
        let first = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0)? };
        let first = NonNull::new(first.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Shared { first, count })
    }
}

impl Deref for Shared {
    type Target = [Line];

    #[inline]
    #[expect(unsafe_code, reason = "the standard library has no shared memory")]
    fn deref(&self) -> &[Line] {
        // SAFETY: mapped as long as this lives, at a page's beginning and so aligned, and so long; that is sealed.
        // Every bit pattern is an atomic number, and others may change those at any time.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl Drop for Shared {
    #[expect(unsafe_code, reason = "the standard library has no shared memory")]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and whoever borrowed from it is gone.
        let _ = unsafe { rustix::mm::munmap(self.first.as_ptr().cast(), self.count * size_of::<Line>()) };
    }
}

#[expect(unsafe_code, reason = "a pointer is neither by itself")]
// SAFETY: nothing of it belongs to a thread, and all that it gives is references to atomics.
unsafe impl Send for Shared {}
#[expect(unsafe_code, reason = "a pointer is neither by itself")]
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[cfg(all(test, target_os = "linux"))]
mod tests;
