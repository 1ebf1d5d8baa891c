use std::collections::VecDeque;

use units::{Bytes, Duration, HostId, Problem, Rate, Time};

use crate::generate::LATEST;
use crate::{FabricView, Flow};

/// Spreads the flows of one class in time until the class is admissible: in every window of length `window` the bytes
/// that any host sends, and those that any host receives, are less than its link carries in that time (Harmony section
/// 5: "the generated load for each sender and each receiver is less than 1 for every δ_admission duration of time").
///
/// The paper doesn't say what becomes of a message that would break the rule. Here it is postponed to the first time at
/// which neither its sender nor its receiver breaks it. Messages are tried in the order in which they were drawn. So
/// none is lost, sizes and pairs stay, and the mean load is the one asked for. The last messages may arrive after the
/// class's end, or in an off phase. Drawing again instead would favour quiet hosts and small messages, and leaving
/// messages out would lower the load.
///
/// A rule for both ends can't be met at every load below 1: messages of 128 KB, of which six fit into 63 us of 100
/// Gbps, wait 70 us at load 0.8 on 144 hosts and 0.8 ms at 0.9, and longer and longer beyond that.
///
/// A message counts as a whole at its arrival, with `factor` bytes for each byte of its payload.
pub(crate) fn spread(flows: &mut [Flow], window: Duration, factor: f64, view: &FabricView) -> Result<(), Problem> {
    let mut ends = [Ends::new(view, window, factor), Ends::new(view, window, factor)];
    flows.sort_by_key(|flow| (flow.start, flow.src));
    for flow in flows {
        let [senders, receivers] = &mut ends;
        for (end, host) in [(&*senders, flow.src), (&*receivers, flow.dst)] {
            end.check(host, flow.bytes, view.host_rate[host.index()])?;
        }
        let (sender, receiver) = (&mut senders.hosts[flow.src.index()], &mut receivers.hosts[flow.dst.index()]);
        sender.forget(flow.start, window);
        receiver.forget(flow.start, window);
        loop {
            let free = receiver.free(sender.free(flow.start, flow.bytes, window), flow.bytes, window);
            if free == flow.start {
                break;
            }
            flow.start = free;
        }
        if flow.start > LATEST {
            return Err(Problem::new(
                "admissible",
                format!(
                    "the last message would arrive after {LATEST}, which is the latest time possible; write fewer flows"
                ),
            ));
        }
        sender.add(flow.start, flow.bytes);
        receiver.add(flow.start, flow.bytes);
    }
    Ok(())
}

/// All hosts as senders, or as receivers.
struct Ends {
    window: Duration,
    factor: f64,
    hosts: Vec<End>,
}

impl Ends {
    fn new(view: &FabricView, window: Duration, factor: f64) -> Ends {
        let room = |rate: &Rate| rate.bps() as f64 * window.ps() as f64 / (8e12 * factor);
        let hosts = view.host_rate.iter().map(|rate| End { room: room(rate), ..End::default() }).collect();
        Ends { window, factor, hosts }
    }

    /// A message larger than a whole window never fits.
    fn check(&self, host: HostId, bytes: u64, rate: Rate) -> Result<(), Problem> {
        let room = self.hosts[host.index()].room;
        if (bytes as f64) < room {
            return Ok(());
        }
        let needed = Duration::from_secs_f64(bytes as f64 * self.factor * 8.0 / rate.bps() as f64);
        let message = format!(
            "a message of {} never fits into the window of {}: the link of host {host} at {rate} carries {} in that \
             time; write more than {needed}, or smaller messages",
            Bytes(bytes),
            self.window,
            Bytes(room as u64),
        );
        Err(Problem::new("admissible", message))
    }
}

/// One host as a sender, or as a receiver.
#[derive(Default)]
struct End {
    /// Payload bytes that a window must stay below.
    room: f64,
    /// Arrivals that may still matter, in order of time.
    arrivals: VecDeque<(Time, u64)>,
    /// The sum of their bytes.
    bytes: u128,
}

impl End {
    /// Forgets arrivals that no longer matter: no message will arrive before `now`.
    fn forget(&mut self, now: Time, window: Duration) {
        while let Some(&(at, bytes)) = self.arrivals.front()
            && at.saturating_add(window) <= now
        {
            self.arrivals.pop_front();
            self.bytes -= u128::from(bytes);
        }
    }

    /// The first time from `at` on at which `bytes` more may arrive.
    fn free(&self, mut at: Time, bytes: u64, window: Duration) -> Time {
        if ((self.bytes + u128::from(bytes)) as f64) < self.room {
            return at;
        }
        while !self.holds(at, bytes, window) {
            // Nothing changes until an arrival leaves the windows that end at `at`.
            let leaves =
                self.arrivals.iter().map(|arrival| arrival.0.saturating_add(window)).find(|leaves| *leaves > at);
            at = leaves.expect("alone the message fits");
        }
        at
    }

    /// Whether all windows that contain `at` stay below the room with `bytes` more. It suffices to check those that
    /// begin with an arrival, and the last, which begins at `at`.
    fn holds(&self, at: Time, bytes: u64, window: Duration) -> bool {
        let first = self.arrivals.partition_point(|arrival| arrival.0.saturating_add(window) <= at);
        let (mut begin, mut end, mut sum) = (first, first, u128::from(bytes));
        let starts = self.arrivals.range(first..).map(|arrival| arrival.0).take_while(|start| *start <= at);
        for start in starts.chain([at]) {
            while let Some(arrival) = self.arrivals.get(end).filter(|arrival| arrival.0 < start.saturating_add(window))
            {
                sum += u128::from(arrival.1);
                end += 1;
            }
            while begin < end && self.arrivals[begin].0 < start {
                sum -= u128::from(self.arrivals[begin].1);
                begin += 1;
            }
            if sum as f64 >= self.room {
                return false;
            }
        }
        true
    }

    fn add(&mut self, at: Time, bytes: u64) {
        let place = self.arrivals.partition_point(|arrival| arrival.0 <= at);
        self.arrivals.insert(place, (at, bytes));
        self.bytes += u128::from(bytes);
    }
}
