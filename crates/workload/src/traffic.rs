use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Time};

use crate::sizes::Table;
use crate::{Hosts, Pattern, Sizes, Trace, TraceFile};

/// One class of traffic: a `[[traffic]]` table of a scenario.
///
/// Either `sizes` and `arrivals` (and `pattern`) describe the messages, or a `trace` lists them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic<T> {
    /// Name of the class in results. Names differ between classes, because random streams are named after them unless
    /// `stream` says otherwise.
    #[serde(default = "default_name")]
    pub name: String,
    /// Another name for the random streams. Classes with the same stream draw the same sizes and times, like tenants
    /// that run the same trace. Default: `name`.
    pub stream: Option<String>,
    /// Transport of the class's messages. Default: the scenario's `transport`.
    pub transport: Option<T>,
    /// What happens to messages that the transport rejects or gives up: they are submitted again as each entry says, in
    /// order, until one is delivered (Harmony, section 4). Default: no resubmission.
    #[serde(default = "Vec::<Resubmit<T>>::new", skip_serializing_if = "Vec::is_empty")]
    pub resubmit: Vec<Resubmit<T>>,
    /// Distribution of message sizes.
    pub sizes: Option<Sizes>,
    /// Sizes are rounded to the nearest multiple of this, and are at least this. Use "1460B" for whole packets as in
    /// dcPIM's own simulator. Default: 1B.
    pub round_to: Option<Bytes>,
    /// When messages arrive.
    pub arrivals: Option<Arrivals>,
    /// Between which hosts messages go. Default: all-to-all.
    pub pattern: Option<Pattern>,
    /// Hosts that send. Default: all.
    pub senders: Option<Hosts>,
    /// Hosts that receive. Default: all.
    pub receivers: Option<Hosts>,
    /// Hosts excluded from the receivers, for example an incast's destination, which Pyrrha section 6.2 keeps free of
    /// other traffic. Default: none.
    pub avoid: Option<Hosts>,
    /// Start of the class; times of a trace count from here. Default: 0.
    #[serde(default)]
    pub start: Time,
    /// How long messages arrive from `start` on. Default: no limit; then `flows` ends the class.
    pub duration: Option<Duration>,
    /// Most messages of the class, in order of arrival. Default: no limit.
    pub flows: Option<u64>,
    /// On and off phases. Arrivals are generated as if the off phases did not exist. Default: always on.
    pub phases: Option<Phases>,
    /// Window of the admission rule: in every span of this length each host sends less of the class, and receives less,
    /// than its link carries (Harmony section 5, δ_admission, "63us"). Bytes are counted as for the load. A message
    /// that would break the rule is postponed to the first time at which it doesn't, even after the class's end.
    /// Default: no rule.
    pub admissible: Option<Duration>,
    /// A file of messages, in place of `sizes`, `arrivals` and `pattern`.
    pub trace: Option<TraceFile>,
    /// The messages of `trace` once read, or those of a program.
    #[serde(skip)]
    pub loaded: Option<Trace>,
    /// The mean size that the file of a table states, in bytes, once read.
    #[serde(skip)]
    pub stated_mean_bytes: Option<f64>,
}

/// How a message is submitted again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resubmit<T> {
    /// Transport to use. Default: the transport of the previous attempt.
    pub over: Option<T>,
    /// Most attempts with this entry. Default: 1.
    #[serde(default = "one")]
    pub times: u32,
    /// Delay after the application has learnt that the message was rejected or given up. Default: 0.
    #[serde(default)]
    pub after: Duration,
}

fn default_name() -> String {
    "traffic".to_owned()
}

/// When messages arrive.
///
/// Some patterns, such as all-to-all, have single messages; others (incast, dense, ...) have groups of messages that
/// belong together. One *round* is a message from each sender for the first kind and a group for the second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// Independent arrivals: one Poisson process for each sender, or one process for the groups.
    Poisson(Poisson),
    /// Rounds at fixed times, the first at the class's start.
    Periodic(Periodic),
    /// Each sender has a fixed number of outstanding messages and starts the next when one has completed.
    ClosedLoop(ClosedLoop),
    /// One round at the class's start, or as many as it takes to reach `flows` messages.
    AllAtOnce,
}

