use std::collections::BTreeMap;

use units::{Duration, NodeId, Problem, Rate};

use super::{Line, Lines};
use crate::{Builder, Fabric, names};

/// Our own format. Nodes have any names and are declared before a link names them. Ports are numbered in the order of
/// the links. Each switch with hosts becomes a group.
pub(super) fn parse(lines: Lines<'_>, switch_delay: Duration) -> Result<Fabric, Problem> {
    let mut nodes = Nodes::default();
    let mut cables = Vec::new();
    for mut line in lines.iter() {
        match line.word("the kind of line")? {
            "host" => {
                nodes.declare(Kind::Host, line.word("the host's name")?, &line)?;
                while let Some(name) = line.fields.next() {
                    nodes.declare(Kind::Host, name, &line)?;
                }
            }
            "switch" => {
                let name = line.word("the switch's name")?;
                let delay = if line.fields.clone().next().is_some() { line.value("its delay")? } else { switch_delay };
                nodes.declare(Kind::Switch(delay), name, &line)?;
                line.end()?;
            }
            "link" => {
                let mut ends = [""; 2];
                for end in &mut ends {
                    *end = line.word("an end of the link")?;
                    nodes.find(end, &line)?;
                }
                let (rate, propagation): (Rate, Duration) = (line.value("its rate")?, line.value("its propagation")?);
                cables.push((ends, rate, propagation));
                line.end()?;
            }
            other => {
                return Err(line.unknown("kind of line", other, &["host", "switch", "link"]));
            }
        }
    }
    Builder::check_size(nodes.of.len() as u128, cables.len() as u128)?;
    let mut fabric = Builder::new(nodes.hosts, nodes.switches);
    for ([a, b], rate, propagation) in cables {
        let [a, b] = [a, b].map(|name| match nodes.of[name] {
            (Kind::Host, index) => NodeId(index),
            (Kind::Switch(_), index) => fabric.switch(index),
        });
        fabric.cable(a, b, rate, propagation);
    }
    fabric.finish()
}

#[derive(Clone, Copy)]
enum Kind {
    Host,
    Switch(Duration),
}

#[derive(Default)]
struct Nodes<'a> {
    of: BTreeMap<&'a str, (Kind, u32)>,
    hosts: Vec<String>,
    switches: Vec<(String, Duration)>,
}

impl<'a> Nodes<'a> {
    fn declare(&mut self, kind: Kind, name: &'a str, line: &Line<'_>) -> Result<(), Problem> {
        let index = match kind {
            Kind::Host => self.hosts.len(),
            Kind::Switch(_) => self.switches.len(),
        };
        if self.of.insert(name, (kind, index as u32)).is_some() {
            return Err(line.error(&format!("there is already a node \"{name}\"")));
        }
        match kind {
            Kind::Host => self.hosts.push(name.to_owned()),
            Kind::Switch(delay) => self.switches.push((name.to_owned(), delay)),
        }
        Ok(())
    }

    fn find(&self, name: &str, line: &Line<'_>) -> Result<(), Problem> {
        if self.of.contains_key(name) {
            return Ok(());
        }
        let known: Vec<&str> = self.of.keys().copied().collect();
        Err(line.error(&format!("{} (nodes are declared before links)", names::unknown("node", name, &known).message)))
    }
}
