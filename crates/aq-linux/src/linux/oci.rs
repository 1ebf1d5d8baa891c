//! A hook of a container's runtime (OCI): gives a container the shares that its annotations ask for, and takes them
//! back when it has stopped. The runtime says on standard input which container it is, and in what state.

use std::collections::BTreeMap;

use serde::Deserialize;
use units::Rate;

use super::container::{Container, Shared, Wish, ends, give, take};
use super::place::Roots;

/// How the annotations begin.
const PREFIX: &str = "clearway.aq/";

#[derive(Debug, Deserialize)]
struct State {
    id: String,
    status: String,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The whole hook. `device` and `capacity` are of the link that containers with a weight share.
pub fn main(roots: &Roots, text: &str, device: Option<&str>, capacity: Option<Rate>) -> Result<Vec<String>, String> {
    let state: State = serde_json::from_str(text).map_err(|error| format!("the container's state: {error}"))?;
    let owner = format!("oci:{}", state.id);
    if state.status == "stopped" {
        return take(roots, |other| other == owner);
    }
    let wish = wish(&state, device, capacity)?;
    if wish.is_empty() {
        return Ok(Vec::new());
    }
    if state.pid == 0 {
        return Err(format!("container {} is {} and has no process", state.id, state.status));
    }
    let name = state.id.chars().take(64).collect();
    let container = Container { owner, name, netns: format!("/proc/{}/ns/net", state.pid) };
    let ends = ends(&container.netns, None)?;
    give(roots, &container, &wish, &ends)
}

fn wish(state: &State, device: Option<&str>, capacity: Option<Rate>) -> Result<Wish, String> {
    let mut wish = Wish::default();
    for (key, value) in &state.annotations {
        let Some(kind) = key.strip_prefix(PREFIX) else { continue };
        let rate = || value.parse::<Rate>().map(Some).map_err(|why| format!("annotation {key}: {why}"));
        match kind {
            "ingress" => wish.ingress = rate()?,
            "egress" => wish.egress = rate()?,
            "weight" => {
                let weight = value.parse().ok().filter(|&weight| weight > 0);
                let weight = weight.ok_or_else(|| format!("annotation {key}: \"{value}\" is no weight from 1 on"))?;
                let (Some(device), Some(capacity)) = (device, capacity) else {
                    return Err(format!("annotation {key}: the hook has no --device and --capacity of a shared link"));
                };
                wish.weight = Some((weight, Shared { device: device.to_owned(), capacity, headroom: 0.02 }));
            }
            other => return Err(format!("annotation {key}: \"{other}\" is none of ingress, egress, weight")),
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(annotation: &str, value: &str) -> State {
        let annotations = [(annotation.to_owned(), value.to_owned()), ("other".to_owned(), "x".to_owned())].into();
        State { id: "c1".to_owned(), status: "created".to_owned(), pid: 7, annotations }
    }

    #[test]
    fn annotations_are_read() {
        let rate = Rate::from_bps(100_000_000);
        let read = |annotation, value| wish(&state(annotation, value), Some("eth0"), Some(rate));
        assert_eq!(read("clearway.aq/ingress", "100Mbps").unwrap().ingress, Some(rate));
        assert_eq!(read("clearway.aq/egress", "100Mbps").unwrap().egress, Some(rate));
        assert_eq!(read("clearway.aq/weight", "3").unwrap().weight.unwrap().0, 3);
        assert!(read("none", "3").unwrap().is_empty());
        for (annotation, value, why) in [
            ("clearway.aq/ingress", "fast", "annotation clearway.aq/ingress"),
            ("clearway.aq/weight", "0", "no weight"),
            ("clearway.aq/wait", "1", "none of ingress"),
        ] {
            let said = read(annotation, value).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        assert!(wish(&state("clearway.aq/weight", "3"), None, None).unwrap_err().contains("--device"));
    }
}
