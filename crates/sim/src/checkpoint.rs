//! Checkpoints: the whole state of a run, written down so that the run can go on later, in another process.
//!
//! A network is built from the scenario as for a run that begins, and cut into as many parts as before. Then the state
//! of each part is read over it ([`units::saved`]). The file has only the run's own values and nothing that a scenario
//! builds: packets in the network, flows under way, rows of tables so far. The run pauses before the
//! first event at the set time or later, where the engine has delivered all packets to the parts that they go to. Such
//! a pause changes nothing: see [`engine::Bounds`].
//!
//! A file begins with a name and a checksum, then the digest of the program's code ([`SOURCE`]): another build may keep
//! another state, so its files are refused. A checksum finds damage; it is no protection from a file that was forged on
//! purpose. Such a file can make a run go wrong and end, but it names no file and starts nothing.

use std::sync::Arc;

use driver::{Cut, Driver, Fork, Probe, Probes, Stuck};
use engine::{Bounds, Outcome};
use run::Plan;
use scenario::FastForward;
use units::saved::{Loader, Saver, Tree};
use units::{Duration, FlowId, HostId, NodeId, Problem, Saved, SwitchId, Time, mix};

use crate::part::{self, Part, ReceivedBytes};
use crate::{SOURCE, fork};

const NAME: &[u8; 8] = b"clearway";
/// Where what the checksum covers begins.
const CONTENT: usize = 16;

/// When checkpoints are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moments {
    /// Once.
    At(Time),
    /// At each multiple of this. More than zero.
    Every(Duration),
}

impl Moments {
    fn after(self, now: Option<Time>) -> Time {
        match self {
            Moments::At(at) if now.is_none_or(|now| now < at) => at,
            Moments::At(_) => Time::MAX,
            Moments::Every(span) => {
                let times = now.map_or(0, |now| now.ps() / span.ps().max(1));
                Time::from_ps(span.ps().saturating_mul(times.saturating_add(1)))
            }
        }
    }
}

impl std::str::FromStr for Moments {
    type Err = String;

    /// A time, such as "2ms", or "every 10ms".
    fn from_str(text: &str) -> Result<Moments, String> {
        let (every, span) = match text.trim().strip_prefix("every") {
            Some(span) => (true, span.trim()),
            None => (false, text.trim()),
        };
        let wrong = |_| format!("{text:?} is no time for a checkpoint: \"2ms\" is one, \"every 10ms\" are several");
        match span.parse::<Duration>().map_err(wrong)? {
            Duration::ZERO => Err("a checkpoint at time zero would hold nothing".to_owned()),
            span if every => Ok(Moments::Every(span)),
            span => Ok(Moments::At(Time::ZERO + span)),
        }
    }
}

/// Keeps the bytes of a checkpoint. If it can't, it says why, and the run goes on.
pub type Keep<'a> = &'a mut dyn FnMut(Time, &[u8]) -> Result<(), String>;

/// How far a run has come that goes on, and where it is written down.
#[derive(Default)]
pub struct Course<'a> {
    /// Where it goes on; from the beginning without.
    pub from: Option<&'a Checkpoint>,
    /// Where it goes on otherwise than the run of the checkpoint: the plan of that run.
    pub before: Option<&'a Plan>,
    /// The folder of the files that the scenario names, which a checkpoint says for those who read it.
    pub folder: String,
    /// When checkpoints are taken, and how they are kept.
    pub keep: Option<(Moments, Keep<'a>)>,
    /// The time of the last checkpoint.
    at: Option<Time>,
    /// Why checkpoints were not kept, once.
    pub(crate) failed: Option<String>,
}

