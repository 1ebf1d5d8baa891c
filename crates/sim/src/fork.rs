//! Forks: runs that go on from a checkpoint otherwise than its own run did. Many what-ifs need one warm-up.
//!
//! A fork has a scenario of its own. Its network is built from that scenario, and the state of the checkpoint is read
//! over it ([`driver::Fork`]). So a setting that the state does not hold is the fork's from then on, and one that it
//! holds can't change: [`KEYS`] says which is which. Events at set times (failures, messages that start) may
//! differ from the time of the checkpoint on: there a fork is the run that its scenario describes, packet for packet.
//! Where messages are left out, only the number of events may differ: a host notes when to wake up next, and may then
//! find nothing to do.
//!
//! # The seed
//! A fork has the seed of its checkpoint. All random streams go on from where they were: of hosts, switches, links and
//! transports. A class of traffic draws its messages from streams of its own, by its name, before anything runs. So
//! classes that a fork adds change no draw of another class, and two forks differ by what was set and nothing else. A
//! seed of its own is refused: the messages before the checkpoint were drawn with the first.

mod keys;
mod many;

use driver::{Cut, Fork};
use run::Plan;
use units::saved::Saver;
use units::{FlowId, Problem, Saved, Time};

use crate::Checkpoint;
use crate::part::{self, Part, ReceivedBytes};
pub use keys::{KEYS, Key, Says};
pub use many::fork;

/// The plans of a checkpoint's run and of one that goes on from there.
pub(crate) fn of<'a>(before: &'a Plan, after: &'a Plan) -> Fork<'a> {
    let same = before.flows.of_traffic() == after.flows.of_traffic();
    Fork { before, after, started: (!same).then(|| alike(before, after)) }
}

/// How many of the first messages are the same.
fn alike(before: &Plan, after: &Plan) -> usize {
    let (before, after) = (before.flows.of_traffic(), after.flows.of_traffic());
    before.iter().zip(after).take_while(|(one, other)| one == other).count()
}

/// Refuses a plan that can't go on from a checkpoint of the run with another, and returns the keys that differ.
pub(crate) fn check(from: &Checkpoint, before: &Plan, after: &Plan) -> Result<Vec<String>, Problem> {
    from.check(before)?;
    let keys = before.scenario.differences(&after.scenario);
    for key in &keys {
        let Key { says, .. } = keys::of(key);
        if let Says::Fixed(why) = says {
            return Err(Problem::new(key, format!("can't change in a fork: {why}")));
        }
    }
    check_transports(before, after)?;
    check_changes(from.at, before, after)?;
    check_flows(from.at, before, after)?;
    check_nodes(&keys, before, after)?;
    if after.horizon <= from.at {
        let message = format!("{} is not after the checkpoint, which is at {}", after.horizon, from.at);
        return Err(Problem::new("measure.end", message));
    }
    Ok(keys)
}

/// Each host has an endpoint for each transport, and packets name it by its number.
fn check_transports(before: &Plan, after: &Plan) -> Result<(), Problem> {
    let names = |plan: &Plan| plan.transports.iter().map(|of| of.name()).collect::<Vec<_>>();
    let (then, now) = (names(before), names(after));
    if then == now {
        return Ok(());
    }
    let keys = after.scenario.carriers().keys;
    let key = keys.iter().zip(&now).find(|(_, name)| !then.contains(name));
    let (key, name) = key.map_or(("transport".to_owned(), now.join(", ")), |(key, name)| (key.clone(), (*name).into()));
    let message = format!("can't change in a fork: hosts have state for {}, and not for {name}", then.join(", "));
    Err(Problem::new(key, message))
}

/// A setting that may change may still be in the state of some nodes: PFC keeps what follows from a buffer. Then nodes
/// that have done nothing differ.
fn check_nodes(keys: &[String], before: &Plan, after: &Plan) -> Result<(), Problem> {
    let of_nodes = |key: &&String| ["switch", "flow_control", "transport"].contains(&keys::of(key).group());
    let Some(key) = keys.iter().find(of_nodes) else { return Ok(()) };
    let nodes = |plan: &Plan| {
        let mut to = Saver::default();
        for Part(mut part, _) in part::parts(plan, &Cut::new(plan, 1), &ReceivedBytes::default(), || ()) {
            part.hosts.iter_mut().for_each(|of| drop(of.host.take_starts()));
            part.links.link_txs.save(&mut to);
            part.switches.save(&mut to);
            part.hosts.save(&mut to);
        }
        to.finish()
    };
    if nodes(before) == nodes(after) {
        return Ok(());
    }
    let message = "can't change in this fork: hosts or switches keep what follows from it, under this transport and \
                   flow control";
    Err(Problem::new(key, message))
}

/// Links and switches have failed as before, up to the checkpoint.
fn check_changes(at: Time, before: &Plan, after: &Plan) -> Result<(), Problem> {
    let past = |plan: &Plan| plan.changes.partition_point(|epoch| epoch.at < at);
    if before.changes[..past(before)] == after.changes[..past(after)] {
        return Ok(());
    }
    let (then, now) = (&before.scenario.failure, &after.scenario.failure);
    let place = (0..then.len().max(now.len())).find(|&place| then.get(place) != now.get(place));
    let key = place.map_or("reroute_delay".to_owned(), |place| format!("failure[{place}]"));
    let message = format!(
        "it changes what has happened to links, switches or routes before the checkpoint at {at}; only what comes at \
         that time or later can differ"
    );
    Err(Problem::new(key, message))
}

/// Messages that have started are the same ones under the same numbers.
fn check_flows(at: Time, before: &Plan, after: &Plan) -> Result<(), Problem> {
    let (then, now) = (before.flows.of_traffic(), after.flows.of_traffic());
    if then == now {
        return Ok(());
    }
    let refuse = |class: usize, message: String| Err(Problem::new(after.scenario.class_key(class), message));
    if !before.jobs.is_empty() || !after.jobs.is_empty() {
        return refuse(0, "beside jobs the traffic of a fork can't change: the numbers of their messages would".into());
    }
    if let Some(flow) = then.iter().find(|flow| flow.after.is_some()) {
        let message = "messages that wait for others (closed_loop) have numbers after all that start at set times, so \
                       beside them the traffic of a fork can't change";
        return refuse(usize::from(flow.class), message.into());
    }
    if !before.scenario.entity.is_empty() {
        return Err(Problem::new(
            "entity",
            "with entities the traffic of a fork can't change: nodes keep state by entity",
        ));
    }
    let same = alike(before, after);
    let early = |flow: &run::FlowInfo| flow.begins().is_none_or(|start| start < at) && flow.after.is_none();
    let other = [now.get(same), then.get(same)].into_iter().flatten().find(|flow| early(flow));
    let Some(flow) = other else { return Ok(()) };
    let class = usize::from(flow.class).min(after.scenario.traffic.len().saturating_sub(1));
    let message = format!(
        "message {} is another one than before, and starts at {}: up to the checkpoint at {at} all messages must stay \
         the same; let a new class of traffic start later (start = \"{at}\")",
        FlowId::from(same),
        flow.start
    );
    refuse(class, message)
}

#[cfg(test)]
mod tests;
