//! A dissector for Wireshark, in Lua, for the headers in captures. It is made from the headers' layouts; the code that
//! uses them is in `dissector.lua`.

use std::fmt::Write as _;

use catalogue::{LinkControl, Sharing, Transport};
use node::layout::{Bits, Field, Layout, Shown, Test};

use super::{LINK_FRAME, control_number, limiter_port, transport_port};

const PROGRAM: &str = include_str!("dissector.lua");

/// The dissector of this version.
pub fn dissector() -> String {
    let mut schemes = String::new();
    for name in Transport::NAMES.iter().chain(Transport::NEEDING_SETTINGS) {
        let transport = Transport::named(name).expect("a name of the catalogue's own");
        let scheme = transport.as_scheme();
        table(
            &mut schemes,
            "SCHEMES",
            transport_port(name).into(),
            name,
            scheme.about().title,
            scheme.headers().layout(),
        );
    }
    for name in Sharing::NAMES {
        let sharing = Sharing::named(name).expect("a name of the catalogue's own");
        if let Some(scheme) = sharing.as_scheme().filter(|scheme| !scheme.layout().messages.is_empty()) {
            table(&mut schemes, "SCHEMES", limiter_port(name).into(), name, scheme.about().title, scheme.layout());
        }
    }
    for name in LinkControl::NAMES {
        let control = LinkControl::named(name).expect("a name of the catalogue's own");
        if let Some(scheme) = control.as_scheme() {
            let number = control_number(name).into();
            table(&mut schemes, "CONTROLS", number, name, scheme.about().title, scheme.frames().layout());
        }
    }
    let kind = format!("0x{:04X}", u16::from_be_bytes(LINK_FRAME));
    PROGRAM
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("LINK_FRAME", &kind)
        .replace("-- SCHEMES --\n", &schemes)
}

/// A scheme's line of a list, with its messages.
fn table(to: &mut String, list: &str, number: u32, name: &str, title: &str, layout: Layout) {
    let _ = writeln!(to, "{list}[{number}] = {{ name = {name:?}, title = {title:?}, messages = {{");
    for message in layout.messages {
        let when = message.when.map(test).join(", ");
        let _ = writeln!(
            to,
            "    {{ name = {:?}, bytes = {}, when = {{ {when} }}, fields = {{",
            message.name, message.bytes
        );
        let mut before = message.name.to_lowercase();
        for of in message.fields {
            let name = filter_name(of.label).unwrap_or_else(|| before.clone());
            let _ = writeln!(to, "        {},", field(of, &name));
            before = name;
        }
        to.push_str("    } },\n");
    }
    to.push_str("} }\n");
}

/// A label without what a filter can't have; none if nothing is left.
fn filter_name(label: &str) -> Option<String> {
    let words = label.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_");
    (!name.is_empty()).then_some(name)
}

fn field(Field { label, at, shown }: &Field, name: &str) -> String {
    let more = match shown {
        Shown::Number => String::new(),
        Shown::Word(words) => {
            let words: Vec<String> = words.iter().map(|(value, word)| format!("[\"{value}\"] = {word:?}")).collect();
            format!(", words = {{ {} }}", words.join(", "))
        }
        Shown::If(known) => format!(", present = {}", test(*known)),
        Shown::OrZero(known) => format!(", known = {}", test(*known)),
        Shown::Written(units) => {
            let unit = |(name, size): &(&str, u64)| format!("{{ {name:?}, \"{size:x}\", {} }}", size.ilog10());
            let units: Vec<String> = units.iter().map(unit).collect();
            format!(", units = {{ {} }}", units.join(", "))
        }
        Shown::NotZero { count, mask } => format!(", count = {count}, mask = {}", place(*mask)),
    };
    format!("{{ label = {label:?}, name = {name:?}, place = {}{more} }}", place(*at))
}

fn place(Bits { at, bytes, shift, count }: Bits) -> String {
    format!("{{ {at}, {bytes}, {shift}, {count} }}")
}

fn test(Test { bits, from, to }: Test) -> String {
    format!("{{ {}, \"{from:x}\", \"{to:x}\" }}", place(bits))
}

#[cfg(test)]
mod tests;
