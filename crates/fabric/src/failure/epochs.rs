//! The timeline of changes that a list of failures makes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use units::{Duration, LinkId, Problem, Rate, Stream, SwitchId, Time};

use super::{FailureSpec, news};
use crate::{Fabric, Failures, Routes};

/// A change of the fabric at a known time.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// Time from which the change holds.
    pub at: Time,
    /// The change.
    pub change: Change,
}

/// The change that an [`Epoch`] makes.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Everything that is dead from now on. This is the complete set: anything not in it works.
    Dead(Failures),
    /// All links that lose or corrupt packets from now on, by link id. This is the complete set.
    Noisy(Vec<(LinkId, LinkNoise)>),
    /// All links that run below their rate from now on, by link id, and their rates. This is the complete set.
    Slow(Vec<(LinkId, Rate)>),
    /// The routing tables that these switches use from now on.
    Reroute(Arc<Routes>, RerouteScope),
}

/// The switches that a change of routes concerns, with their hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RerouteScope {
    /// All switches at once.
    All,
    /// These switches, in order.
    Switches(Vec<SwitchId>),
}

/// How switches learn of failures and change their routes.
#[derive(Clone, Copy, Debug)]
pub struct Rerouting {
    /// Time until the adjacent switches detect a change.
    pub delay: Duration,
    /// Time a switch takes to tell its neighbours.
    pub per_hop: Duration,
    /// Longest time from hearing of a change until a switch forwards by new tables. Each switch draws its own time
    /// once, uniformly between 0 and this.
    pub compute_max: Duration,
    /// Seed of the run.
    pub seed: u64,
}

impl Rerouting {
    /// All switches have new routes `delay` after a change.
    pub const fn at_once(delay: Duration) -> Rerouting {
        Rerouting { delay, per_hop: Duration::ZERO, compute_max: Duration::ZERO, seed: 0 }
    }

    /// Whether all switches have new routes at once.
    pub fn is_at_once(&self) -> bool {
        self.per_hop == Duration::ZERO && self.compute_max == Duration::ZERO
    }
}

/// The effect of a degraded link on packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkNoise {
    /// Probability that a bit is corrupted.
    pub bit_error_rate: f64,
    /// Probability that a packet is lost.
    pub loss: f64,
}

/// Most failures of a run, repetitions counted. Each may change the routes of every switch.
const TIMES_MAX: u64 = 10_000;
/// Most changes times links, if news travels from switch to switch: some seconds of computation.
const TOLD_MAX: u64 = 1 << 25;
/// Most cells of all routing tables of a run: 3 GiB of them.
const TABLES_MAX: u64 = 1 << 28;

/// The timeline of changes that a list of failures makes, in order of time. `rerouting` says how the routes follow;
/// `whole` are the routes without failures. At equal times, failures and repairs come before new routes. Degraded links
/// are not routed around.
///
/// A second failure does not postpone the routes around the first, because news of each travels on its own. Until its
/// own routes are in use, packets may be sent into the second failure.
pub fn epochs(
    fabric: &Fabric,
    specs: &[FailureSpec],
    rerouting: &Rerouting,
    whole: &Arc<Routes>,
) -> Result<Vec<Epoch>, Problem> {
    let failures: Vec<Failures> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| spec.resolve(fabric).map_err(|problem| problem.under(format!("[{index}]"))))
        .collect::<Result<_, _>>()?;
    check_times(specs)?;
    let all: Vec<(&FailureSpec, &Failures)> = specs.iter().zip(&failures).collect();
    let of =
        |wanted: &dyn Fn(&FailureSpec) -> bool| -> Vec<_> { all.iter().copied().filter(|of| wanted(of.0)).collect() };
    let mut epochs = Vec::new();
    let fatal = of(&|spec| spec.degrades_by().is_none());
    for now in times(&fatal) {
        epochs.push(Epoch { at: now, change: Change::Dead(dead_at(&fatal, now)) });
    }
    // One routing table for each set of dead links and switches, however often the set recurs.
    let mut known = BTreeMap::from([(Failures::default(), whole.clone())]);
    let news = of(&FailureSpec::is_news);
    let news: Vec<(Time, Failures)> = times(&news).into_iter().map(|now| (now, dead_at(&news, now))).collect();
    let heard: Vec<Announcement> = if rerouting.is_at_once() {
        news.into_iter().map(|(at, dead)| ((at.saturating_add(rerouting.delay), dead), RerouteScope::All)).collect()
    } else {
        let dead: Vec<(Time, Failures)> = times(&fatal).into_iter().map(|now| (now, dead_at(&fatal, now))).collect();
        one_by_one(fabric, &dead, &news, rerouting)?
    };
    for ((at, dead), whom) in heard {
        if !known.contains_key(&dead) {
            let cells = u64::from(fabric.switches) * whole.racks().len() as u64;
            if known.len() as u64 * cells > TABLES_MAX {
                let message = format!(
                    "failures need {} different routing tables for {} switches, which do not fit in memory; write \
                     fewer failures, or fewer at a time",
                    known.len() + 1,
                    fabric.switches
                );
                return Err(Problem::new("", message));
            }
        }
        let routes = match known.entry(dead) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => {
                let routes = Arc::new(Routes::compute_or_stop(fabric, new.key())?);
                new.insert(routes).clone()
            }
        };
        epochs.push(Epoch { at, change: Change::Reroute(routes, whom) });
    }
    let noisy = of(&|spec| spec.bit_error_rate.is_some() || spec.loss.is_some());
    for now in times(&noisy) {
        epochs.push(Epoch { at: now, change: Change::Noisy(noise_at(&noisy, now)) });
    }
    let slow = of(&|spec| spec.rate.is_some());
    for now in times(&slow) {
        epochs.push(Epoch { at: now, change: Change::Slow(rates_at(&slow, now)) });
    }
    epochs.sort_by_key(|epoch| (epoch.at, matches!(epoch.change, Change::Reroute(..))));
    Ok(epochs)
}

