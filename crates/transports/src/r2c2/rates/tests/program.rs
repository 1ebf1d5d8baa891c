//! The MP algorithm (Radunovic and Le Boudec, A Unified Framework for Max-min and Min-max Fairness with Applications,
//! ToN 2007, section 4.1), which the paper names as the one for general networks: maximise the least, fix what can't
//! have more, repeat.

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome, Variable};

use super::{Flow, GBPS, takes_part};

/// What a level may give way, in Gbps, so that rounding makes nothing infeasible.
const SLACK: f64 = 1e-9;
/// What that may amount to, where a flow yields another what it counts many times.
const NOISE: f64 = 1e-6;

/// The max-min fair rates in Gbps for flows that all pass a link or have a demand; priorities one after the other.
pub fn max_min(capacity_bps: &[f64], flows: &[Flow<'_>]) -> Vec<f64> {
    let mut levels: Vec<Option<f64>> = flows.iter().map(|flow| (!takes_part(flow)).then_some(0.0)).collect();
    let mut priorities: Vec<u8> = flows.iter().map(|flow| flow.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    for priority in priorities {
        loop {
            // Those that come later have nothing yet.
            let later = flows.iter().map(|flow| (flow.priority > priority).then_some(0.0));
            let fixed: Vec<Option<f64>> = levels.iter().zip(later).map(|(level, later)| level.or(later)).collect();
            if !fixed.contains(&None) {
                break;
            }
            let least = solve(capacity_bps, flows, &fixed, 0.0, None);
            for flow in (0..flows.len()).filter(|&flow| fixed[flow].is_none()) {
                if solve(capacity_bps, flows, &fixed, least, Some(flow)) <= least + NOISE {
                    levels[flow] = Some(least);
                }
            }
            assert!(levels.iter().zip(&fixed).any(|(now, before)| before.is_none() && now.is_some()), "{fixed:?}");
        }
    }
    levels.iter().zip(flows).map(|(level, flow)| level.expect("each priority has its turn") * flow.weight).collect()
}

/// In Gbps for a weight of 1: the most that all flows that are not fixed can have at once, or, if all have `least`, the
/// most that `one` of them can.
fn solve(capacity_bps: &[f64], flows: &[Flow<'_>], fixed: &[Option<f64>], least: f64, one: Option<usize>) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let all = one.is_none().then(|| problem.add_var(1.0, (0.0, f64::INFINITY)));
    let level = |flow: usize| {
        let aim = if one == Some(flow) { 1.0 } else { 0.0 };
        let bounds = match fixed[flow] {
            Some(level) => (f64::max(0.0, level - SLACK), level),
            None => (f64::max(0.0, least - SLACK), flows[flow].demand / GBPS / flows[flow].weight),
        };
        problem.add_var(aim, bounds)
    };
    let levels: Vec<Variable> = (0..flows.len()).map(level).collect();
    for (link, capacity) in capacity_bps.iter().enumerate() {
        let passes = flows.iter().zip(&levels).flat_map(|(flow, &level)| {
            let here = flow.links.iter().filter(move |passed| passed.link.index() == link);
            here.map(move |passed| (level, f64::from(passed.weight) * flow.weight))
        });
        problem.add_constraint(passes.collect::<Vec<_>>(), ComparisonOp::Le, capacity / GBPS);
    }
    for (flow, &level) in levels.iter().enumerate() {
        if let (Some(all), None) = (all, fixed[flow]) {
            problem.add_constraint([(level, 1.0), (all, -1.0)], ComparisonOp::Ge, 0.0);
        }
    }
    match problem.solve().expect("rates of zero are feasible") {
        SolveOutcome::Solution(solution) => solution.objective(),
        SolveOutcome::Interrupted(_) => unreachable!("no limit was set"),
    }
}
