//! Failures of links and switches: as a scenario states them, and as the timeline of changes that follows.
//!
//! There are three kinds. A *dead* link or switch carries nothing, and by default routing learns of it. A *degraded*
//! link (a "grey failure") loses packets, corrupts bits or runs below its rate, and routing does not notice: routes,
//! ideal times and the line rates that transports assume stay the same. A *flapping* link or switch goes through one of
//! these again and again.

mod epochs;
mod news;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, LinkId, NodeId, Problem, Rate, Time};

use crate::{Fabric, Failures};
pub use epochs::{Change, Epoch, LinkNoise, RerouteScope, Rerouting, epochs};

/// A failure: a link or a switch that goes down, or a link that is degraded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// Time of the failure.
    pub at: Time,
    /// Time of the repair. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The two ends of the link, such as ["leaf0", "spine2"]. Both directions fail, and all parallel cables with them.
    /// Give either `link` or `switch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<[String; 2]>,
    /// The switch, such as "spine2". Give either `link` or `switch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// With `link`: degrades the link instead of taking it down. Each bit of a packet is corrupted with this
    /// probability, such as 1e-9, in both directions. Ethernet's frame check sequence drops a corrupted packet at the
    /// end of the link (also in a cut-through switch), unless its transport has a checksum of its own. Flow-control
    /// frames are not corrupted. Routes stay the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_error_rate: Option<f64>,
    /// With `link`: degrades the link instead of taking it down. Each packet is lost with this probability, such as
    /// 1e-3, in both directions and whatever its length. Flow-control frames are not lost. Routes stay the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// With `link`: degrades the link instead of taking it down. It transmits at this rate in both directions, such as
    /// "10Gbps" instead of 100Gbps. A transmission that has begun keeps its rate. Nobody is told: routes and the link
    /// rate that transports assume stay the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// With `bit_error_rate`, `loss` or `rate`: affects only packets from the first end of `link` to the second.
    /// Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub one_way: bool,
    /// Makes the failure repeat from `at` on. The last repetition ends by `until`. Default: no repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flap: Option<Flap>,
    /// Whether routing learns of the failure and of the repair. If false, switches keep sending packets into it.
    /// Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub reroute: bool,
}

/// A repeating failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flap {
    /// Duration of each failure.
    pub down: Duration,
    /// Time from the start of one failure to the start of the next.
    pub every: Duration,
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Default for FailureSpec {
    fn default() -> FailureSpec {
        FailureSpec {
            at: Time::ZERO,
            until: None,
            link: None,
            switch: None,
            bit_error_rate: None,
            loss: None,
            rate: None,
            one_way: false,
            flap: None,
            reroute: true,
        }
    }
}

