use std::collections::VecDeque;

use units::interrupt;
use units::{Bytes, Duration, FlowId, HostId, Problem, Stream, Time, mix};

use crate::admissible::spread;
use crate::job::said;
use crate::pattern::{Picker, RoundMessage};
use crate::room::Room;
use crate::sizes::Sampler;
use crate::traffic::{Arrivals, ClosedLoop, LoadOf, Periodic, Poisson};
use crate::{FabricView, Flow, Hosts, Pattern, Phases, Trace, Traffic};

/// Most flows in a list (4 GB of them). A scenario with more is taken for a typing error.
pub const FLOWS_MAX: u64 = 100_000_000;

/// Most payload of all flows together: no sum of bits wraps, of whatever part of them.
pub(crate) const BYTES_MAX: u64 = u64::MAX / 8;

/// The error of flows that have more.
pub(crate) fn too_many_bytes(key: &str, bytes: u128) -> Problem {
    let message = format!("with these the scenario has {bytes} bytes in all, and {BYTES_MAX} are the most; write less");
    Problem::new(key, message)
}

/// Flows between two looks at whether to go on.
pub(crate) const LOOK_EVERY: u64 = 1 << 14;

/// Latest arrival, which leaves room for arithmetic with times.
pub(crate) const LATEST: Time = Time::from_ps(u64::MAX / 2);

/// Generates the flows of all classes. A pure function of its arguments.
///
/// Order: first the flows with a start time, by (start, class, source, index in the class); then those that start after
/// another flow, by (class, index in the class), each after the flow that it waits for. A [`FlowId`] is an index into
/// this list. A problem's key begins with the class's index, `[1].arrivals.poisson.load`.
pub fn generate<T>(classes: &[Traffic<T>], view: &FabricView, seed: u64) -> Result<Vec<Flow>, Problem> {
    generate_within(classes, view, seed, &Room::ANY)
}

/// The same, but more flows than there is room for are refused before they are made.
pub fn generate_within<T>(
    classes: &[Traffic<T>],
    view: &FabricView,
    seed: u64,
    room: &Room,
) -> Result<Vec<Flow>, Problem> {
    assert_eq!(view.rack_of.len(), view.host_rate.len(), "a rack and a rate for each host");
    let most = room.flows();
    let (mut flows, mut bytes) = (Vec::new(), 0u128);
    for (index, class) in classes.iter().enumerate() {
        let here = |problem: Problem| problem.under(format!("[{index}]"));
        if let Some(twin) = classes[..index].iter().position(|other| other.name == class.name) {
            let message = format!("\"{}\" is also the name of class [{twin}]; give each a different name", class.name);
            return Err(here(Problem::new("name", message)));
        }
        let number =
            u16::try_from(index).map_err(|_| here(Problem::new("", "is one class too many; at most 65,536")))?;
        class.check().map_err(here)?;
        let begin = flows.len();
        match &class.loaded {
            Some(trace) => replay(class, trace, number, view, most, &mut flows),
            None => invent(class, number, view, seed, most, &mut flows),
        }
        .map_err(here)?;
        bytes += flows[begin..].iter().map(|flow| u128::from(flow.bytes)).sum::<u128>();
        if bytes > u128::from(BYTES_MAX) {
            let key = if class.loaded.is_some() { "trace" } else { "sizes" };
            return Err(here(too_many_bytes(key, bytes)));
        }
        if let Some(window) = class.admissible_window() {
            let factor = class.counting().factor().map_err(here)?;
            spread(&mut flows[begin..], window, factor, view).map_err(here)?;
        }
    }
    Ok(in_order(flows))
}

/// The same flows, each of which starts later by a random time of at most this.
pub fn start_later(mut flows: Vec<Flow>, most: Duration, seed: u64) -> Vec<Flow> {
    if most == Duration::ZERO {
        return flows;
    }
    let mut random = Stream::new(seed, 0, "workload.start_jitter");
    for flow in flows.iter_mut().filter(|flow| flow.after.is_none()) {
        flow.start = flow.start.saturating_add(Duration::from_ps(random.below(most.ps() + 1)));
    }
    in_order(flows)
}

/// Sorts the flows into their documented order. Before, [`Flow::after`] is an index in the order of generation.
fn in_order(mut flows: Vec<Flow>) -> Vec<Flow> {
    if flows.iter().all(|flow| flow.after.is_none()) {
        flows.sort_by_key(|flow| (flow.start, flow.class, flow.src));
        return flows;
    }
    let mut order: Vec<FlowId> = (0..flows.len()).map(FlowId::from).collect();
    order.sort_by_key(|id| match flows[id.index()] {
        Flow { after: None, start, class, src, .. } => (false, start, class, src),
        Flow { class, .. } => (true, Time::ZERO, class, HostId(0)),
    });
    let mut place = vec![FlowId(0); flows.len()];
    order.iter().enumerate().for_each(|(index, id)| place[id.index()] = FlowId::from(index));
    let moved = |id: &FlowId| Flow { after: flows[id.index()].after.map(|id| place[id.index()]), ..flows[id.index()] };
    order.iter().map(moved).collect()
}

