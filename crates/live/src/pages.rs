//! Payload: where the content of packets lies.
//!
//! A worker has pages, each with room for the largest packet. A host that makes a packet writes its content once, into
//! a page of its worker; after that only the page's owner changes. A worker keeps a packet's page beside the packet in
//! its pool. When a packet goes to another worker, its page goes with it, so that no byte is copied on the way.
//!
//! Code that drops a packet does not know about pages: the page stays beside the free slot of the pool until the next
//! packet uses that slot. Then, or when a host has read the content, a page of another worker returns to its worker.

use node::pool::PacketId;

/// Room for the content of one packet; empty for a packet without content.
#[derive(Debug, Default)]
pub(crate) struct Page {
    bytes: Box<[u8]>,
    /// The worker that owns the page.
    home: u32,
}

impl Page {
    fn is_none(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The first `bytes` of its content; none if the page is shorter.
    pub fn content(&self, bytes: usize) -> Option<&[u8]> {
        self.bytes.get(..bytes)
    }
}

/// The pages that a worker has.
pub(crate) struct Pages {
    me: u32,
    /// Room in a page, in bytes.
    room: usize,
    /// By the packet's slot in the pool.
    of: Vec<Page>,
    /// Free pages of this worker. The one that became free last is at the end: it may still be in the cache.
    spare: Vec<Page>,
    /// Free pages of other workers, until they are returned.
    foreign: Vec<Page>,
}

impl Pages {
    /// Of worker `me`, for packets with up to `room` bytes of content.
    pub fn new(me: usize, room: usize) -> Pages {
        Pages { me: me as u32, room: room.max(1), of: Vec::new(), spare: Vec::new(), foreign: Vec::new() }
    }

    /// Room in a page, in bytes.
    pub fn room(&self) -> usize {
        self.room
    }

    #[inline]
    fn place(&mut self, id: PacketId) -> &mut Page {
        if self.of.len() <= id.index() {
            self.of.resize_with(id.index() + 1, Page::default);
        }
        &mut self.of[id.index()]
    }

    /// Room for the content of a new packet, to be written.
    #[inline]
    pub fn fresh(&mut self, id: PacketId, bytes: usize) -> &mut [u8] {
        let me = self.me;
        let place = self.place(id);
        if place.is_none() || place.home != me {
            self.clear(id);
            let room = self.room;
            let spare = self.spare.pop();
            *self.place(id) = spare.unwrap_or_else(|| Page { bytes: vec![0; room].into(), home: me });
        }
        &mut self.of[id.index()].bytes[..bytes]
    }

    /// The content of a packet, if its page has that many bytes. The packet's slot in the pool may have been freed
    /// already.
    #[inline]
    pub fn content(&self, id: PacketId, bytes: usize) -> Option<&[u8]> {
        self.of.get(id.index())?.bytes.get(..bytes)
    }

    /// The same, to be changed at the packet's end.
    #[inline]
    pub fn content_mut(&mut self, id: PacketId, bytes: usize) -> Option<&mut [u8]> {
        self.of.get_mut(id.index())?.bytes.get_mut(..bytes)
    }

    /// Takes the page of a packet that goes elsewhere.
    #[inline]
    pub fn leave(&mut self, id: PacketId) -> Page {
        self.of.get_mut(id.index()).map(std::mem::take).unwrap_or_default()
    }

    /// A packet has arrived with its page.
    #[inline]
    pub fn come(&mut self, id: PacketId, page: Page) {
        self.clear(id);
        *self.place(id) = page;
    }

    /// The content of a packet has been read. A page of its own stays where it is, for the next packet there.
    #[inline]
    pub fn read(&mut self, id: PacketId) {
        if self.of.get(id.index()).is_some_and(|page| page.home != self.me) {
            self.clear(id);
        }
    }

    /// The content of a packet is not needed any more, or its place in the pool has another packet now.
    #[inline]
    pub fn clear(&mut self, id: PacketId) {
        if let Some(place) = self.of.get_mut(id.index())
            && !place.is_none()
        {
            let page = std::mem::take(place);
            self.free(page);
        }
    }

    /// A page comes back, or is not needed any more.
    #[inline]
    pub fn free(&mut self, page: Page) {
        if page.is_none() {
            // A packet without content had none.
        } else if page.home == self.me {
            self.spare.push(page);
        } else {
            self.foreign.push(page);
        }
    }

    /// The next free page that another worker owns, and that worker.
    #[inline]
    pub fn next_foreign(&mut self) -> Option<(usize, Page)> {
        self.foreign.pop().map(|page| (page.home as usize, page))
    }
}

#[cfg(test)]
mod tests;
