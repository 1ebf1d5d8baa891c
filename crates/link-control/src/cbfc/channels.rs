//! The counters of one port, for packets that it sends and for packets that it receives.

use node::packet::{CLASSES, flags};

use node::{Packet, Walk};

use super::frame::{COUNT, Frame};

/// State of all ports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    /// By class: its virtual channel.
    pub vc_of: [Option<u8>; CLASSES],
    /// Bytes of a credit.
    pub credit_bytes: u32,
    /// Credits of a full-size packet.
    pub full_packet: u16,
    /// Credits that are freed before an update is sent.
    pub update: u64,
}

impl Params {
    fn credits(&self, packet: &Packet) -> u16 {
        u32::from(packet.wire_bytes).div_ceil(self.credit_bytes) as u16
    }
}

/// A port's part of CBFC, in a switch as in a NIC. On a link, a packet carries the number of its channel plus 1, or 0
/// if it has no credits, in the field for the queue that it comes from.
#[derive(node::State)]
pub(super) struct Channels {
    #[state(built("settings"))]
    params: Params,
    /// By virtual channel: what the neighbour has room for.
    out: Vec<Sender>,
    /// By virtual channel: the room here.
    into: Vec<Receiver>,
    /// Credits of each channel that the neighbour gives, and that are given here.
    credits: [u16; 2],
    /// Whether the link works. While it does not, packets don't wait for credits: they are sent and lost.
    up: bool,
    /// The classes, as bits, of channels without credits for a full-size packet.
    #[state(skip("it follows from the counters"))]
    paused: u8,
    /// Credits of packets that did not come and were freed again.
    #[state(count)]
    pub lost_credits: u64,
}

/// The sending end of a virtual channel. Counters go round.
#[derive(Clone, Copy, Debug, Default, node::State)]
#[state(first(walk.same(since(self.consumed, self.freed))), last(self.visit_told(walk)))]
struct Sender {
    /// Its classes, as bits.
    #[state(built("settings"))]
    classes: u8,
    /// Credits of packets sent (CC).
    #[state(skip("only the difference matters, and neither moves"))]
    consumed: u16,
    /// The credits freed, by the receiver's last update (CF).
    #[state(skip("only the difference matters, and neither moves"))]
    freed: u16,
    /// The part of `consumed` that the receiver has been told, now and before it was last told.
    #[state(skip("`visit_told` visits it"))]
    told: u16,
    #[state(skip("it is for event logs"))]
    before: u16,
    /// How often it has had too few credits for a full-size packet, so that it mattered what was told.
    #[state(skip("how often it was used"))]
    short: u32,
}

/// The receiving end.
#[derive(Clone, Copy, Debug, Default, node::State)]
#[state(first(walk.same((since(self.freed, self.told), since(self.seen, self.freed)))))]
struct Receiver {
    /// Credits freed (CF).
    #[state(skip("only the difference matters, and neither moves"))]
    freed: u16,
    /// Of these, what the sender was told, now and before it was last told.
    #[state(skip("only the difference matters, and neither moves"))]
    told: u16,
    #[state(skip("it is for event logs"))]
    before: u16,
    /// Credits of packets that have arrived, and of packets that are known to be lost.
    #[state(skip("only the difference matters, and neither moves"))]
    seen: u16,
    /// Credits of packets that are still here.
    held: u16,
}

/// `later` less `earlier`, which went round at most once.
const fn since(later: u16, earlier: u16) -> u16 {
    later.wrapping_sub(earlier) & COUNT
}

const fn sum(counter: u16, more: u16) -> u16 {
    counter.wrapping_add(more) & COUNT
}

impl Sender {
    /// The counter that the receiver was told moves as long as the sender is never short of credits.
    fn visit_told(&mut self, walk: &mut Walk) {
        let mut untold = since(self.consumed, self.told);
        walk.unused(&mut untold, u64::from(self.short));
        self.told = since(self.consumed, untold & COUNT);
    }
}

impl Channels {
    /// A port with these numbers of credits in each of `vcs` channels: those that it has, and those that it gives.
    pub fn new(params: Params, credits: [u16; 2], vcs: usize) -> Channels {
        let mut out = vec![Sender::default(); vcs];
        for (class, vc) in params.vc_of.into_iter().enumerate() {
            if let Some(vc) = vc {
                out[usize::from(vc)].classes |= 1 << class;
            }
        }
        let into = vec![Receiver::default(); vcs];
        let mut channels = Channels { params, out, into, credits, up: true, paused: 0, lost_credits: 0 };
        (0..vcs).for_each(|vc| channels.settle(vc));
        channels
    }

    /// Credits left in a channel.
    pub fn available(&self, vc: usize) -> u16 {
        let Sender { consumed, freed, .. } = self.out[vc];
        self.credits[0].saturating_sub(since(consumed, freed))
    }

    /// The classes, as bits, of channels without credits for a full-size packet.
    pub fn paused(&self) -> u8 {
        self.paused
    }

    /// The counters of a channel to the neighbour have changed.
    fn settle(&mut self, vc: usize) {
        let (waits, classes) = (self.up && self.available(vc) < self.params.full_packet, self.out[vc].classes);
        self.paused = if waits { self.paused | classes } else { self.paused & !classes };
    }

    /// The virtual channel of a class.
    pub fn vc_of(&self, class: u8) -> Option<u8> {
        self.params.vc_of[usize::from(class)]
    }