/// The flows of a class with sizes, arrivals and a pattern.
fn invent<T>(
    class: &Traffic<T>,
    number: u16,
    view: &FabricView,
    seed: u64,
    most: u64,
    flows: &mut Vec<Flow>,
) -> Result<(), Problem> {
    let name = class.stream.as_ref().unwrap_or(&class.name);
    let entity = name.bytes().fold(0, |hash, byte| mix(hash, u64::from(byte)));
    let stream = |purpose| Stream::new(seed, entity, purpose);
    let hosts = |key, set: &Option<Hosts>| match set {
        Some(set) => set.resolve(view).map_err(|p| p.under(key)),
        None => Ok((0..view.hosts()).map(HostId).collect()),
    };
    let mut receivers = hosts("receivers", &class.receivers)?;
    if class.avoid.is_some() {
        let avoided = hosts("avoid", &class.avoid)?;
        receivers.retain(|host| avoided.binary_search(host).is_err());
    }
    let pattern = class.pattern.as_ref().unwrap_or(&Pattern::AllToAll);
    let senders = hosts("senders", &class.senders)?;
    let mut picker = Picker::new(pattern, senders, receivers, view, stream("workload.pattern"))?;
    if picker.round_flows() > most as f64 {
        return Err(too_many("pattern", "a single round of this pattern", picker.round_flows(), most));
    }
    let sizes = class.sizes.as_ref().expect("checked");
    let sizes = sizes.sampler(class.round_to.unwrap_or(Bytes(1))).map_err(|p| p.under("sizes"))?;
    let arrivals = class.arrivals.as_ref().expect("checked");
    let gap = gap_ps(arrivals, &picker, &sizes, view)?;
    let mut out = Output::new(class, number, sizes, stream("workload.sizes"), most, flows)?;
    out.expect(class, gap, if picker.groups() { picker.round_flows() } else { 1.0 })?;

    match arrivals {
        Arrivals::Poisson(_) if picker.groups() => {
            let mut times = stream("workload.times");
            let mut at = 0.0;
            let next = |_| {
                at += times.exponential(gap);
                at
            };
            rounds(&mut picker, &mut out, next, |_| Duration::ZERO)
        }
        Arrivals::Poisson(_) => {
            let mut times = stream("workload.times");
            let mut sources = Sources::new(picker.senders.clone(), view, stream("workload.sources"));
            let mut at = 0.0;
            loop {
                at += times.exponential(gap);
                let Some(start) = out.instant(at)? else { return Ok(()) };
                let src = sources.draw();
                if !out.push((src, picker.target(src), 1.0), start, None)? {
                    return Ok(());
                }
            }
        }
        Arrivals::Periodic(periodic) => {
            let mut jitter = stream("workload.jitter");
            let mut late = |most: Duration| Duration::from_ps(jitter.below(most.ps().saturating_add(1)));
            rounds(&mut picker, &mut out, |index| index as f64 * gap, |_| late(periodic.jitter))
        }
        Arrivals::AllAtOnce if class.flows.is_some() => rounds(&mut picker, &mut out, |_| 0.0, |_| Duration::ZERO),
        Arrivals::AllAtOnce => {
            let mut round = Vec::new();
            picker.round(&mut round);
            round.into_iter().try_for_each(|part| out.push(part, class.start, None).map(drop))
        }
        Arrivals::ClosedLoop(closed) => closed_loop(*closed, &mut picker, &mut out, view),
    }
}

/// Generates round after round until the class ends. `next` gives the active time of the n-th.
fn rounds(
    picker: &mut Picker<'_>,
    out: &mut Output<'_>,
    mut next: impl FnMut(u64) -> f64,
    mut late: impl FnMut(&RoundMessage) -> Duration,
) -> Result<(), Problem> {
    let mut round = Vec::new();
    for index in 0.. {
        let Some(start) = out.instant(next(index))? else { return Ok(()) };
        picker.round(&mut round);
        for part in &round {
            if !out.push(*part, start.saturating_add(late(part)), None)? {
                return Ok(());
            }
        }
    }
    unreachable!("no class has 2^64 rounds");
}

