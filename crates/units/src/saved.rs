//! State that can be written down and read back: checkpoints, and what a person inspects.
//!
//! [`Saved`] is derived beside `State`, field by field, in the order of a type's fields. Read back, a state is written
//! over one that was built from the same scenario: what is a setting, or stands behind an `Arc`, is built and not
//! stored. Values that a run has made since (a flow in a map, a packet in a queue) are made anew from
//! the file.
//!
//! Numbers take as many bytes as they need, seven bits each. Maps without an order are written in the order of their
//! keys. The same pass can draw a [`Tree`] instead, for eyes: names are those of types and fields.
//!
//! Bytes that are read are not trusted: a count is no more than the bytes that follow, and memory grows as items are
//! read.

mod containers;
mod plain;
mod tree;

use std::fmt;

pub use tree::Tree;

/// A state that can be written and read back.
pub trait Saved {
    /// Writes it.
    fn save(&self, to: &mut Saver);

    /// Reads over it what [`Saved::save`] has written of one that was built alike.
    ///
    /// # Errors
    /// If no such state has these bytes.
    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged>;

    /// Makes it from what [`Saved::save`] has written.
    ///
    /// # Errors
    /// If no such state has these bytes, or if it holds something that only a scenario can build.
    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged>
    where
        Self: Sized;
}

/// Why a saved state can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged(pub String);

impl fmt::Display for Damaged {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// Takes a state that is written.
#[derive(Debug, Default)]
pub struct Saver {
    bytes: Vec<u8>,
    tree: Option<tree::Drawing>,
    refusal: Option<String>,
}

impl Saver {
    /// One that draws a tree instead of bytes.
    pub fn drawing() -> Saver {
        Saver { tree: Some(tree::Drawing::default()), ..Saver::default() }
    }

    /// Whether this draws a tree.
    pub fn draws(&self) -> bool {
        self.tree.is_some()
    }

    /// The bytes.
    ///
    /// # Errors
    /// Why something can't be saved, in words.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        self.refusal.map_or(Ok(self.bytes), Err)
    }

    /// The tree.
    pub fn tree(self) -> Tree {
        self.tree.map_or(Tree::None, tree::Drawing::finish)
    }

    /// Something can't be saved. The first reason counts.
    pub fn refuse(&mut self, why: &str) {
        self.scalar(0, || Tree::Text(why.to_owned()));
        self.refusal.get_or_insert_with(|| why.to_owned());
    }

    /// A number.
    pub fn number(&mut self, number: u64) {
        self.scalar(number, || Tree::Number(number));
    }

    /// A value of 64 bits, and what a person sees of it.
    #[inline]
    pub fn scalar(&mut self, bits: u64, shown: impl FnOnce() -> Tree) {
        match &mut self.tree {
            Some(tree) => tree.add(shown()),
            None => self.write(bits),
        }
    }

    fn write(&mut self, mut bits: u64) {
        while bits >= 0x80 {
            self.bytes.push(bits as u8 | 0x80);
            bits >>= 7;
        }
        self.bytes.push(bits as u8);
    }

    /// A number that only a machine needs: a length, which alternative it is.
    #[inline]
    pub fn hidden(&mut self, number: u64) {
        if self.tree.is_none() {
            self.write(number);
        }
    }

    /// A value that a person need not see.
    pub fn unseen(&mut self, value: &impl Saved) {
        if self.tree.is_none() {
            value.save(self);
        }
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.hidden(bytes.len() as u64);
        match &mut self.tree {
            Some(tree) => tree.add(Tree::Text(String::from_utf8_lossy(bytes).into_owned())),
            None => self.bytes.extend(bytes),
        }
    }

    /// A type with fields begins.
    #[inline]
    pub fn begin(&mut self) {
        if let Some(tree) = &mut self.tree {
            tree.begin(true);
        }
    }

