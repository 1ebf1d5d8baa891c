//! The timeline that a list of failures makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Duration, LinkId, Problem, Rate, Stream, SwitchId, Time};

use super::{FailureSpec, news};
use crate::{Fabric, Failures, Routes};

/// Something about the fabric that changes at a known time.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// From when on it holds.
    pub at: Time,
    /// What holds.
    pub change: Change,
}

/// What an [`Epoch`] brings.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// All that is dead from now on, whole and not as a difference; anything else works (again).
    Dead(Failures),
    /// All links that lose packets or damage bits from now on, whole and not as a difference, in order of their ids.
    Noisy(Vec<(LinkId, LinkNoise)>),
    /// All links that are slower than they should be from now on, whole and not as a difference, in order of their ids, and their rates.
    Slow(Vec<(LinkId, Rate)>),
    /// The tables that these switches use from now on.
    Reroute(Arc<Routes>, Whom),
}

/// Which switches, and the hosts below them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All, at once.
    All,
    /// These, in order.
    Switches(Vec<SwitchId>),
}

/// How news of what is dead becomes routes.
#[derive(Clone, Copy, Debug)]
pub struct Rerouting {
    /// How long until those notice that are next to what has changed.
    pub delay: Duration,
    /// How long a switch takes to tell the next.
    pub per_hop: Duration,
    /// Each switch takes a uniformly drawn time up to this from when it knows to when it forwards by it; always the same.
    pub compute_max: Duration,
    /// The run's.
    pub seed: u64,
}

impl Rerouting {
    /// All switches have new routes so long after a change.
    pub const fn at_once(delay: Duration) -> Rerouting {
        Rerouting { delay, per_hop: Duration::ZERO, compute_max: Duration::ZERO, seed: 0 }
    }

    /// Whether all switches have new routes at once.
    pub fn is_at_once(&self) -> bool {
        self.per_hop == Duration::ZERO && self.compute_max == Duration::ZERO
    }
}

/// What a link does to packets that pass it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkNoise {
    /// Each bit is wrong with this probability.
    pub bit_error_rate: f64,
    /// Each packet is lost with this probability.
    pub loss: f64,
}

/// How often all failures of a run together may begin: each may mean new routes for every switch.
const TIMES_MAX: u64 = 10_000;
/// Changes that are told from switch to switch, times links: some seconds.
const TOLD_MAX: u64 = 1 << 25;
/// Cells of all tables of a run: 3 GiB of them.
const TABLES_MAX: u64 = 1 << 28;

/// The timeline that a list of failures makes, in order of time: what is dead from when on and, after
/// each such change that is news and as `rerouting` says, the routes around it; `whole` are those around nothing. At equal times what is dead comes before
/// new routes. What only works badly is not routed around.
///
/// A second change within the delay does not hold the first one's routes back, just as each failure's news travels by
/// itself; until its own routes come, packets may meet the second failure.
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
    // One table a set of what is dead, however often it comes back.
    let mut known = BTreeMap::from([(Failures::default(), whole.clone())]);
    let news = of(&FailureSpec::is_news);
    let news: Vec<(Time, Failures)> = times(&news).into_iter().map(|now| (now, dead_at(&news, now))).collect();
    let heard: Vec<Told> = if rerouting.is_at_once() {
        news.into_iter().map(|(at, dead)| ((at.saturating_add(rerouting.delay), dead), Whom::All)).collect()
    } else {
        let dead: Vec<(Time, Failures)> = times(&fatal).into_iter().map(|now| (now, dead_at(&fatal, now))).collect();
        one_by_one(fabric, &dead, &news, rerouting)?
    };
    for ((at, dead), whom) in heard {
        if !known.contains_key(&dead) {
            let cells = u64::from(fabric.switches) * whole.racks().len() as u64;
            if known.len() as u64 * cells > TABLES_MAX {
                let message = format!(
                    "{} different tables of {} switches would not fit: fewer failures, or fewer at a time",
                    known.len() + 1,
                    fabric.switches
                );
                return Err(Problem::new("", message));
            }
        }
        let routes = known.entry(dead).or_insert_with_key(|dead| Arc::new(Routes::compute(fabric, dead)));
        epochs.push(Epoch { at, change: Change::Reroute(routes.clone(), whom) });
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

/// From when on what is taken to be dead, and by whom.
type Told = ((Time, Failures), Whom);

/// What each switch takes to be dead from when on; those that learn the same at the same time together.
fn one_by_one(
    fabric: &Fabric,
    dead: &[(Time, Failures)],
    news: &[(Time, Failures)],
    rerouting: &Rerouting,
) -> Result<Vec<Told>, Problem> {
    let told = (news.len() as u64).saturating_mul(fabric.links.len() as u64);
    if told > TOLD_MAX {
        let message = format!(
            "{} changes would be told over {} links each, one by one; fewer, or none of reroute_per_hop and reroute_compute_max",
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
            (what, Whom::Switches(switches))
        })
        .collect())
}

fn check_times(specs: &[FailureSpec]) -> Result<(), Problem> {
    let mut sum = 0u64;
    for (index, spec) in specs.iter().enumerate() {
        sum = sum.saturating_add(spec.times());
        if sum > TIMES_MAX {
            let message = format!(
                "it fails {} times, and all failures together no more than {TIMES_MAX}: let it flap at longer intervals, or for a shorter time",
                spec.times()
            );
            return Err(Problem::new(format!("[{index}].flap"), message));
        }
    }
    Ok(())
}

/// When anything of these begins or ends.
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
    // What passes two sources of errors is whole if both leave it so: (a bit's, a packet's).
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

/// Where a link is slowed twice, it is as slow as the slower.
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
