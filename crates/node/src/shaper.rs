use units::{FlowId, Time};

use crate::Packet;

crate::save_behind!(dyn Shaper);

/// A rate limiter of a hypervisor, between a host's endpoints and its NIC.
///
/// The driver empties the endpoints into it, as a virtual machine hands packets to the hypervisor at memory speed, and
/// pulls packets for the wire from it. The shaper sees incoming packets before the endpoints do. Like an endpoint, it
/// does no I/O and reads no clock.
pub trait Shaper: Send + crate::State {
    /// An endpoint sends a packet: it is queued here, or dropped and counted. Returns whether it is queued.
    fn enqueue(&mut self, now: Time, packet: Packet) -> bool;

    /// Whether packets of a flow wait here.
    fn holds(&self, flow: FlowId) -> bool;

    /// The next packet for the NIC, or `None` for now. Called only when the NIC can take a packet.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;

    /// A packet has arrived at the NIC. Returns false if it was for the shaper itself and no endpoint may see it.
    fn receive(&mut self, now: Time, packet: &Packet) -> bool;

    /// When it wants [`Shaper::wake`] or can send again; [`Time::MAX`] for never. Read after each call of the other
    /// methods. A packet that may already be sent needs no wake-up: the NIC asks for it as soon as it is free.
    fn poll_at(&self) -> Time;

    /// The time named by [`Shaper::poll_at`] has come. May also be called early.
    fn wake(&mut self, now: Time);

    /// Counters for the result, by name.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}