    /// A list begins.
    #[inline]
    pub fn begin_list(&mut self, len: usize) {
        match &mut self.tree {
            Some(tree) => tree.begin(false),
            None => self.write(len as u64),
        }
    }

    /// A field of this name follows.
    #[inline]
    pub fn field(&mut self, name: &'static str) {
        if let Some(tree) = &mut self.tree {
            tree.name(name.to_owned());
        }
    }

    /// The type with fields, or the list, ends.
    #[inline]
    pub fn end(&mut self) {
        if let Some(tree) = &mut self.tree {
            tree.end();
        }
    }

    /// An alternative of an enum: its number, and what it is called.
    #[inline]
    pub fn variant(&mut self, tag: u64, name: &'static str, has_fields: bool) {
        match &mut self.tree {
            None => self.write(tag),
            Some(tree) if has_fields => {
                tree.begin(true);
                tree.name(name.to_owned());
            }
            Some(tree) => tree.add(Tree::Text(name.to_owned())),
        }
    }

    /// One that draws a tree, in which packets stand where their slots are named: by slot, the one behind it, and what
    /// is seen of it.
    pub fn drawing_with(slots: Vec<(u32, Tree)>) -> Saver {
        Saver { tree: Some(tree::Drawing::with(slots)), ..Saver::default() }
    }

    /// The packet in a slot, or all of a list that begins there. Returns whether this draws; bytes have the slot alone,
    /// and nothing of a list.
    pub fn chained(&mut self, slot: u32, all: bool) -> bool {
        match &mut self.tree {
            Some(tree) => tree.chained(slot, all),
            None if !all => self.write(slot.into()),
            None => {}
        }
        self.tree.is_some()
    }

    /// The drawing, if this draws.
    pub(crate) fn drawn(&mut self) -> Option<&mut tree::Drawing> {
        self.tree.as_mut()
    }
}

/// Reads a state.
#[derive(Debug)]
pub struct Loader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Names that live as long as the program.
    texts: Vec<&'static str>,
}

impl<'a> Loader<'a> {
    /// Of these bytes.
    pub fn new(bytes: &'a [u8]) -> Loader<'a> {
        Loader { bytes, at: 0, texts: Vec::new() }
    }

    /// That they are not what they should be.
    pub fn damaged(&self, what: &str) -> Damaged {
        Damaged(format!("{what}, {} bytes into its state", self.at))
    }

    /// The next number.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Damaged> {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let &byte = self.bytes.get(self.at).ok_or_else(|| self.damaged("it ends too early"))?;
            self.at += 1;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
            if shift > 63 {
                return Err(self.damaged("a number is too long"));
            }
        }
    }

    /// How many items follow, each of at least a byte.
    pub fn count(&mut self) -> Result<usize, Damaged> {
        let count = self.number()?;
        let left = (self.bytes.len() - self.at) as u64;
        if count > left { Err(self.damaged("more items than bytes")) } else { Ok(count as usize) }
    }

    /// Bytes as they are.
    pub fn raw(&mut self) -> Result<&'a [u8], Damaged> {
        let count = self.count()?;
        self.at += count;
        Ok(&self.bytes[self.at - count..self.at])
    }

    /// A text that lives as long as the program.
    pub fn text(&mut self) -> Result<&'static str, Damaged> {
        let text = std::str::from_utf8(self.raw()?).map_err(|_| self.damaged("a name is no text"))?;
        if let Some(known) = self.texts.iter().find(|known| **known == text) {
            return Ok(known);
        }
        let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
        self.texts.push(kept);
        Ok(kept)
    }

    /// Where it has come to.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Goes back there.
    pub fn back_to(&mut self, place: usize) {
        self.at = place;
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Something that only a scenario can build is to be made.
    pub fn built<T>(&self, what: &str) -> Result<T, Damaged> {
        Err(Damaged(format!("{what} is built from a scenario, and was not built here")))
    }
}

#[cfg(test)]
mod tests;
