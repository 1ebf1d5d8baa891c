//! The header of Harmony's packets.

use bytemuck::{Pod, Zeroable};
use node::layout::{Bits, Field, Layout, Message, Shown};
use node::wire::{Malformed, Reader, Writer};
use node::{Agreement, Walk};
use units::HostId;

use super::SLOTS_MAX;

/// What a packet says (section 3.1, failures 3.2). All but data are control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// Sender to receiver: a message has arrived.
    Request {
        /// The sender's attempt at carrying it, see [`Reservation::attempt`].
        #[state(turn_at(walk.ends().0.0, "attempt"))]
        attempt: u16,
        /// Length of the message.
        length: u64,
    },
    /// Receiver to sender: a slot for the message; each switch on its path reserves a virtual link.
    Rsvp(Rsvp),
    /// A part of the message.
    Data(Data),
    /// Sender to receiver, after the last data of a slot: slot and virtual links are free.
    Complete {
        /// What is free.
        #[state(given(&walk.ends()))]
        reservation: Reservation,
        /// Message bytes that have been sent in the slot.
        sent: u64,
        /// Nothing of the message is left to send.
        last: bool,
    },
    /// Receiver to sender, also a *complete* in the paper: every byte has arrived.
    Delivered,
    /// Sender or switch to receiver: the rsvp is refused; slot and virtual links are free.
    Reject {
        /// What is free.
        #[state(given(&walk.ends()))]
        reservation: Reservation,
        /// How much is refused with it.
        what: Rejected,
    },
    /// Receiver or switch to sender, also a *reject* in the paper: the message is refused.
    Refusal {
        /// The sender's attempt that is refused.
        #[state(turn_at(walk.ends().1.0, "attempt"))]
        attempt: u16,
        /// For good. A switch's refusal is not, where the receiver tries again.
        conclusive: bool,
    },
    /// Receiver to sender: an expected packet is missing. On the path of a slot that has ended it frees virtual links
    /// too. Along the path of a slot that still delivers it names that slot.
    Failure(#[state(given(&(walk.ends().1, walk.ends().0)))] Reservation),
}

/// The name of what a receiver has reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
#[state(given((HostId, HostId)))]
pub struct Reservation {
    /// The sender's attempt at carrying the message that this serves, modulo 2^16: grants of an earlier attempt are
    /// void.
    #[state(turn_at(given.0.0, "attempt"))]
    pub attempt: u16,
    /// The receiver's own count of its reservations. In failures that are routed by tables it has no meaning.
    #[state(turn_at(given.1.0, slot_name(self.id)))]
    pub id: u32,
}

/// A slot that a receiver gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Rsvp {
    /// What it takes on its way.
    #[state(given(&(walk.ends().1, walk.ends().0)))]
    pub reservation: Reservation,
    /// What the slot is for.
    pub slot: Slot,
    /// Bytes of the message that are missing from `offset` on.
    #[state(rest(self.offset))]
    pub missing: u64,
    /// The first byte that is missing.
    #[state(when(matches!(self.slot, Slot::Main { .. }), _, sequence(1)))]
    pub offset: u64,
    /// The path so far from the receiver to the sender, as output ports like in [`node::Packet::label`].
    pub back: u64,
}

/// What a slot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Slot {
    /// The whole rest of the message.
    Main {
        /// If it is refused the message is rejected.
        conclusive: bool,
    },
    /// A part of the message, unless it turns out to be the only slot.
    Additional,
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// The slot by which it goes.
    #[state(given(&walk.ends()))]
    pub reservation: Reservation,
    /// Offset of its first byte in the message.
    #[state(sequence(1))]
    pub offset: u64,
    /// The rsvp's whole path.
    pub back: u64,
}

/// What is refused to a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Rejected {
    /// This slot, by a switch on its way. Another path may be free.
    Slot,
    /// This slot, since the sender has none, or its own link has no virtual link: no path is free.
    Full,
    /// The attempt that it serves: the sender has asked again since.
    Attempt,
    /// The message: it has ended at its sender, and no data of it will arrive.
    Message,
}

