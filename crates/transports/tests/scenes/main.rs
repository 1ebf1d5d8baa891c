//! Scenes of transports on the virtual wire. One program, since each is linked with all transports.

mod rdma;
mod tcp;

use testing::Scene;
use units::Duration;

/// Message bytes in a full packet.
const MSS: u64 = 1460;

/// Round trip of a full packet and its acknowledgement on the default wire: 2 x 120 ns there, 2 x 3.2 ns back, 5 us.
const RTT: Duration = Duration::from_ps(5_246_400);

/// Time of a full packet on the default wire.
const PACKET: Duration = Duration::from_ns(120);

/// What a host's endpoint has counted under a name.
fn counter(scene: &Scene, host: u32, name: &str) -> u64 {
    let counters = scene.endpoint(host).counters();
    counters.iter().find(|counter| counter.0 == name).unwrap_or_else(|| panic!("no counter {name}")).1
}