/// Poisson arrivals. Give exactly one of `load` and `every`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Offered load as a share of what `of` names.
    pub load: Option<f64>,
    /// Mean time between two arrivals (of messages or groups) anywhere in the class, as in R2C2 section 5.2.
    pub every: Option<Duration>,
    /// What the load is a share of. Default: `host_links`.
    #[serde(default)]
    pub of: LoadOf,
    /// Which bytes the load counts. Default: `payload`.
    #[serde(default)]
    pub counting: Counting,
}

/// Periodic arrivals. Give exactly one of `load` and `every`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// Offered load as a share of what `of` names. It determines the time between rounds.
    pub load: Option<f64>,
    /// Time between the starts of two rounds.
    pub every: Option<Duration>,
    /// Longest random delay of a message after the start of its round, drawn uniformly from zero to this. Default: 0.
    #[serde(default)]
    pub jitter: Duration,
    /// What the load is a share of. Default: `host_links`.
    #[serde(default)]
    pub of: LoadOf,
    /// Which bytes the load counts. Default: `payload`.
    #[serde(default)]
    pub counting: Counting,
}

/// A fixed number of outstanding messages. Needs `flows`, since the end is not known in advance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// Outstanding messages of each sender: message i starts after message i - outstanding of the same sender. Default:
    /// 1.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// Pause between a completion and the start of the next message. Default: 0.
    #[serde(default)]
    pub think: Duration,
}

fn one() -> u32 {
    1
}

/// What a load is a share of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadOf {
    /// The links of the sending hosts: each sender offers this share of its link, or of all its links together. For an
    /// incast it is the receiver's link (the slowest one, if the receiver changes); for an outcast, the sender's.
    #[default]
    HostLinks,
    /// Twice the bisection bandwidth (once for each direction), as if every byte crossed it, divided among the senders
    /// in proportion to their links. On a fabric without oversubscription this equals `host_links`.
    Bisection,
    /// The slowest link of the fabric, as if all of the class crossed it, divided among the senders in proportion to
    /// their links.
    NarrowestLink,
}

/// Which bytes a load counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Counting {
    /// Payload alone. With 40 B of header to 1,460 B of payload, a load of 0.6 keeps a link busy 61.6% of the time.
    #[default]
    Payload,
    /// Payload and headers, in proportion: mean size times (payload + header) / payload, as in dcPIM's simulator and
    /// pFabric's. The relatively larger header of a last, short packet is not counted.
    Wire(Wire),
}

/// The sizes of a full packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Payload of a full packet. Default: 1460B.
    #[serde(default = "full_payload")]
    pub payload: Bytes,
    /// Headers of a packet. Default: 40B.
    #[serde(default = "full_header")]
    pub header: Bytes,
}

fn full_payload() -> Bytes {
    Bytes(1460)
}

fn full_header() -> Bytes {
    Bytes(40)
}

/// Alternating phases, `on`, `off`, `on`, ... from the class's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Duration of a phase with arrivals.
    pub on: Duration,
    /// Duration of a phase without arrivals.
    pub off: Duration,
}

impl<T> Traffic<T> {
    /// A class of generated traffic.
    pub fn new(name: &str, sizes: Sizes, arrivals: Arrivals, pattern: Pattern) -> Traffic<T> {
        let (sizes, arrivals, pattern) = (Some(sizes), Some(arrivals), Some(pattern));
        Traffic { sizes, arrivals, pattern, ..Traffic::empty(name) }
    }

    /// A class with the given messages.
    pub fn from_trace(name: &str, trace: Trace) -> Traffic<T> {
        Traffic { loaded: Some(trace), ..Traffic::empty(name) }
    }

    fn empty(name: &str) -> Traffic<T> {
        Traffic {
            name: name.to_owned(),
            stream: None,
            transport: None,
            resubmit: Vec::new(),
            sizes: None,
            round_to: None,
            arrivals: None,
            pattern: None,
            senders: None,
            receivers: None,
            avoid: None,
            start: Time::ZERO,
            duration: None,
            flows: None,
            phases: None,
            admissible: None,
            trace: None,
            loaded: None,
            stated_mean_bytes: None,
        }
    }

