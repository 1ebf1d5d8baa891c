//! Scenes of Pyrrha on a few switches: what its figures, its text and arithmetic say must happen.

mod net;

mod departures;
mod roots;
mod state;
mod trees;

use clearway_link_control::pyrrha::frame::Frame;
use clearway_link_control::pyrrha::{Config, Departure};

use net::Net;

/// The frames of a kind, as (sender, receiver, what).
fn said<'a>(net: &'a Net, kind: impl Fn(&Frame) -> bool + 'a) -> Vec<(String, String, Frame)> {
    let named = |frame: &net::Said| (net.name(frame.from), net.name(frame.to), frame.say);
    net.said.iter().filter(|frame| kind(&frame.say)).map(named).collect()
}

fn counter(net: &Net, switch: &str, name: &str) -> u64 {
    let counters = net.switch(switch).flow_control().unwrap().counters();
    counters.iter().find(|counter| counter.0 == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

/// Hosts that do not answer, so that switches alone are seen.
fn no_hosts() -> Config {
    Config { hosts: false, ..Config::default() }
}

/// Those hosts, where the authors' program departs from the paper.
fn departing(departures: &[Departure]) -> Config {
    Config { departures: departures.iter().copied().collect(), ..no_hosts() }
}
