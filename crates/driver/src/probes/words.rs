//! How probes write what they saw for another process, and read it back. What they read is not trusted.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use fabric::Fabric;
use hdrhistogram::Histogram;
use node::Saved;
use node::saved::{Damaged, Loader, Saver};
use node::wire::{Malformed, Reader, Writer};
use units::{PortId, SwitchId, Time};

use crate::NodePort;

/// No count may be greater, so that sums fit.
const MOST: u64 = 1 << 60;

/// The longest name or text that is sent.
const TEXT_BYTES_MAX: usize = 2_000;

/// The most names of states.
const NAMES_MAX: usize = 1_000;

/// A count that can be.
pub(super) fn count(from: &mut Reader<'_>) -> Result<u64, Malformed> {
    let number = from.u64()?;
    (number <= MOST).then_some(number).ok_or(Malformed { what: "number of a probe" })
}

pub(super) fn time(from: &mut Reader<'_>) -> Result<Time, Malformed> {
    count(from).map(Time::from_ps)
}

/// How many, and each.
pub(super) fn pack_each<T>(
    to: &mut Writer<'_>,
    all: impl Iterator<Item = T>,
    mut pack: impl FnMut(&mut Writer<'_>, T),
) {
    let mut bytes = Vec::new();
    let mut many = 0u64;
    let mut each = Writer::new(&mut bytes);
    for one in all {
        pack(&mut each, one);
        many += 1;
    }
    to.u64(many);
    to.bytes(&bytes);
}

pub(super) fn pack_place(to: &mut Writer<'_>, place: NodePort) {
    to.u32(place.id);
    to.u8(place.is_switch.into());
    to.u32(place.port.0);
}

/// A port that there is.
pub(super) fn place(fabric: &Fabric, from: &mut Reader<'_>) -> Result<NodePort, Malformed> {
    let place = NodePort { id: from.u32()?, is_switch: from.u8()? != 0, port: PortId(from.u32()?) };
    let nodes = if place.is_switch { fabric.switches } else { fabric.hosts };
    let ports = || match place.is_switch {
        true => fabric.ports[fabric.switch_node(SwitchId(place.id)).index()].len(),
        false => fabric.ports[fabric.host_node(units::HostId(place.id)).index()].len(),
    };
    let known = place.id < nodes && place.port.index() < ports();
    known.then_some(place).ok_or(Malformed { what: "port of a probe" })
}

pub(super) fn pack_text(to: &mut Writer<'_>, text: &str) {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    to.u16(end as u16);
    to.bytes(&text.as_bytes()[..end]);
}

pub(super) fn text<'a>(from: &mut Reader<'a>) -> Result<&'a str, Malformed> {
    let wrong = Malformed { what: "text of a probe" };
    let bytes = usize::from(from.u16()?);
    if bytes > TEXT_BYTES_MAX {
        return Err(wrong);
    }
    std::str::from_utf8(from.bytes(bytes)?).map_err(|_| wrong)
}

/// A name that lives as long as the program: there are few, and each is kept once.
pub(super) fn name(names: &mut BTreeSet<&'static str>, from: &mut Reader<'_>) -> Result<&'static str, Malformed> {
    let name = text(from)?;
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    if names.len() >= NAMES_MAX {
        return Err(Malformed { what: "names of a probe: too many" });
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    Ok(kept)
}

/// How long packets have waited: a histogram of three digits that can be saved.
#[derive(Clone, Debug)]
pub(super) struct Waits(Histogram<u64>);

impl Default for Waits {
    fn default() -> Waits {
        Waits(Histogram::new(3).expect("three digits are few enough"))
    }
}

impl Deref for Waits {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Histogram<u64> {
        &self.0
    }
}

impl DerefMut for Waits {
    fn deref_mut(&mut self) -> &mut Histogram<u64> {
        &mut self.0
    }
}

impl Saved for Waits {
    fn save(&self, to: &mut Saver) {
        let buckets = self.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        buckets.collect::<Vec<(u64, u64)>>().save(to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        *self = Saved::make(from)?;
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<Waits, Damaged> {
        let mut waits = Waits::default();
        for (value, times) in <Vec<(u64, u64)>>::make(from)? {
            waits.record_n(value.min(MOST), times).map_err(|_| from.damaged("a histogram has no room"))?;
        }
        Ok(waits)
    }
}

/// All of a histogram: a value of each bucket, and how often it was.
pub(super) fn pack_histogram(to: &mut Writer<'_>, histogram: &Histogram<u64>) {
    pack_each(to, histogram.iter_recorded(), |to, bucket| {
        to.u64(bucket.value_iterated_to());
        to.u64(bucket.count_at_value());
    });
}

pub(super) fn add_histogram(histogram: &mut Histogram<u64>, from: &mut Reader<'_>) -> Result<(), Malformed> {
    for _ in 0..from.u64()? {
        let (value, times) = (count(from)?, count(from)?);
        histogram.record_n(value, times).map_err(|_| Malformed { what: "histogram of a probe" })?;
    }
    Ok(())
}