    /// Reads the files that the class names. `read` maps a path to the file's content. A table of sizes becomes part of
    /// the description, which then needs no file; a trace is kept apart.
    pub fn load(&mut self, mut read: impl FnMut(&str) -> std::io::Result<Vec<u8>>) -> Result<(), Problem> {
        let mut content = |path: &str, key: &str| {
            read(path).map_err(|error| Problem::new(key, format!("\"{path}\" could not be read: {error}")))
        };
        if let Some(Sizes::CdfFile(file)) = &self.sizes {
            let key = "sizes.cdf_file.path";
            let text = String::from_utf8(content(&file.path, key)?)
                .map_err(|error| Problem::new(key, format!("\"{}\" is not UTF-8 text: {error}", file.path)))?;
            self.stated_mean_bytes = file.stated_mean_bytes(&text);
            let table = Table::parse(&text, &file.path, file.unit, file.probability)
                .map_err(|error| Problem::new(key, error.to_string()))?;
            self.sizes = Some(Sizes::Cdf(table));
        }
        if let Some(file) = &self.trace {
            let content = content(file.path(), "trace")?;
            self.loaded = Some(file.parse(content).map_err(|error| Problem::new("trace", error.to_string()))?);
        }
        Ok(())
    }

    /// The mean size that a table's file states in its heading, and that of sizes drawn from it, in bytes.
    pub fn stated_mean(&self) -> Option<(f64, f64)> {
        let drawn = self.sizes.as_ref()?.sampler(Bytes(1)).ok()?;
        Some((self.stated_mean_bytes?, drawn.mean_bytes()))
    }

    /// Which bytes count.
    pub(crate) fn counting(&self) -> Counting {
        match &self.arrivals {
            Some(Arrivals::Poisson(Poisson { counting, .. }) | Arrivals::Periodic(Periodic { counting, .. })) => {
                *counting
            }
            _ => Counting::Payload,
        }
    }

    /// Checks settings that don't go together on any fabric: settings without effect and missing ones.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let problem = |key: &str, message: &str| Err(Problem::new(key, message));
        if self.trace.is_some() || self.loaded.is_some() {
            return self.check_trace();
        }
        if self.sizes.is_none() {
            return problem(
                "sizes",
                "missing: say how large messages are, like sizes = \"websearch\", or give a trace",
            );
        }
        let Some(arrivals) = &self.arrivals else {
            let message = "missing: say when messages arrive, like arrivals = { poisson = { load = 0.6 } }";
            return problem("arrivals", message);
        };
        if self.round_to == Some(Bytes(0)) {
            return problem("round_to", "0B is not a size; leave it out, or write \"1460B\" for whole packets");
        }
        if self.flows == Some(0) {
            return problem("flows", "at 0 the class has no traffic; delete the class instead");
        }
        if self.duration == Some(Duration::ZERO) {
            return problem("duration", "at 0 nothing can arrive; write a time above 0, or leave it out");
        }
        if let Some(phases) = self.phases
            && (phases.on == Duration::ZERO || phases.off == Duration::ZERO)
        {
            return problem("phases", "on and off must both be above 0; delete phases for traffic without breaks");
        }
        if self.admissible == Some(Duration::ZERO) {
            return problem(
                "admissible",
                "at 0 no message fits; write a time above 0, such as \"63us\", or leave it out",
            );
        }
        self.check_arrivals(arrivals)
    }

    /// Settings that have no effect beside the others.
    pub fn advice(&self) -> Vec<Problem> {
        if self.trace.is_some() {
            return self.beside_trace();
        }
        let (closed, timeless) = (matches!(self.arrivals, Some(Arrivals::ClosedLoop(_))), self.is_timeless());
        let of_load = self.has_idle_load();
        let idle = [
            (
                "admissible",
                closed && self.admissible.is_some(),
                "has no effect on a closed loop, whose messages arrive when others complete; delete it",
            ),
            ("duration", closed && self.duration.is_some(), "has no effect on a closed loop; its end is set by flows"),
            (
                "duration",
                timeless && !closed && self.duration.is_some(),
                "has no effect when all arrive at once; remove it",
            ),
            (
                "phases",
                timeless && self.phases.is_some(),
                "has no effect on a closed loop or when all arrive at once; remove it",
            ),
            (
                of_load.unwrap_or_default(),
                of_load.is_some(),
                "of and counting have no effect beside every; delete them",
            ),
        ];
        idle.into_iter().filter(|idle| idle.1).map(|(key, _, why)| Problem::new(key, why)).collect()
    }

    /// Whether its arrivals follow no clock.
    pub(crate) fn is_timeless(&self) -> bool {
        matches!(self.arrivals, Some(Arrivals::ClosedLoop(_) | Arrivals::AllAtOnce))
    }

    /// The window in which it is admissible, if arrivals can be moved.
    pub(crate) fn admissible_window(&self) -> Option<Duration> {
        let movable = self.loaded.is_none() && !matches!(self.arrivals, Some(Arrivals::ClosedLoop(_)));
        self.admissible.filter(|_| movable)
    }

    /// Where settings of a load stand beside a gap between messages.
    fn has_idle_load(&self) -> Option<&'static str> {
        let (key, every, of, counting) = match self.arrivals.as_ref()? {
            Arrivals::Poisson(Poisson { every, of, counting, .. }) => ("arrivals.poisson", every, of, counting),
            Arrivals::Periodic(Periodic { every, of, counting, .. }) => ("arrivals.periodic", every, of, counting),
            Arrivals::ClosedLoop(_) | Arrivals::AllAtOnce => return None,
        };
        let set = *of != LoadOf::default() || *counting != Counting::default();
        (every.is_some() && set).then_some(key)
    }

    /// Keys that a trace already determines.
    fn beside_trace(&self) -> Vec<Problem> {
        let unused = [
            ("stream", self.stream.is_some()),
            ("sizes", self.sizes.is_some()),
            ("round_to", self.round_to.is_some()),
            ("arrivals", self.arrivals.is_some()),
            ("pattern", self.pattern.is_some()),
            ("senders", self.senders.is_some()),
            ("receivers", self.receivers.is_some()),
            ("avoid", self.avoid.is_some()),
            ("phases", self.phases.is_some()),
            ("admissible", self.admissible.is_some()),
        ];
        let message = "has no effect beside a trace, which sets sizes, times and hosts itself; delete one of them";
        unused.iter().filter(|(_, set)| *set).map(|(key, _)| Problem::new(*key, message)).collect()
    }

    fn check_trace(&self) -> Result<(), Problem> {
        match self.loaded {
            Some(_) => Ok(()),
            None => Err(Problem::new("trace", "the file has not been read yet; load the files first")),
        }
    }

    fn check_arrivals(&self, arrivals: &Arrivals) -> Result<(), Problem> {
        let problem = |key: &str, message: &str| Err(Problem::new(key, message));
        let endless = self.flows.is_none() && self.duration.is_none();
        match arrivals {
            Arrivals::Poisson(Poisson { load, every, .. }) => {
                pace(load, every).map_err(|p| p.under("arrivals.poisson"))?;
                if endless {
                    return problem("flows", "missing: Poisson arrivals never end; set flows or duration");
                }
            }
            Arrivals::Periodic(Periodic { load, every, .. }) => {
                pace(load, every).map_err(|p| p.under("arrivals.periodic"))?;
                if endless {
                    return problem("flows", "missing: periodic arrivals never end; set flows or duration");
                }
            }
            Arrivals::ClosedLoop(closed) => {
                if closed.outstanding == 0 {
                    return problem("arrivals.closed_loop.outstanding", "0 would send nothing; it must be at least 1");
                }
                if self.flows.is_none() {
                    return problem("flows", "missing: a closed loop never ends; say how many flows there are in all");
                }
            }
            Arrivals::AllAtOnce => {}
        }
        Ok(())
    }
}

