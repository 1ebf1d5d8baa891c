use std::io::Write;
use std::process::Command;

use node::Packet;
use node::packet::flags;
use node::wire::Reader;
use run::Plan;
use units::{FlowId, HostId, LinkId, Stream, Time};

use super::super::{Encoder, Noted, Wanted};
use super::*;

/// So many random headers of each scheme.
const HEADERS: usize = 80;

fn plan(settings: &str) -> Plan {
    let text = format!(
        "fabric.star = {{}}\n{settings}\n[[traffic]]\nsizes.constant = '3KB'\narrivals = 'all_at_once'\nflows = 1\n"
    );
    Plan::new(&scenario::read(&text, "test", &[]).expect("a scenario")).expect("a plan")
}

/// Bytes of which many are headers: their first bytes are small, others are anything or 0.
fn noise(random: &mut Stream) -> [u8; 40] {
    let mut bytes = [0; 40];
    let (few, zeros) = (random.bits() % 4, random.bits());
    for (place, byte) in bytes.iter_mut().enumerate() {
        let any = random.bits() as u8;
        *byte = match place {
            0..4 => any % if few == 0 { 2 } else { 16 },
            _ if zeros >> (place / 4) & 1 == 0 => any,
            _ => 0,
        };
    }
    bytes
}

/// What tshark says with the dissector, a line a packet, of a whole file; none where there is no tshark.
fn seen(blocks: &[u8], fields: &[&str]) -> Option<Vec<String>> {
    let folder = std::env::temp_dir().join(format!("clearway-dissector-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (lua, file) = (folder.join("clearway.lua"), folder.join("out.pcapng"));
    std::fs::write(&lua, dissector()).expect("the dissector");
    std::fs::write(&file, blocks).expect("the capture");
    let mut command = Command::new("tshark");
    command.arg("-X").arg(format!("lua_script:{}", lua.display())).arg("-r").arg(&file).args(["-T", "fields"]);
    let shown = command.args(fields.iter().flat_map(|field| ["-e", field])).output();
    std::fs::remove_dir_all(&folder).expect("it is ours");
    let output = shown.ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("Lua"), "{said}");
    Some(String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect())
}

/// Every field of every header, as the scheme that parses it says.
#[test]
fn wireshark_shows_what_each_scheme_parses() {
    let mut random = Stream::new(1, 0, "headers");
    let (mut blocks, mut expected) = (Vec::new(), Vec::new());
    let mut note = |plan: &Plan, packet: &Packet, name: &str, says: String| {
        let wanted = Wanted { name: "a-b".to_owned(), links: vec![LinkId(0)], path: String::new() };
        if blocks.is_empty() {
            blocks = wanted.begin(plan);
        }
        let noted = Noted { interface: 0, link: LinkId(0), at: Time::ZERO, packet, content: None, lost: None };
        Encoder::new(plan).expect("the default").note(plan, &noted, &mut blocks);
        expected.push(format!("{name}\t{}\t{says}", says.split(' ').next().unwrap_or_default()));
    };
    let bare = |flags: u8| {
        let mut packet = Packet::bare(FlowId(0), HostId(0), HostId(1));
        packet.flags = flags;
        packet
    };
    // R2C2's have checksums, which no noise has.
    for name in Transport::NAMES.iter().filter(|name| **name != "r2c2") {
        let plan = plan(&format!("transport = '{name}'"));
        let mut found = 0;
        while found < HEADERS {
            let mut packet = bare(0);
            if plan.transports[0].parse_header(&mut Reader::new(&noise(&mut random), ""), &mut packet).is_ok() {
                note(&plan, &packet, name, plan.transports[0].says(&packet));
                found += 1;
            }
        }
    }
    for name in &LinkControl::NAMES[1..] {
        let plan = plan(&format!("transport = 'rdma'\nflow_control = '{name}'"));
        let mut found = 0;
        while found < HEADERS {
            let (mut packet, mut bytes) = (bare(flags::LINK_FRAME), noise(&mut random));
            // Noise hardly ever has the opcode of PFC, and the types of credits never.
            match (*name, found % 2) {
                ("cbfc", kind) => bytes[0] = if kind == 0 { 0x10 } else { 0x11 },
                (_, 0) => bytes[..3].copy_from_slice(&[1, 1, 0]),
                _ => {}
            }
            let control = &plan.scenario.flow_control;
            if control.parse_frame(&mut Reader::new(&bytes, ""), &mut packet).is_ok() {
                note(&plan, &packet, name, control.says(&packet));
                found += 1;
            }
        }
    }
    let Some(seen) = seen(&blocks, &["clearway.scheme", "clearway.message", "clearway.says"]) else {
        // By the stream itself: what a test that passes prints is not shown.
        let _ = writeln!(std::io::stderr(), "skipped, the dissector in Wireshark: there is no tshark");
        return;
    };
    assert_eq!(seen.len(), expected.len());
    for (seen, expected) in seen.iter().zip(&expected) {
        assert_eq!(seen, expected);
    }
}

#[test]
fn each_scheme_has_a_table_of_its_own_and_names_that_filters_can_have() {
    let text = dissector();
    for name in Transport::NAMES.iter().chain(&LinkControl::NAMES[1..]).chain(&["elastic_switch"]) {
        assert_eq!(text.matches(&format!("name = \"{name}\", title")).count(), 1, "{name}");
    }
    assert!(!text.contains("-- SCHEMES --") && !text.contains("LINK_FRAME"));
    assert_eq!(filter_name("blocks [first"), Some("blocks_first".to_owned()));
    assert_eq!((filter_name("]"), filter_name("")), (None, None));
}
