use node::Packet;
use node::pool::Transit;
use run::Plan;
use units::{Duration, Time};

use super::*;
use crate::testing;

/// When data came to hosts.
#[derive(Default, node::State)]
#[state(fixed)]
struct Arrivals(Vec<Time>);

impl Probe for Arrivals {
    fn wants(&self) -> Wants {
        Wants { arrivals: true, ..Wants::default() }
    }

    fn on_arrival(&mut self, now: Time, _: &HostSlot, packet: &Packet, _: &Transit) {
        if packet.payload_bytes > 0 {
            self.0.push(now);
        }
    }
}

#[test]
fn a_transmitter_goes_on_while_its_switch_has_packets_in_queues_of_its_own() {
    // Four hosts send a packet each to host 0 at once. Where a scheme brings its own queues a port's are empty.
    for transport in ["ndp", "pfabric", "dctcp"] {
        let text = format!(
            r#"
            timing = "ideal"
            transport = "{transport}"
            measure.end = "1ms"
            fabric.star.hosts = 5
            [[traffic]]
            sizes.constant = "1460B"
            arrivals = "all_at_once"
            pattern.incast.degree = 4
            receivers = "0"
            flows = 4
            "#
        );
        let plan = Plan::new(&scenario::read(&text, "scene.toml", &[]).unwrap()).unwrap();
        let driver = &testing::run(&plan, 1, Arrivals::default)[0];
        // Full packets at 100 Gbps, one behind the other.
        let gaps: Vec<Duration> = driver.probe.0.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps, [Duration::from_ns(120); 3], "{transport}");
    }
}