fn closed_loop(
    closed: ClosedLoop,
    picker: &mut Picker<'_>,
    out: &mut Output<'_>,
    view: &FabricView,
) -> Result<(), Problem> {
    let mut in_flight: Vec<VecDeque<FlowId>> = vec![VecDeque::new(); view.rack_of.len()];
    let mut round = Vec::new();
    loop {
        picker.round(&mut round);
        for part in &round {
            let own = &mut in_flight[part.0.index()];
            let after = if own.len() == closed.outstanding as usize { own.pop_front() } else { None };
            own.push_back(FlowId::from(out.flows.len()));
            let start = if after.is_some() { Time::from_ps(closed.think.ps()) } else { out.start };
            if !out.push(*part, start, after)? {
                return Ok(());
            }
        }
    }
}

/// The mean time between two arrivals (Poisson) or rounds (periodic), in picoseconds; zero for other arrivals.
fn gap_ps(arrivals: &Arrivals, picker: &Picker<'_>, sizes: &Sampler, view: &FabricView) -> Result<f64, Problem> {
    let (key, load, every, of, counting, single) = match arrivals {
        Arrivals::Poisson(Poisson { load, every, of, counting }) => {
            ("arrivals.poisson", load, every, of, counting, !picker.groups())
        }
        Arrivals::Periodic(Periodic { load, every, of, counting, .. }) => {
            ("arrivals.periodic", load, every, of, counting, false)
        }
        Arrivals::ClosedLoop(_) | Arrivals::AllAtOnce => return Ok(0.0),
    };
    let Some(load) = load else {
        return Ok(every.expect("checked").ps() as f64);
    };
    let rate = |hosts: &[HostId]| hosts.iter().map(|host| view.host_rate[host.index()].bps() as f64).sum::<f64>();
    let capacity_bps = match (of, picker.bottleneck()) {
        (LoadOf::HostLinks, None) => rate(&picker.senders),
        (LoadOf::HostLinks, Some(hosts)) => hosts
            .iter()
            .map(|host| rate(&[*host]))
            .fold(f64::INFINITY, |least, rate| if rate < least { rate } else { least }),
        (LoadOf::Bisection, _) => 2.0 * view.bisection.bps() as f64,
        (LoadOf::NarrowestLink, _) => view.narrowest.bps() as f64,
    };
    if capacity_bps <= 0.0 {
        return Err(Problem::new(key, "a load of links without any rate gives no traffic; use every instead of load"));
    }
    let messages = if single { 1.0 } else { picker.round_flows() };
    let bytes = sizes.mean_bytes() * messages * counting.factor().map_err(|p| p.under(key))?;
    Ok(bytes * 8e12 / (load * capacity_bps))
}

/// Draws senders in proportion to their links' rates.
///
/// One Poisson process whose arrivals are assigned to senders this way equals one process for each sender with a rate
/// in proportion (superposition and marking), and needs no sorting.
struct Sources {
    senders: Vec<HostId>,
    /// Cumulative rates of the senders; empty if all are equal.
    sums: Vec<u64>,
    stream: Stream,
}

impl Sources {
    fn new(senders: Vec<HostId>, view: &FabricView, stream: Stream) -> Sources {
        let rate = |host: &HostId| view.host_rate[host.index()].bps();
        let mut sums = Vec::new();
        if senders.iter().any(|host| rate(host) != rate(&senders[0])) {
            sums.extend(senders.iter().scan(0u64, |sum, host| {
                *sum = sum.saturating_add(rate(host));
                Some(*sum)
            }));
        }
        Sources { senders, sums, stream }
    }

    fn draw(&mut self) -> HostId {
        match self.sums.last() {
            None => *self.stream.choose(&self.senders).expect("there are senders"),
            Some(&all) => {
                let drawn = self.stream.below(all);
                self.senders[self.sums.partition_point(|sum| *sum <= drawn)]
            }
        }
    }
}

/// Collects the flows of one class until there are enough.
struct Output<'a> {
    flows: &'a mut Vec<Flow>,
    class: u16,
    /// Length of `flows` at which the class ends.
    full: u64,
    /// Length that `flows` may not exceed.
    most: u64,
    sizes: Sampler,
    stream: Stream,
    start: Time,
    duration: Option<Duration>,
    phases: Option<Phases>,
}

