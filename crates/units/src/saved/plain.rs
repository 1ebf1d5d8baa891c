//! How numbers, quantities and random streams are written.

use std::num::NonZeroU32;
use std::ops::Range;

use super::{Damaged, Loader, Saved, Saver, Tree};
use crate::{Bytes, Duration, FlowId, HostId, LinkId, NodeId, PerByte, PortId, Rate, Stream, SwitchId, Time};

macro_rules! plain {
    ($($kind:ty: $value:ident => $bits:expr, $shown:expr, $bits_back:ident => $back:expr;)*) => {$(
        impl Saved for $kind {
            #[inline]
            fn save(&self, to: &mut Saver) {
                let $value = *self;
                to.scalar($bits, || $shown);
            }

            #[inline]
            fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
                *self = Saved::make(from)?;
                Ok(())
            }

            #[inline]
            fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
                let $bits_back = from.number()?;
                $back.ok_or_else(|| from.damaged("a number is out of range"))
            }
        }
    )*};
}

plain! {
    bool: value => u64::from(value), Tree::Bool(value), bits => (bits < 2).then_some(bits == 1);
    u8: value => value.into(), Tree::Number(value.into()), bits => u8::try_from(bits).ok();
    u16: value => value.into(), Tree::Number(value.into()), bits => u16::try_from(bits).ok();
    u32: value => value.into(), Tree::Number(value.into()), bits => u32::try_from(bits).ok();
    u64: value => value, Tree::Number(value), bits => Some(bits);
    usize: value => value as u64, Tree::Number(value as u64), bits => usize::try_from(bits).ok();
    NonZeroU32: value => value.get().into(), Tree::Number(value.get().into()), bits => nonzero(bits);
    i64: value => zigzag(value), Tree::Float(value as f64), bits => Some(unzigzag(bits));
    i32: value => zigzag(value.into()), Tree::Float(value.into()), bits => i32::try_from(unzigzag(bits)).ok();
    f64: value => value.to_bits(), shown(value), bits => Some(f64::from_bits(bits));
    Bytes: value => value.get(), Tree::Text(value.to_string()), bits => Some(Bytes(bits));
    Duration: value => value.ps(), Tree::Text(value.to_string()), bits => Some(Duration::from_ps(bits));
    Time: value => value.ps(), time(value), bits => Some(Time::from_ps(bits));
    Rate: value => value.bps(), Tree::Text(value.to_string()), bits => Some(Rate::from_bps(bits));
    FlowId: value => value.0.into(), id(value.0), bits => u32::try_from(bits).ok().map(FlowId);
    HostId: value => value.0.into(), id(value.0), bits => u32::try_from(bits).ok().map(HostId);
    LinkId: value => value.0.into(), id(value.0), bits => u32::try_from(bits).ok().map(LinkId);
    NodeId: value => value.0.into(), id(value.0), bits => u32::try_from(bits).ok().map(NodeId);
    PortId: value => value.0.into(), id(value.0), bits => u32::try_from(bits).ok().map(PortId);
    SwitchId: value => value.0.into(), id(value.0), bits => u32::try_from(bits).ok().map(SwitchId);
}

fn nonzero(bits: u64) -> Option<NonZeroU32> {
    u32::try_from(bits).ok().and_then(NonZeroU32::new)
}

/// Small numbers of either sign as small numbers.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(bits: u64) -> i64 {
    (bits >> 1) as i64 ^ -((bits & 1) as i64)
}

fn shown(value: f64) -> Tree {
    if value.is_finite() { Tree::Float(value) } else { Tree::Text(value.to_string()) }
}

fn time(value: Time) -> Tree {
    if value == Time::MAX { Tree::None } else { Tree::Text(value.to_string()) }
}

fn id(value: u32) -> Tree {
    if value == u32::MAX { Tree::None } else { Tree::Number(value.into()) }
}

impl Saved for u128 {
    fn save(&self, to: &mut Saver) {
        match to.drawn() {
            Some(tree) => tree.add(Tree::Text(self.to_string())),
            None => [*self as u64, (*self >> 64) as u64].save(to),
        }
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        *self = Saved::make(from)?;
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<u128, Damaged> {
        Ok(u128::from(from.number()?) | u128::from(from.number()?) << 64)
    }
}

impl Saved for PerByte {
    fn save(&self, to: &mut Saver) {
        match to.drawn() {
            Some(tree) => tree.add(Tree::Text(format!("{} a byte", self.transmit(1)))),
            None => self.saved().save(to),
        }
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        *self = Saved::make(from)?;
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<PerByte, Damaged> {
        Ok(PerByte::from_saved(Saved::make(from)?))
    }
}

/// A name.
impl Saved for &'static str {
    fn save(&self, to: &mut Saver) {
        to.raw(self.as_bytes());
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        *self = from.text()?;
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<&'static str, Damaged> {
        from.text()
    }
}

impl Saved for String {
    fn save(&self, to: &mut Saver) {
        to.raw(self.as_bytes());
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        *self = Saved::make(from)?;
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<String, Damaged> {
        let bytes = from.raw()?.to_vec();
        String::from_utf8(bytes).map_err(|_| from.damaged("a name is no text"))
    }
}

impl<T: Saved> Saved for Range<T> {
    fn save(&self, to: &mut Saver) {
        self.start.save(to);
        self.end.save(to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        self.start.load(from)?;
        self.end.load(from)
    }

    fn make(from: &mut Loader<'_>) -> Result<Range<T>, Damaged> {
        Ok(T::make(from)?..T::make(from)?)
    }
}

/// Where the stream is. The purpose of its last draw is asked only while a run skips repetitions.
impl Saved for Stream {
    fn save(&self, to: &mut Saver) {
        match to.drawn() {
            Some(tree) => tree.add(Tree::Text(format!("random stream {:x}", self.clone().bits()))),
            None => self.saved().save(to),
        }
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        *self = Saved::make(from)?;
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<Stream, Damaged> {
        Ok(Stream::from_saved(Saved::make(from)?))
    }
}