impl FailureSpec {
    /// The key that makes this a degraded link; `None` if the link or switch is dead.
    pub fn degrades_by(&self) -> Option<&'static str> {
        let named = [
            ("bit_error_rate", self.bit_error_rate.is_some()),
            ("loss", self.loss.is_some()),
            ("rate", self.rate.is_some()),
        ];
        named.into_iter().find(|(_, is_there)| *is_there).map(|(key, _)| key)
    }

    /// Whether routing learns of the failure.
    pub fn is_news(&self) -> bool {
        self.degrades_by().is_none() && self.reroute
    }

    /// Duration of each failure; [`Duration::MAX`] if there is no repair.
    pub fn lasts(&self) -> Duration {
        let whole = self.until.map_or(Duration::MAX, |until| until.since(self.at));
        self.flap.map_or(whole, |flap| flap.down)
    }

    /// Start of each failure, and its end if there is one.
    fn spans(&self) -> impl Iterator<Item = (Time, Option<Time>)> + '_ {
        let (times, every) = self.flap.map_or((1, Duration::ZERO), |flap| (self.times(), flap.every));
        (0..times).map(move |turn| {
            let begin = self.at + every * turn;
            (begin, self.flap.map_or(self.until, |flap| Some(begin + flap.down)))
        })
    }

    /// Number of repetitions, the last of which ends by `until`. The flap must have been checked.
    fn times(&self) -> u64 {
        let (Some(flap), Some(until)) = (self.flap, self.until) else { return 1 };
        (until.since(self.at) - flap.down).ps() / flap.every.ps() + 1
    }

    fn lasts_at(&self, now: Time) -> bool {
        if now < self.at || self.until.is_some_and(|until| until <= now) {
            return false;
        }
        self.flap.is_none_or(|flap| {
            let turn = now.since(self.at).ps() / flap.every.ps();
            turn < self.times() && now.since(self.at).ps() % flap.every.ps() < flap.down.ps()
        })
    }

    /// Checks what the types can't express and resolves the names of links and switches.
    fn resolve(&self, fabric: &Fabric) -> Result<Failures, Problem> {
        if self.until.is_some_and(|until| until <= self.at) {
            return Err(Problem::new("until", format!("must be later than at = \"{}\"", self.at)));
        }
        self.check_flap()?;
        self.check_degraded()?;
        match (&self.link, &self.switch) {
            (Some([a, b]), None) => {
                let end = |name: &str| fabric.find(name).map_err(|problem| problem.under("link"));
                let links = cable(fabric, end(a)?, end(b)?, self.one_way && self.degrades_by().is_some())?;
                let slowest = links.iter().map(|&link| fabric.link(link).rate).min();
                if let (Some(rate), Some(own)) = (self.rate, slowest)
                    && rate >= own
                {
                    let message = format!("{rate} is not below the link's normal rate, {own}");
                    return Err(Problem::new("rate", message));
                }
                Ok(Failures { links: links.into_iter().collect(), ..Failures::default() })
            }
            (None, Some(name)) => {
                let node = fabric.find(name).map_err(|problem| problem.under("switch"))?;
                let switch = fabric.as_switch(node).ok_or_else(|| {
                    Problem::new(
                        "switch",
                        format!("\"{name}\" is a host, and only switches fail; to cut it off, let its link fail"),
                    )
                })?;
                Ok(Failures { switches: [switch].into(), ..Failures::default() })
            }
            _ => Err(Problem::new(
                "",
                "needs exactly one of `switch` and `link`, such as link = [\"leaf0\", \"spine2\"]",
            )),
        }
    }

    fn check_flap(&self) -> Result<(), Problem> {
        let Some(Flap { down, every }) = self.flap else { return Ok(()) };
        let Some(until) = self.until else {
            return Err(Problem::new("flap", "needs an end; set `until`"));
        };
        if down == Duration::ZERO || down >= every {
            let message = format!(
                "{down} is not between 0 and every = \"{every}\": the link must come up again before it next fails"
            );
            return Err(Problem::new("flap.down", message));
        }
        if down > until.since(self.at) {
            let message = format!(
                "{down} is longer than the {} between at and until, so that it would never fail; write less",
                until.since(self.at)
            );
            return Err(Problem::new("flap.down", message));
        }
        Ok(())
    }

    fn check_degraded(&self) -> Result<(), Problem> {
        if let Some(rate) = self.bit_error_rate {
            // A bit error rate above 0.5 would invert the signal. The comparison also refuses NaN.
            if !(rate > 0.0 && rate <= 0.5) {
                let message =
                    format!("{rate} is not a bit error rate; write a number above 0 and up to 0.5, such as 1e-9");
                return Err(Problem::new("bit_error_rate", message));
            }
        }
        if let Some(loss) = self.loss
            && !(loss > 0.0 && loss <= 1.0)
        {
            let message = format!("{loss} is not a loss rate; write a probability above 0 and up to 1, such as 1e-3");
            return Err(Problem::new("loss", message));
        }
        // A thousandth of the slowest Ethernet. Transmission times at much lower rates overflow.
        if let Some(rate) = self.rate
            && rate < Rate::from_bps(1_000_000)
        {
            let message =
                format!("{rate} is less than 1Mbps; write at least that, or leave rate out for a link that is down");
            return Err(Problem::new("rate", message));
        }
        match self.degrades_by() {
            Some(key) if self.link.is_none() => {
                Err(Problem::new(key, "needs a link; name its ends, such as link = [\"leaf0\", \"spine2\"]"))
            }
            _ => Ok(()),
        }
    }

    /// Settings that have no effect beside the others.
    pub fn advice(&self) -> Vec<Problem> {
        match self.degrades_by() {
            Some(key) if !self.reroute => {
                vec![Problem::new(
                    "reroute",
                    format!("has no effect, because routing never learns of {key}; delete it"),
                )]
            }
            None if self.one_way => {
                let message = "has no effect without bit_error_rate, loss or rate, because a failed link fails in \
                               both directions; delete it";
                vec![Problem::new("one_way", message)]
            }
            _ => Vec::new(),
        }
    }
}

/// The links from `a` to `b` and, unless `one_way`, those from `b` to `a`.
fn cable(fabric: &Fabric, a: NodeId, b: NodeId, one_way: bool) -> Result<Vec<LinkId>, Problem> {
    let ways = |link| [Some(link), (!one_way).then(|| Fabric::reverse(link))];
    let links: Vec<LinkId> = fabric.links_between(a, b).flat_map(ways).flatten().collect();
    if links.is_empty() {
        let name = |node: NodeId| &fabric.names[node.index()];
        let neighbours: Vec<&str> =
            fabric.ports[a.index()].iter().take(8).map(|&link| name(fabric.link(link).to).as_str()).collect();
        let message =
            format!("no link joins {} and {}; {} is joined to {}", name(a), name(b), name(a), neighbours.join(", "));
        return Err(Problem::new("link", message));
    }
    Ok(links)
}