impl<'a> Output<'a> {
    fn new<T>(
        class: &Traffic<T>,
        number: u16,
        sizes: Sampler,
        stream: Stream,
        most: u64,
        flows: &'a mut Vec<Flow>,
    ) -> Result<Output<'a>, Problem> {
        let full = class.flows.map_or(u64::MAX, |count| count.saturating_add(flows.len() as u64));
        if class.flows.is_some() && full > most {
            return Err(too_many("flows", "with these the scenario", full as f64, most));
        }
        let Traffic { start, mut duration, mut phases, .. } = *class;
        if class.is_timeless() {
            (duration, phases) = (None, None);
        }
        Ok(Output { flows, class: number, full, most, sizes, stream, start, duration, phases })
    }

    /// Reserves space for the expected number of flows, or refuses.
    fn expect<T>(&mut self, class: &Traffic<T>, gap_ps: f64, flows_per_gap: f64) -> Result<(), Problem> {
        let timed = match self.duration {
            Some(duration) if gap_ps > 0.0 => duration.ps() as f64 / gap_ps * flows_per_gap,
            _ => f64::INFINITY,
        };
        let count = class.flows.map_or(timed, |flows| if timed < flows as f64 { timed } else { flows as f64 });
        let all = count + self.flows.len() as f64;
        if self.duration.is_some() && all > self.most as f64 {
            return Err(too_many("duration", "with those of this time the scenario", all, self.most));
        }
        if count.is_finite() {
            self.flows.reserve(count as usize);
        }
        Ok(())
    }

    /// The time at which the class has been active for `active_ps`; `None` if it is over by then.
    fn instant(&self, active_ps: f64) -> Result<Option<Time>, Problem> {
        let active = active_ps as u64;
        let passed = match self.phases {
            None => active,
            Some(Phases { on, off }) => {
                let turn = on.ps().saturating_add(off.ps());
                (active / on.ps()).saturating_mul(turn).saturating_add(active % on.ps())
            }
        };
        if self.duration.is_some_and(|duration| passed >= duration.ps()) {
            return Ok(None);
        }
        let instant = self.start.saturating_add(Duration::from_ps(passed));
        if instant > LATEST {
            return Err(Problem::new(
                "flows",
                format!(
                    "the last message would arrive after {LATEST}, which is the latest time possible; write fewer flows"
                ),
            ));
        }
        Ok(Some(instant))
    }

    /// Adds a flow; false when the class has all its flows.
    fn push(&mut self, (src, dst, weight): RoundMessage, start: Time, after: Option<FlowId>) -> Result<bool, Problem> {
        let before = self.flows.len() as u64;
        if before.is_multiple_of(LOOK_EVERY) {
            interrupt::check()?;
        }
        if before >= self.most {
            return Err(too_many("flows", "with those of this class the scenario", (before + 1) as f64, self.most));
        }
        let bytes = self.sizes.draw(&mut self.stream, weight);
        self.flows.push(Flow { src, dst, bytes, start, class: self.class, after });
        Ok(before + 1 < self.full)
    }
}

fn too_many(key: &str, what: &str, flows: f64, most: u64) -> Problem {
    let limit = match most {
        FLOWS_MAX => "which is the most".to_owned(),
        _ => "for which there is memory".to_owned(),
    };
    let count = if flows < 1e12 { said(flows as u64) } else { format!("{flows:.2e}") };
    let message = format!("{what} would have about {count} flows, and more than {}, {limit}; write fewer", said(most));
    Problem::new(key, message)
}

/// The flows of a class with a trace.
fn replay<T>(
    class: &Traffic<T>,
    trace: &Trace,
    number: u16,
    view: &FabricView,
    most: u64,
    flows: &mut Vec<Flow>,
) -> Result<(), Problem> {
    let limit = class.flows.unwrap_or(u64::MAX);
    // By flow of the trace: its place in the list. A flow that was cut off also removes those that wait for it.
    let mut place: Vec<Option<FlowId>> = vec![None; trace.flows().len()];
    let begin = flows.len() as u64;
    for index in trace.order() {
        let flow = trace.flows()[index];
        if let Some((end, host)) = [("src", flow.src), ("dst", flow.dst)].into_iter().find(|e| e.1.0 >= view.hosts()) {
            let error = trace.error(flow.line, end, &host.to_string(), &format!("a host below {}", view.hosts()));
            return Err(Problem::new("trace", error.to_string()));
        }
        let after = match flow.after.map(|before| place[before as usize]) {
            None => None,
            Some(None) => continue,
            some => some.flatten(),
        };
        let over = class.duration.is_some_and(|duration| flow.start.ps() >= duration.ps());
        if flows.len() as u64 - begin >= limit || (after.is_none() && over) {
            continue;
        }
        if flows.len() as u64 >= most {
            let all = flows.len() + trace.flows().len();
            return Err(too_many("trace", "with those of this file the scenario", all as f64, most));
        }
        place[index] = Some(FlowId::from(flows.len()));
        let start = if after.is_some() { flow.start } else { class.start.saturating_add(flow.start - Time::ZERO) };
        flows.push(Flow { src: flow.src, dst: flow.dst, bytes: flow.bytes, start, class: number, after });
    }
    Ok(())
}