impl<'a> Course<'a> {
    /// Goes on from a checkpoint, if there is one, and keeps some.
    pub fn new(from: Option<&'a Checkpoint>, keep: Option<(Moments, Keep<'a>)>) -> Course<'a> {
        Course { from, keep, at: from.map(|from| from.at), ..Course::default() }
    }

    /// Goes on from a checkpoint of a run with another plan.
    pub fn fork(from: &'a Checkpoint, before: &'a Plan) -> Course<'a> {
        Course { before: Some(before), ..Course::new(Some(from), None) }
    }

    /// Refuses a plan that can't go on from its checkpoint.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), Problem> {
        match (self.from, self.before) {
            (Some(from), None) => from.check(plan),
            (Some(from), Some(before)) => fork::check(from, before, plan).map(drop),
            (None, _) => Ok(()),
        }
    }

    /// When the next checkpoint is due.
    pub(crate) fn next_at(&self) -> Time {
        self.keep.as_ref().map_or(Time::MAX, |(moments, _)| moments.after(self.at))
    }

    /// All events before `now` have happened: takes a checkpoint.
    #[cold]
    pub(crate) fn take<P: Probe>(&mut self, plan: &Plan, parts: &[Part<P>], stuck: &Stuck, now: Time, so_far: Outcome) {
        self.at = Some(now);
        let Some((_, keep)) = &mut self.keep else { return };
        let kept = written(plan, parts, stuck, now, so_far, &self.folder).and_then(|bytes| keep(now, &bytes));
        if let Err(why) = kept {
            self.failed.get_or_insert(format!("the checkpoint at {now} could not be kept: {why}"));
        }
    }

    /// Reads the state over parts in which nothing has happened. Returns when the run ended and how many windows began
    /// so far, and where the open window ends.
    pub(crate) fn begin<P: Probe>(
        &self,
        plan: &Plan,
        parts: &mut [Part<P>],
        stuck: &mut Stuck,
        bounds: &mut Bounds,
    ) -> Result<(Time, u64), Problem> {
        if self.keep.is_some() {
            // A state that can't be written down is refused before the run.
            let mut to = Saver::default();
            parts.iter().for_each(|part| part.0.save(&mut to));
            to.finish().map_err(|why| Problem::new("checkpoint", format!("{why}, so there are no checkpoints")))?;
        }
        let Some(from) = self.from else { return Ok((Time::ZERO, 0)) };
        let mut loader = Loader::new(from.state());
        let fork = self.before.map(|before| fork::of(before, plan));
        let begun = from.begin(&mut loader, parts, stuck, fork);
        let (end, windows, open_until) =
            begun.map_err(|why| Problem::new("resume", format!("the checkpoint: {why}")))?;
        bounds.open_until = open_until;
        Ok((end, windows))
    }
}

/// Why a run can't be written down, if it can't.
pub fn refusal(plan: &Plan) -> Option<Problem> {
    let refuse = |key: &str, why: &str| Some(Problem::new(key, why));
    if plan.scenario.skips() != FastForward::Off {
        return refuse("fast_forward", "a run that skips repetitions takes no checkpoints: set fast_forward = \"off\"");
    }
    if plan.scenario.carriers().transports.iter().any(|of| of.name() == "custom") {
        let why =
            "a congestion control of your own keeps state that Clearway can't write down, so there are no checkpoints";
        return refuse("transport.custom", why);
    }
    if !plan.attached.is_empty() {
        return refuse("live.attach", "attached hosts keep state outside of Clearway, so there are no checkpoints");
    }
    None
}

/// A number for all that decides a run beside the scenario's text: a file that it names may have changed.
fn print(plan: &Plan) -> u64 {
    let flows = (0..plan.flows.len()).map(|flow| plan.flows.get(FlowId::from(flow)));
    let sizes = [u64::from(plan.fabric.hosts), plan.fabric.links.len() as u64, plan.horizon.ps()];
    let sizes = sizes.into_iter().fold(plan.scenario.seed, mix);
    flows.fold(sizes, |print, of| {
        let ends = u64::from(of.src.0) << 32 | u64::from(of.dst.0);
        mix(mix(mix(print, ends), of.bytes), of.start.ps())
    })
}

pub(crate) fn written<P: Probe>(
    plan: &Plan,
    parts: &[Part<P>],
    stuck: &Stuck,
    now: Time,
    so_far: Outcome,
    folder: &str,
) -> Result<Vec<u8>, String> {
    let mut to = Saver::default();
    to.raw(SOURCE.as_bytes());
    to.raw(env!("CARGO_PKG_VERSION").as_bytes());
    to.raw(plan.scenario.to_toml().as_bytes());
    to.raw(folder.as_bytes());
    (now, parts.len(), print(plan)).save(&mut to);
    (so_far.end, so_far.windows, so_far.open_until).save(&mut to);
    stuck.save(&mut to);
    parts.iter().for_each(|part| part.0.save(&mut to));
    let content = to.finish()?;
    let mut file = Vec::with_capacity(CONTENT + content.len());
    file.extend(NAME);
    file.extend(checksum(&content).to_le_bytes());
    file.extend(content);
    Ok(file)
}