/// Checks that there is exactly one of load and gap, and a sensible one.
fn pace(load: &Option<f64>, every: &Option<Duration>) -> Result<(), Problem> {
    match (load, every) {
        // NaN fails the comparison. Overload is allowed, since it is worth studying.
        (Some(load), None) if !(*load > 0.0 && *load <= 100.0) => Err(Problem::new(
            "load",
            format!("{load} is not a load; write a share of the link rate above 0, such as 0.6"),
        )),
        (None, Some(Duration::ZERO)) => {
            Err(Problem::new("every", "at 0 all messages would arrive at once; write a time above 0, such as \"1us\""))
        }
        (Some(_), None) | (None, Some(_)) => Ok(()),
        (Some(_), Some(_)) => Err(Problem::new("load", "given beside every, which already sets it; remove one")),
        (None, None) => Err(Problem::new("load", "missing: set load, such as 0.6, or every, such as \"1us\"")),
    }
}

impl Counting {
    /// Bytes counted for each byte of payload.
    pub(crate) fn factor(self) -> Result<f64, Problem> {
        match self {
            Counting::Payload => Ok(1.0),
            Counting::Wire(Wire { payload: Bytes(0), .. }) => {
                Err(Problem::new("counting.wire.payload", "a full packet carries at least 1B"))
            }
            Counting::Wire(Wire { payload, header }) => Ok((payload.0 as f64 + header.0 as f64) / payload.0 as f64),
        }
    }
}