/// A header in a packet: the fields of all kinds as they follow each other on the wire. Those that a kind has no use
/// for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u8,
    /// How far the kind goes.
    conclusive: u8,
    attempt: u16,
    id: u32,
    bytes: u64,
    offset: u64,
    back: u64,
}

const REQUEST: u8 = 1;
const RSVP: u8 = 2;
const DATA: u8 = 3;
const COMPLETE: u8 = 4;
const DELIVERED: u8 = 5;
const REJECT: u8 = 6;
const REFUSAL: u8 = 7;
const FAILURE: u8 = 8;

/// Values of `conclusive`, by kind: of rsvps whose refusal rejects the message, of refusals of it, of rejects of an
/// attempt, and of the last completes.
const CONCLUSIVE: u8 = 1;
/// Of rsvps.
const ADDITIONAL: u8 = 2;
/// Of rejects of a message.
const ENDED: u8 = 2;
/// Of rejects of a slot for which no path is free.
const FULL: u8 = 3;

/// Names of what a receiver counts, by slot. From some slot on they share one.
const SLOTS: [&str; 16] = [
    "slot 0", "slot 1", "slot 2", "slot 3", "slot 4", "slot 5", "slot 6", "slot 7", "slot 8", "slot 9", "slot 10",
    "slot 11", "slot 12", "slot 13", "slot 14", "slot 15",
];

impl Reservation {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let Reservation { attempt, id } = self;
        Packed { kind, attempt, id, ..Packed::zeroed() }
    }
}

impl Rsvp {
    #[inline]
    fn pack(self) -> Packed {
        let Rsvp { reservation, slot, missing, offset, back } = self;
        let conclusive = match slot {
            Slot::Main { conclusive } => u8::from(conclusive),
            Slot::Additional => ADDITIONAL,
        };
        Packed { conclusive, bytes: missing, offset, back, ..reservation.pack(RSVP) }
    }
}

impl Rejected {
    #[inline]
    fn of(conclusive: u8) -> Rejected {
        match conclusive {
            0 => Rejected::Slot,
            ENDED => Rejected::Message,
            FULL => Rejected::Full,
            _ => Rejected::Attempt,
        }
    }
}

/// The name of a slot of a receiver, by the number of a reservation.
pub(super) fn slot_name(id: u32) -> &'static str {
    SLOTS.get((id % SLOTS_MAX) as usize).copied().unwrap_or("slots")
}

