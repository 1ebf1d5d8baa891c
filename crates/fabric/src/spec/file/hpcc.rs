use std::collections::BTreeMap;

use units::{Duration, NodeId, Problem, Rate};

use super::Lines;
use crate::{Builder, Fabric};

const NODES_MAX: u32 = 1 << 21;
const LINKS_MAX: u32 = 1 << 23;
/// The first line of SimAI's topology: numbers of nodes, of accelerators in a server, of NVSwitches, of switches and
/// of links, and the accelerator's name. Its links are written as HPCC's.
const SIMAI_FIELDS: usize = 6;

/// HPCC's `topology.txt`: a line of three counts (nodes, switches, links), the numbers of the switches, then one line
/// for each link: two node numbers, rate, propagation delay and error rate. Every other node is a host.
///
/// Nodes keep the file's numbers in their names ("host17", "switch320"), which `flow.txt` refers to. The error rate
/// must be 0, as in all of HPCC's own files; use a failure with `loss` instead. Lines beyond the announced number of
/// links are ignored, as in HPCC, whose own `mix/topology.txt` explains its format there.
pub(super) fn parse(lines: Lines<'_>, switch_delay: Duration) -> Result<Fabric, Problem> {
    let mut rest = lines.iter().peekable();
    let mut counts = rest.next().ok_or_else(|| lines.ends_before("its line of counts"))?;
    if counts.fields.clone().count() == SIMAI_FIELDS {
        return Err(counts.error(
            "six fields begin SimAI's topology, with NVSwitches and kinds of accelerators, which is not read; HPCC's \
             begins with three: the numbers of nodes, of switches and of links",
        ));
    }
    let nodes = counts.count("the number of nodes", 1..=NODES_MAX)?;
    let switches = counts.count("the number of switches", 0..=nodes)?;
    let links = counts.count("the number of links", 0..=LINKS_MAX)?;
    counts.end()?;

    // The numbers may be spread over lines: HPCC reads them as one stream.
    let mut switch_of = BTreeMap::new();
    while switch_of.len() < switches as usize {
        let mut line = rest.next().ok_or_else(|| lines.ends_before("the numbers of all switches"))?;
        while line.fields.clone().next().is_some() {
            let number = line.count("a switch's number", 0..=nodes - 1)?;
            if switch_of.len() == switches as usize {
                return Err(
                    line.error(&format!("switch {number} is one more than the {switches} that the first line gives"))
                );
            }
            if switch_of.insert(number, 0).is_some() {
                return Err(line.error(&format!("switch {number} is listed twice")));
            }
        }
    }
    for (index, id) in switch_of.values_mut().enumerate() {
        *id = index as u32;
    }
    let is_host = |number: &u32| !switch_of.contains_key(number);
    let host_of: BTreeMap<u32, u32> = (0..nodes).filter(is_host).zip(0..).collect();
    let host_names = host_of.keys().map(|number| format!("host{number}")).collect();
    let switch_names = switch_of.keys().map(|number| (format!("switch{number}"), switch_delay)).collect();

    let mut fabric = Builder::new(host_names, switch_names);
    for _ in 0..links {
        let mut line = rest.next().ok_or_else(|| lines.ends_before(&format!("all {links} links")))?;
        let mut end = |field: &str| -> Result<NodeId, Problem> {
            let number = line.count(field, 0..=nodes - 1)?;
            Ok(host_of.get(&number).map_or_else(|| fabric.switch(switch_of[&number]), |&host| NodeId(host)))
        };
        let (a, b) = (end("the link's first node")?, end("the link's second node")?);
        let (rate, propagation): (Rate, Duration) = (line.value("the link's rate")?, line.value("the link's delay")?);
        let error_rate: f64 = line.value("the link's error rate")?;
        if error_rate != 0.0 {
            return Err(line.error(&format!("the link's error rate is {error_rate}; only 0 is supported")));
        }
        line.end()?;
        fabric.cable(a, b, rate, propagation);
    }
    fabric.finish()
}