/// Which switches take what to be dead from a given time on.
type Announcement = ((Time, Failures), RerouteScope);

/// The links that each switch takes for dead, and from which time on. Switches that learn the same at the same time are
/// listed together.
fn one_by_one(
    fabric: &Fabric,
    dead: &[(Time, Failures)],
    news: &[(Time, Failures)],
    rerouting: &Rerouting,
) -> Result<Vec<Announcement>, Problem> {
    let told = (news.len() as u64).saturating_mul(fabric.links.len() as u64);
    if told > TOLD_MAX {
        let message = format!(
            "{} changes would each be spread over {} links, which is too much work; write fewer failures, or leave \
             out reroute_per_hop and reroute_compute_max",
            news.len(),
            fabric.links.len()
        );
        return Err(Problem::new("", message));
    }
    let computes = |switch: SwitchId| {
        let most = rerouting.compute_max.ps();
        Duration::from_ps(Stream::new(rerouting.seed, u64::from(switch.0), "reroute").below(most.saturating_add(1)))
    };
    let mut together: BTreeMap<(Time, Failures), Vec<SwitchId>> = BTreeMap::new();
    for heard in news::spread(fabric, dead, news, rerouting.delay, rerouting.per_hop) {
        let at = heard.at.saturating_add(computes(heard.switch));
        together.entry((at, heard.dead)).or_default().push(heard.switch);
    }
    Ok(together
        .into_iter()
        .map(|(what, mut switches)| {
            switches.sort_unstable();
            (what, RerouteScope::Switches(switches))
        })
        .collect())
}

fn check_times(specs: &[FailureSpec]) -> Result<(), Problem> {
    let mut sum = 0u64;
    for (index, spec) in specs.iter().enumerate() {
        sum = sum.saturating_add(spec.times());
        if sum > TIMES_MAX {
            let message = format!(
                "it fails {} times, and all failures together may happen {TIMES_MAX} times; let it flap at longer \
                 intervals, or for a shorter time",
                spec.times()
            );
            return Err(Problem::new(format!("[{index}].flap"), message));
        }
    }
    Ok(())
}

/// All times at which one of these failures begins or ends.
fn times(specs: &[(&FailureSpec, &Failures)]) -> Vec<Time> {
    let mut times: Vec<Time> =
        specs.iter().flat_map(|of| of.0.spans()).flat_map(|(begin, end)| [Some(begin), end]).flatten().collect();
    times.sort_unstable();
    times.dedup();
    times
}

fn lasting<'a>(
    specs: &'a [(&FailureSpec, &Failures)],
    now: Time,
) -> impl Iterator<Item = (&'a FailureSpec, &'a Failures)> {
    specs.iter().copied().filter(move |of| of.0.lasts_at(now))
}

fn dead_at(specs: &[(&FailureSpec, &Failures)], now: Time) -> Failures {
    let mut dead = Failures::default();
    for (_, failure) in lasting(specs, now) {
        dead.links.extend(&failure.links);
        dead.switches.extend(&failure.switches);
    }
    dead
}

fn noise_at(specs: &[(&FailureSpec, &Failures)], now: Time) -> Vec<(LinkId, LinkNoise)> {
    // A packet that passes two sources of errors is intact if both leave it intact: (of a bit, of a packet).
    let mut whole: BTreeMap<LinkId, (f64, f64)> = BTreeMap::new();
    for (spec, failure) in lasting(specs, now) {
        for &link in &failure.links {
            let (bit, packet) = whole.entry(link).or_insert((1.0, 1.0));
            *bit *= 1.0 - spec.bit_error_rate.unwrap_or(0.0);
            *packet *= 1.0 - spec.loss.unwrap_or(0.0);
        }
    }
    let noise = |(bit, packet): (f64, f64)| LinkNoise { bit_error_rate: 1.0 - bit, loss: 1.0 - packet };
    whole.into_iter().map(|(link, whole)| (link, noise(whole))).collect()
}

/// The rates of slowed links. If a link is slowed twice, the lower rate counts.
fn rates_at(specs: &[(&FailureSpec, &Failures)], now: Time) -> Vec<(LinkId, Rate)> {
    let mut rates: BTreeMap<LinkId, Rate> = BTreeMap::new();
    for (spec, failure) in lasting(specs, now) {
        for &link in &failure.links {
            let rate = spec.rate.expect("only those that slow a link are asked");
            rates.entry(link).and_modify(|known| *known = rate.min(*known)).or_insert(rate);
        }
    }
    rates.into_iter().collect()
}