/// What is missing falls by as much as the offset rises.
pub(super) fn visit_missing(walk: &mut Walk, offset: &mut u64, missing: &mut u64) {
    let end = *offset + *missing;
    walk.same(end);
    walk.sequence(walk.flow, 1, offset);
    *missing = end - *offset;
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        let of = |kind| Packed { kind, ..Packed::zeroed() };
        match self {
            Header::Request { attempt, length } => Packed { attempt, bytes: length, ..of(REQUEST) },
            Header::Rsvp(rsvp) => rsvp.pack(),
            Header::Data(Data { reservation, offset, back }) => Packed { offset, back, ..reservation.pack(DATA) },
            Header::Complete { reservation, sent, last } => {
                Packed { conclusive: u8::from(last), bytes: sent, ..reservation.pack(COMPLETE) }
            }
            Header::Delivered => of(DELIVERED),
            Header::Reject { reservation, what } => {
                let conclusive = match what {
                    Rejected::Slot => 0,
                    Rejected::Attempt => CONCLUSIVE,
                    Rejected::Message => ENDED,
                    Rejected::Full => FULL,
                };
                Packed { conclusive, ..reservation.pack(REJECT) }
            }
            Header::Refusal { attempt, conclusive } => {
                Packed { attempt, conclusive: u8::from(conclusive), ..of(REFUSAL) }
            }
            Header::Failure(reservation) => reservation.pack(FAILURE),
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, conclusive: far, attempt, id, bytes, offset, back } = packed;
        let (reservation, conclusive) = (Reservation { attempt, id }, far == CONCLUSIVE);
        match kind {
            REQUEST => Header::Request { attempt, length: bytes },
            RSVP => {
                let slot = if far == ADDITIONAL { Slot::Additional } else { Slot::Main { conclusive } };
                Header::Rsvp(Rsvp { reservation, slot, missing: bytes, offset, back })
            }
            COMPLETE => Header::Complete { reservation, sent: bytes, last: conclusive },
            DELIVERED => Header::Delivered,
            REJECT => Header::Reject { reservation, what: Rejected::of(far) },
            REFUSAL => Header::Refusal { attempt, conclusive },
            FAILURE => Header::Failure(reservation),
            _ => Header::Data(Data { reservation, offset, back }),
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, conclusive, attempt, id, bytes, offset, back } = self.pack();
        to.bytes(&[kind, conclusive]);
        to.u16(attempt);
        to.u32(id);
        for word in [bytes, offset, back] {
            to.u64(word);
        }
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("Harmony header: shorter than 32 bytes");
        let ([kind, conclusive], attempt, id) = (from.array()?, from.u16()?, from.u32()?);
        let (bytes, offset, back) = (from.u64()?, from.u64()?, from.u64()?);
        if !(REQUEST..=FAILURE).contains(&kind) {
            return Err(Malformed { what: "Harmony kind" });
        }
        if conclusive > if kind == REJECT { FULL } else { ADDITIONAL } {
            return Err(Malformed { what: "Harmony header: conclusive is none of 0, 1 and 2, nor 3 in a reject" });
        }
        Ok(Header::unpack(Packed { kind, conclusive, attempt, id, bytes, offset, back }))
    }

    fn agreement(self) -> Option<Agreement> {
        let reserves = !matches!(self, Header::Data(_) | Header::Delivered);
        reserves.then_some(Agreement::Reservation)
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

/// How far the kind goes.
const FAR: Bits = Bits::u8(1);
const YES_IF_CONCLUSIVE: Shown = Shown::Word(&[(0, "false"), (CONCLUSIVE as u64, "true"), (2, "false")]);

const ATTEMPT: Field = Field::number("attempt", Bits::u16(2));
const OF_RESERVATION: Field = Field::number("reservation attempt", Bits::u16(2));
const ID: Field = Field::number("id", Bits::u32(4));
const MISSING: Field = Field::number("missing", Bits::u64(8));
const OFFSET: Field = Field::number("offset", Bits::u64(16));
const BACK: Field = Field::number("back", Bits::u64(24));
const OF_MAIN: Field = Field::new("slot conclusive", FAR, YES_IF_CONCLUSIVE);
const OF_ADDITIONAL: Field = Field::new("slot", FAR, Shown::Word(&[(ADDITIONAL as u64, "Additional")]));
const WHAT: Field = Field::new(
    "what",
    FAR,
    Shown::Word(&[(0, "Slot"), (CONCLUSIVE as u64, "Attempt"), (ENDED as u64, "Message"), (FULL as u64, "Full")]),
);

const LAYOUT: &[Message] = &[
    Message::of_kind("Request", REQUEST, &[ATTEMPT, Field::number("length", Bits::u64(8))]),
    Message::of_kind("Rsvp", RSVP, &[OF_RESERVATION, ID, OF_ADDITIONAL, MISSING, OFFSET, BACK])
        .and(FAR.are(ADDITIONAL as u64)),
    Message::of_kind("Rsvp", RSVP, &[OF_RESERVATION, ID, OF_MAIN, MISSING, OFFSET, BACK]),
    Message::of_kind("Data", DATA, &[OF_RESERVATION, ID, OFFSET, BACK]),
    Message::of_kind(
        "Complete",
        COMPLETE,
        &[OF_RESERVATION, ID, Field::number("sent", Bits::u64(8)), Field::new("last", FAR, YES_IF_CONCLUSIVE)],
    ),
    Message::of_kind("Delivered", DELIVERED, &[]),
    Message::of_kind("Reject", REJECT, &[OF_RESERVATION, ID, WHAT]),
    Message::of_kind("Refusal", REFUSAL, &[ATTEMPT, Field::new("conclusive", FAR, YES_IF_CONCLUSIVE)]),
    Message::of_kind("Failure", FAILURE, &[ATTEMPT, ID]),
];

#[cfg(test)]
pub(super) mod tests;
