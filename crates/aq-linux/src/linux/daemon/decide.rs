//! The decision about a device: from the configuration, its record, and what is there.

use super::super::netlink::Link;
use super::super::place::{By, Record};
use super::config::Wanted;

/// An act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// All is as it should be.
    Nothing,
    /// It waits for a device or a namespace: why.
    Wait(String),
    /// Attach or change what the configuration says anew: why.
    Configure(String),
    /// Attach again: why.
    Attach(String),
    /// Heal: why.
    Refresh(String),
    /// Take off, or forget: why.
    Remove(String),
}

/// Decides. `links` are the devices of its namespace, none if that is not there; `trouble` is why its programs don't
/// count every packet.
pub fn decide(wanted: Option<&Wanted>, record: Option<&Record>, links: Option<&[Link]>, trouble: Option<&str>) -> Act {
    let Some(links) = links else {
        return match record {
            Some(record) if wanted.is_none() && record.by != By::Command => {
                Act::Remove("its namespace is gone".to_owned())
            }
            _ => Act::Wait("its namespace is not there".to_owned()),
        };
    };
    let index_of = |name: &str| links.iter().find(|link| link.name == name).map(|link| link.index);
    let lives = |record: &Record| links.iter().any(|link| link.index == record.index);
    let gone = || Act::Wait("the device is not there".to_owned());
    match (wanted, record) {
        (None, None) => Act::Nothing,
        (Some(wanted), None) => match index_of(&wanted.name) {
            Some(_) => Act::Configure("the configuration has it".to_owned()),
            None => gone(),
        },
        (Some(wanted), Some(record)) => match index_of(&wanted.name) {
            // A renamed device is followed until another one has its name.
            Some(index) if index != record.index => Act::Attach("the device was made again".to_owned()),
            _ if !lives(record) => gone(),
            _ if record.tenants != wanted.text || hook_differs(wanted, record) => {
                Act::Configure("the configuration changed".to_owned())
            }
            _ => heal(record, trouble),
        },
        (None, Some(record)) if record.by == By::Daemon => Act::Remove("the configuration has it no more".to_owned()),
        (None, Some(record)) if lives(record) => heal(record, trouble),
        // The device of a container that is gone does not come back; one that containers share may.
        (None, Some(record)) if record.owner.is_some() => Act::Remove("its device is gone".to_owned()),
        (None, Some(record)) if index_of(&record.device).is_some() => {
            Act::Attach("the device was made again".to_owned())
        }
        (None, Some(_)) => gone(),
    }
}

fn hook_differs(wanted: &Wanted, record: &Record) -> bool {
    wanted.hook.is_some_and(|hook| record.attached.iter().any(|attached| attached.hook != hook))
}

fn heal(record: &Record, trouble: Option<&str>) -> Act {
    if record.unfinished {
        return Act::Refresh("a command that changed it did not finish".to_owned());
    }
    trouble.map_or(Act::Nothing, |why| Act::Refresh(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, index: u32) -> Link {
        Link { name: name.to_owned(), index, ..Link::default() }
    }

    fn record(by: By) -> Record {
        serde_json::from_value(serde_json::json!({
            "device": "eth0", "netns": null, "index": 3, "tenants": "text", "timeout_ns": 1, "rtt_ns": 1,
            "by": by, "attached": [],
        }))
        .unwrap()
    }

    fn wanted() -> Wanted {
        let (name, text) = ("eth0".to_owned(), "text".to_owned());
        Wanted { name, netns: None, hook: None, text, source: String::new() }
    }

    fn name_of(act: &Act) -> &'static str {
        match act {
            Act::Nothing => "nothing",
            Act::Wait(_) => "wait",
            Act::Configure(_) => "configure",
            Act::Attach(_) => "attach",
            Act::Refresh(_) => "refresh",
            Act::Remove(_) => "remove",
        }
    }

    #[test]
    fn a_device_of_the_configuration() {
        let (ours, there) = (record(By::Daemon), [link("lo", 1), link("eth0", 3)]);
        let renamed = [link("lan0", 3)];
        let again = [link("eth0", 4)];
        let both = [link("lan0", 3), link("eth0", 4)];
        let other = Wanted { text: "other".to_owned(), ..wanted() };
        let unfinished = Record { unfinished: true, ..ours.clone() };
        for (wanted, record, links, trouble, act) in [
            (wanted(), None, Some(&there[..]), None, "configure"),
            (wanted(), None, Some(&there[..1]), None, "wait"),
            (wanted(), None, None, None, "wait"),
            (wanted(), Some(&ours), Some(&there[..]), None, "nothing"),
            (wanted(), Some(&ours), Some(&there[..]), Some("removed"), "refresh"),
            (wanted(), Some(&unfinished), Some(&there[..]), None, "refresh"),
            (other, Some(&ours), Some(&there[..]), None, "configure"),
            (wanted(), Some(&ours), Some(&renamed[..]), None, "nothing"),
            (wanted(), Some(&ours), Some(&again[..]), None, "attach"),
            (wanted(), Some(&ours), Some(&both[..]), None, "attach"),
            (wanted(), Some(&ours), Some(&there[..1]), Some("gone"), "wait"),
            (wanted(), Some(&ours), None, Some("gone"), "wait"),
        ] {
            let decided = decide(Some(&wanted), record, links, trouble);
            assert_eq!(name_of(&decided), act, "{wanted:?} {record:?} {links:?} {trouble:?}: {decided:?}");
        }
    }

    #[test]
    fn a_device_that_the_configuration_has_not() {
        let there = [link("eth0", 3)];
        let container = Record { owner: Some("c1".to_owned()), ..record(By::Container) };
        let shared = record(By::Container);
        for (record, links, trouble, act) in [
            (record(By::Daemon), Some(&there[..]), None, "remove"),
            (record(By::Command), Some(&there[..]), None, "nothing"),
            (record(By::Command), Some(&there[..]), Some("removed"), "refresh"),
            (record(By::Command), Some(&[][..]), None, "wait"),
            (record(By::Command), None, None, "wait"),
            (container.clone(), Some(&there[..]), None, "nothing"),
            (container.clone(), Some(&[][..]), None, "remove"),
            (container.clone(), Some(&[link("eth0", 9)][..]), None, "remove"),
            (container, None, None, "remove"),
            (shared.clone(), Some(&[][..]), None, "wait"),
            (shared, Some(&[link("eth0", 9)][..]), None, "attach"),
        ] {
            let decided = decide(None, Some(&record), links, trouble);
            assert_eq!(name_of(&decided), act, "{record:?} {links:?} {trouble:?}: {decided:?}");
        }
        assert_eq!(decide(None, None, Some(&there), None), Act::Nothing);
    }
}