    /// A packet leaves. Returns the number that it carries, and a message that is to follow it.
    pub fn leaves(&mut self, packet: &Packet) -> (u16, Option<Frame>) {
        let counts = self.up && !packet.has(flags::LINK_FRAME);
        let Some(vc) = self.vc_of(packet.class).filter(|_| counts) else { return (0, None) };
        let credits = self.params.credits(packet);
        let sender = &mut self.out[usize::from(vc)];
        sender.consumed = sum(sender.consumed, credits);
        // Lost credits matter once the rest is too small for a packet. It takes at least this many of them.
        let given = self.credits[0];
        let many = (given / 2).min(given.saturating_sub(self.params.full_packet) + 1);
        let left = given.saturating_sub(since(sender.consumed, sender.freed));
        let short = left < self.params.full_packet;
        sender.short = sender.short.wrapping_add(u32::from(short));
        let due = short && since(sender.consumed, sender.told) >= many;
        let message = due.then(|| {
            (sender.before, sender.told) = (sender.told, sender.consumed);
            Frame::Consumed { vc, count: sender.consumed }
        });
        self.settle(usize::from(vc));
        (u16::from(vc) + 1, message)
    }

    /// A packet with this mark has come.
    pub fn came(&mut self, mark: u16, packet: &Packet) {
        let credits = self.params.credits(packet);
        if let Some(receiver) = self.receiver(mark) {
            receiver.seen = sum(receiver.seen, credits);
            receiver.held += credits;
        }
    }

    /// Such a packet has left the buffer. Returns what is to be told.
    pub fn freed(&mut self, mark: u16, packet: &Packet) -> Option<Frame> {
        let (credits, up) = (self.params.credits(packet), self.up);
        let receiver = self.receiver(mark)?;
        receiver.held = receiver.held.saturating_sub(credits);
        receiver.freed = sum(receiver.freed, credits);
        if up { self.news(usize::from(mark) - 1) } else { None }
    }

    /// The neighbour says something. Returns the answer.
    pub fn hears(&mut self, frame: &Packet) -> Option<Frame> {
        match frame.header::<Frame>() {
            Frame::Freed { vcs, counts } => {
                for (vc, count) in vcs.into_iter().zip(counts) {
                    if let Some(sender) = self.out.get_mut(usize::from(vc)) {
                        sender.freed = count;
                        self.settle(usize::from(vc));
                    }
                }
                None
            }
            Frame::Consumed { vc, count } => {
                let receiver = self.into.get_mut(usize::from(vc))?;
                // A link keeps its order, so what has not come until now does not come any more.
                let lost = since(count, receiver.seen);
                receiver.seen = count;
                receiver.freed = sum(receiver.freed, lost);
                self.lost_credits += u64::from(lost);
                self.news(usize::from(vc))
            }
        }
    }

    /// A message that was just due, as a packet. Its label says by how much its counters have grown since the message
    /// before, which no node on the link reads: see [`Channels::walk`].
    pub fn packet(&self, message: Frame) -> Packet {
        let [one, other] = match message {
            Frame::Freed { vcs, .. } => vcs.map(|vc| self.into[usize::from(vc)]).map(|of| since(of.told, of.before)),
            Frame::Consumed { vc, .. } => [since(self.out[usize::from(vc)].told, self.out[usize::from(vc)].before), 0],
        };
        let mut packet = message.packet();
        packet.label = u64::from(one) << 16 | u64::from(other);
        packet
    }

    /// The link has gone down or come up. A sender has no credits until an update arrives. Packets that came before and
    /// are still here reduce them. Returns what is to be told.
    pub fn reset(&mut self, up: bool) -> Vec<Frame> {
        self.up = up;
        let [given, gives] = self.credits;
        for sender in &mut self.out {
            *sender = Sender { consumed: given, freed: 0, told: given, before: given, ..*sender };
        }
        for receiver in &mut self.into {
            let free = gives.saturating_sub(receiver.held);
            *receiver = Receiver { freed: free, told: free, before: free, seen: gives, held: receiver.held };
        }
        (0..self.out.len()).for_each(|vc| self.settle(vc));
        let told = |vc: usize| Frame::Freed { vcs: [vc as u8; 2], counts: [self.into[vc].freed; 2] };
        if up { (0..self.into.len()).map(told).collect() } else { Vec::new() }
    }

    fn receiver(&mut self, mark: u16) -> Option<&mut Receiver> {
        self.into.get_mut(usize::from(mark.checked_sub(1)?))
    }

    /// The update that is due for a channel, together with that of the channel with the most other news.
    fn news(&mut self, vc: usize) -> Option<Frame> {
        let untold = |receiver: &Receiver| since(receiver.freed, receiver.told);
        if u64::from(untold(&self.into[vc])) < self.params.update.max(1) {
            return None;
        }
        let others = (0..self.into.len()).filter(|&other| other != vc && untold(&self.into[other]) > 0);
        let other = others.max_by_key(|&other| untold(&self.into[other])).unwrap_or(vc);
        let both = [vc, other];
        for vc in [Some(vc), (other != vc).then_some(other)].into_iter().flatten() {
            let receiver = &mut self.into[vc];
            (receiver.before, receiver.told) = (receiver.told, receiver.freed);
        }
        Some(Frame::Freed { vcs: both.map(|vc| vc as u8), counts: both.map(|vc| self.into[vc].freed) })
    }
}

#[cfg(test)]
mod tests;