fn checksum(content: &[u8]) -> u64 {
    let words = content.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(content.len() as u64, |sum, word| (sum.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// A checkpoint that has been read.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    bytes: Arc<[u8]>,
    /// Where the state begins.
    state: usize,
    /// All events before this time have happened.
    pub at: Time,
    /// Into how many parts its network was cut.
    pub parts: usize,
    /// The scenario as it was run, every default filled in.
    pub scenario_toml: String,
    /// Where the files were that the scenario names; empty if that is not known.
    pub folder: String,
    print: u64,
}

impl Checkpoint {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// Says in one sentence what is wrong with them.
    pub fn read(bytes: Vec<u8>) -> Result<Checkpoint, Problem> {
        let wrong = |what: &str| Problem::new("checkpoint", what);
        if !bytes.starts_with(NAME) {
            return Err(wrong("this is no checkpoint of Clearway"));
        }
        let damaged = || wrong("the file is damaged or not whole: its checksum differs");
        let Some((sum, content)) = bytes[NAME.len()..].split_first_chunk::<8>() else { return Err(damaged()) };
        if checksum(content) != u64::from_le_bytes(*sum) {
            return Err(damaged());
        }
        let mut from = Loader::new(content);
        let mut head = || -> Result<_, units::saved::Damaged> {
            let (source, version) = (String::make(&mut from)?, String::make(&mut from)?);
            if source != SOURCE {
                return Ok(Err(version));
            }
            let (scenario_toml, folder) = (String::make(&mut from)?, String::make(&mut from)?);
            let (at, parts, print) = Saved::make(&mut from)?;
            Ok(Ok((scenario_toml, folder, at, parts, print, from.place())))
        };
        let (scenario_toml, folder, at, parts, print, place) = match head() {
            Err(_) => return Err(wrong("the file has no head, though its checksum is right")),
            Ok(Err(version)) => {
                let what = "another build of Clearway, with other code, has written it";
                return Err(wrong(&format!(
                    "{what} (version {version}): a run goes on only in the build that began it"
                )));
            }
            Ok(Ok(head)) => head,
        };
        Ok(Checkpoint { state: CONTENT + place, bytes: bytes.into(), at, parts, scenario_toml, folder, print })
    }

    /// Refuses a plan that is not the one of which it is.
    ///
    /// # Errors
    /// Says which setting differs.
    pub fn check(&self, plan: &Plan) -> Result<(), Problem> {
        let now = plan.scenario.to_toml();
        if now != self.scenario_toml {
            let differs = now.lines().zip(self.scenario_toml.lines()).find(|(one, other)| one != other);
            let lines = differs.map(|(now, then)| format!(": {now:?} was {then:?}")).unwrap_or_default();
            return Err(Problem::new("resume", format!("the scenario is not the one of the checkpoint{lines}")));
        }
        if print(plan) != self.print {
            return Err(Problem::new("resume", "a file that the scenario names has changed since the checkpoint"));
        }
        Ok(())
    }

    fn state(&self) -> &[u8] {
        &self.bytes[self.state..]
    }

    fn begin<P: Probe>(
        &self,
        from: &mut Loader<'_>,
        parts: &mut [Part<P>],
        stuck: &mut Stuck,
        fork: Option<Fork<'_>>,
    ) -> Result<(Time, u64, Option<Time>), units::saved::Damaged> {
        let so_far = Saved::make(from)?;
        let anew = stuck.clone();
        stuck.load(from)?;
        let other = |of: Fork<'_>| {
            of.before.changes != of.after.changes || of.before.scenario.measure != of.after.scenario.measure
        };
        if fork.is_some_and(other) {
            *stuck = anew.from(self.at);
        }
        if parts.len() != self.parts {
            return Err(from.damaged("the network was cut into other parts"));
        }
        let all = parts.len();
        parts.iter_mut().try_for_each(|part| part.load(all, from, self.at, fork))?;
        if from.is_empty() { Ok(so_far) } else { Err(from.damaged("something follows the state")) }
    }

    /// The state for a person: all of a node, of a port, or of a flow. Names are those of the fabric: "host3",
    /// "spine0:3"; without one, how the whole network is.
    ///
    /// # Errors
    /// If there is no such node or port, or the file is not of this plan.
    pub fn inspect(&self, plan: &Plan, what: Option<&str>, flow: Option<FlowId>) -> Result<Tree, Problem> {
        self.check(plan)?;
        if let Some(flow) = flow.filter(|flow| flow.index() >= plan.flows.len()) {
            return Err(Problem::new("flow", format!("there is no flow {flow}: the run has {}", plan.flows.len())));
        }
        let cut = Cut::new(plan, self.parts);
        if Probes::new(plan).is_empty() {
            // The file was written without probes.
            return self.shown(part::parts(plan, &cut, &ReceivedBytes::default(), || ()), plan, what, flow);
        }
        self.shown(part::parts(plan, &cut, &ReceivedBytes::default(), || Probes::new(plan)), plan, what, flow)
    }

    /// Reads the state over parts in which nothing has happened, and draws some of it.
    fn shown<P: Probe>(
        &self,
        mut parts: Vec<Part<P>>,
        plan: &Plan,
        what: Option<&str>,
        flow: Option<FlowId>,
    ) -> Result<Tree, Problem> {
        let mut bounds = Bounds::new(plan.lookahead, plan.horizon, plan.goal());
        Course::new(Some(self), None).begin(plan, &mut parts, &mut Stuck::new(plan), &mut bounds)?;
        shown(self.at, plan, &parts, what, flow)
    }
}

fn shown<P: Probe>(
    at: Time,
    plan: &Plan,
    parts: &[Part<P>],
    what: Option<&str>,
    flow: Option<FlowId>,
) -> Result<Tree, Problem> {
    let time = ("time".to_owned(), Tree::Text(at.to_string()));
    let node = |id: NodeId| {
        let drawn = parts.iter().find_map(|part| drawn(plan, &part.0, id));
        (plan.fabric.names[id.index()].clone(), drawn.unwrap_or(Tree::None))
    };
    if let Some(flow) = flow {
        let info = plan.flows.get(flow);
        let ends = [info.src, info.dst].map(|host| node(plan.fabric.host_node(host)));
        let ends = ends.into_iter().map(|(name, tree)| (name, tree.about(flow.0).unwrap_or(Tree::None)));
        let links = parts.iter().flat_map(|part| part.0.in_flight(flow));
        let links: Vec<Tree> = links.map(|link| Tree::Text(plan.fabric.link_name(link))).collect();
        let links = ("packets_in_flight_on".to_owned(), Tree::List(links));
        let bytes = ("bytes".to_owned(), Tree::Number(info.bytes));
        return Ok(Tree::Fields([time, bytes].into_iter().chain(ends).chain([links]).collect()));
    }
    let Some(what) = what else {
        let nodes = |range: std::ops::Range<u32>| Tree::Number(range.len() as u64);
        let sum = |of: fn(&Driver<part::Memory, P>) -> u64| Tree::Number(parts.iter().map(|part| of(&part.0)).sum());
        let fields = [
            ("hosts", nodes(0..plan.fabric.hosts)),
            ("switches", nodes(0..plan.fabric.switches)),
            ("flows", Tree::Number(plan.flows.len() as u64)),
            ("ended_flows", sum(Driver::ended_flows)),
            ("packets_in_the_network", sum(|part| part.links.pool.len() as u64)),
            ("packet_hops", sum(|part| part.packet_hops)),
            ("delivered_bytes", sum(|part| part.delivered_bytes)),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
        return Ok(Tree::Fields([time].into_iter().chain(fields).collect()));
    };
    let Some((name, port)) = what.rsplit_once(':') else {
        return Ok(Tree::Fields(vec![time, node(plan.fabric.find(what)?)]));
    };
    let link = plan.fabric.find_ports(what)?[0];
    let (_, tree) = node(plan.fabric.link(link).from);
    let ports = tree.find("ports").and_then(|ports| ports.item(port.parse().unwrap_or(0))).cloned();
    let queue = ports.unwrap_or(Tree::Text(format!("{name} keeps nothing by port")));
    Ok(Tree::Fields(vec![time, (what.to_owned(), queue)]))
}

/// A node of a part, if it is there.
pub(crate) fn drawn<P: Probe>(plan: &Plan, part: &Driver<part::Memory, P>, id: NodeId) -> Option<Tree> {
    match plan.fabric.as_host(id) {
        Some(HostId(host)) => {
            let slot = part.hosts.iter().find(|slot| slot.host.id().0 == host)?;
            Some(draw(plan, part, slot))
        }
        None => {
            let SwitchId(switch) = plan.fabric.as_switch(id)?;
            let slot = part.switches.iter().find(|slot| slot.id == switch)?;
            Some(draw(plan, part, slot))
        }
    }
}

pub(crate) fn draw<P: Probe>(plan: &Plan, part: &Driver<part::Memory, P>, what: &impl Saved) -> Tree {
    let mut to = Saver::drawing_with(part.drawn_packets(plan));
    what.save(&mut to);
    to.tree()
}

#[cfg(test)]
pub(crate) mod tests;
