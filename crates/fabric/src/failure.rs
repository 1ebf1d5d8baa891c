//! What goes wrong with links and switches, and when: as a scenario says it, and as the timeline that follows.
//!
//! Three kinds. What is *dead* carries nothing, and by default routing learns of it. What is *degraded* (a "grey failure": lost packets, wrong
//! bits, a fraction of the rate) works badly, and nobody is told: routes, ideal times and what transports take for the line rate stay as they are.
//! What *flaps* is one of the two again and again.

mod epochs;
mod news;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, LinkId, NodeId, Problem, Rate, Time};

use crate::{Fabric, Failures};
pub use epochs::{Change, Epoch, LinkNoise, Rerouting, Whom, epochs};

/// A link or a switch that fails at a given time and may come back, or a link that works badly for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// When it fails.
    pub at: Time,
    /// When it works again; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The two ends of the link, such as ["leaf0", "spine2"]; both directions fail, and so do all cables in parallel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<[String; 2]>,
    /// The switch, such as "spine2"; exactly one of `link` and `switch` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// With `link`: the link does not fail, but damages each bit of a packet with this probability in both directions, such as 1e-9. A packet that is hit is
    /// lost where the link ends, by Ethernet's frame check sequence (also in a switch that cuts through), or by the checksum of a transport that
    /// brings its own. Frames of a flow control are not hit. Routes stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_error_rate: Option<f64>,
    /// With `link`: the link does not fail, but loses each packet with this probability in both directions, such as 1e-3, whatever its length. Frames
    /// of a flow control are not lost. Routes stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// With `link`: the link does not fail, but transmits at this rate in both directions, such as "10Gbps" where it should do 100Gbps. A packet that is being
    /// sent keeps its time. Nobody is told: routes stay as they are, and so does what transports take for the link's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// With `bit_error_rate`, `loss` or `rate`: only what the first end of `link` sends to the second is affected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub one_way: bool,
    /// It fails and comes back again and again from `at` on; the last time it is back by `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flap: Option<Flap>,
    /// Whether routing learns that the link or switch is dead, and that it works again. If not, packets meet it for as long as it lasts.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub reroute: bool,
}

/// How something fails again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flap {
    /// For how long each time.
    pub down: Duration,
    /// From the beginning of one time to that of the next.
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
    /// The key that makes it a link that works badly, if it does not fail altogether.
    pub fn degrades_by(&self) -> Option<&'static str> {
        let named = [
            ("bit_error_rate", self.bit_error_rate.is_some()),
            ("loss", self.loss.is_some()),
            ("rate", self.rate.is_some()),
        ];
        named.into_iter().find(|(_, is_there)| *is_there).map(|(key, _)| key)
    }

    /// Whether routing learns of it.
    pub fn is_news(&self) -> bool {
        self.degrades_by().is_none() && self.reroute
    }

    /// How long it lasts each time; [`Duration::MAX`] if for ever.
    pub fn lasts(&self) -> Duration {
        let whole = self.until.map_or(Duration::MAX, |until| until.since(self.at));
        self.flap.map_or(whole, |flap| flap.down)
    }

    /// When it begins, each time, and when it ends, if it does.
    fn spans(&self) -> impl Iterator<Item = (Time, Option<Time>)> + '_ {
        let (times, every) = self.flap.map_or((1, Duration::ZERO), |flap| (self.times(), flap.every));
        (0..times).map(move |turn| {
            let begin = self.at + every * turn;
            (begin, self.flap.map_or(self.until, |flap| Some(begin + flap.down)))
        })
    }

    /// How often it flaps; the last time is over by `until`. The flap has been checked.
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

    /// What its type can't forbid, and the links or the switch that it names.
    fn resolve(&self, fabric: &Fabric) -> Result<Failures, Problem> {
        if self.until.is_some_and(|until| until <= self.at) {
            return Err(Problem::new("until", format!("must be later than at = \"{}\"", self.at)));
        }
        self.check_flap()?;
        self.check_degraded()?;
        match (&self.link, &self.switch) {
            (Some([a, b]), None) => {
                let end = |name: &str| fabric.find(name).map_err(|problem| problem.under("link"));
                let links = cable(fabric, end(a)?, end(b)?, self.one_way)?;
                let slowest = links.iter().map(|&link| fabric.link(link).rate).min();
                if let (Some(rate), Some(own)) = (self.rate, slowest)
                    && rate >= own
                {
                    let message = format!("{rate} is not below the link's own rate, {own}");
                    return Err(Problem::new("rate", message));
                }
                Ok(Failures { links: links.into_iter().collect(), ..Failures::default() })
            }
            (None, Some(name)) => {
                let node = fabric.find(name).map_err(|problem| problem.under("switch"))?;
                let switch = fabric.as_switch(node).ok_or_else(|| {
                    Problem::new("switch", format!("\"{name}\" is a host; to cut it off, let its link fail"))
                })?;
                Ok(Failures { switches: [switch].into(), ..Failures::default() })
            }
            _ => Err(Problem::new(
                "",
                "names what fails by exactly one of `link = [\"leaf0\", \"spine2\"]` and `switch`",
            )),
        }
    }

    fn check_flap(&self) -> Result<(), Problem> {
        let Some(Flap { down, every }) = self.flap else { return Ok(()) };
        let Some(until) = self.until else {
            return Err(Problem::new("flap", "needs an end: say until when by `until`"));
        };
        if down == Duration::ZERO || down >= every {
            let message =
                format!("{down} is not between 0 and every = \"{every}\": each time it comes back before the next");
            return Err(Problem::new("flap.down", message));
        }
        if down > until.since(self.at) {
            let message =
                format!("{down} is longer than the {} from at to until: it would never fail", until.since(self.at));
            return Err(Problem::new("flap.down", message));
        }
        Ok(())
    }

    fn check_degraded(&self) -> Result<(), Problem> {
        if let Some(rate) = self.bit_error_rate {
            // A bit that is more often wrong than right would be right the other way round. NaN is neither.
            if !(rate > 0.0 && rate <= 0.5) {
                let message = format!("{rate} is no probability of a wrong bit: above 0 and up to 0.5, such as 1e-9");
                return Err(Problem::new("bit_error_rate", message));
            }
        }
        if let Some(loss) = self.loss
            && !(loss > 0.0 && loss <= 1.0)
        {
            let message = format!("{loss} is no probability of a lost packet: above 0 and up to 1, such as 1e-3");
            return Err(Problem::new("loss", message));
        }
        // A thousandth of the slowest Ethernet; far below it, a packet's time does not fit.
        if let Some(rate) = self.rate
            && rate < Rate::from_bps(1_000_000)
        {
            let message = format!("{rate} is less than 1Mbps; a link that sends nothing fails: leave rate out");
            return Err(Problem::new("rate", message));
        }
        match self.degrades_by() {
            Some(key) if self.link.is_none() => {
                Err(Problem::new(key, "belongs to a link: name its ends by `link = [\"leaf0\", \"spine2\"]`"))
            }
            Some(key) if !self.reroute => {
                Err(Problem::new("reroute", format!("has no effect: routing never learns of {key}; delete it")))
            }
            None if self.one_way => {
                let message = "belongs to bit_error_rate, loss or rate; a dead link is dead in both directions";
                Err(Problem::new("one_way", message))
            }
            _ => Ok(()),
        }
    }
}

/// The links between two neighbours: from `a` to `b`, and back unless only `one_way` counts.
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
