use units::Time;

use crate::Packet;

/// What stands between a host's endpoints and its NIC: the rate limiter of a hypervisor.
///
/// The driver empties the endpoints into it, as a virtual machine hands its packets to the hypervisor at the speed of
/// memory, and pulls from it what goes on the wire. It sees all that comes in first. Like an endpoint it does no I/O
/// and reads no clock.
pub trait Shaper: Send {
    /// An endpoint sends a packet: it is queued here, or dropped and counted.
    fn enqueue(&mut self, now: Time, packet: Packet);

    /// The next packet for the NIC, or none now. Asked only when the NIC can take one.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;

    /// A packet has come in by the NIC. False: it was for the limiter itself, and no endpoint shall see it.
    fn receive(&mut self, now: Time, packet: &Packet) -> bool;

    /// When it wants [`Shaper::wake`], or can send again; [`Time::MAX`] for never. Read after each call of the others. A
    /// packet that may go already is no reason: it waits for the NIC, which asks as soon as it is free.
    fn poll_at(&self) -> Time;

    /// The time named by [`Shaper::poll_at`] has come. May also be called early.
    fn wake(&mut self, now: Time);

    /// What it counted, by name, for the result.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}
