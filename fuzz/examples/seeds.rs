//! Writes the seeds of packets anew: what a host sends first, by every transport, as headers and as frames.

use std::fs;
use std::path::Path;

use catalogue::{LinkControl, Sharing, Transport};
use live::frame::{Codec, Frame};
use live::maze::wire::{self, Ask, Fate, Tell};
use live::maze::{Address, MazeError};
use node::Telemetry;
use node::packet::flags::TELEMETRY;
use node::telemetry::HopRecord;
use node::wire::Writer;
use run::{Journey, Plan};
use units::{HostId, LinkId, Rate, SwitchId, Time};

/// Distinct lengths of headers are distinct kinds of packets.
const PER_TRANSPORT: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let transports: Vec<Transport> = Transport::NAMES.iter().filter_map(|name| Transport::named(name)).collect();
    let (flow_control, sharing) = (LinkControl::None, Sharing::default());
    let codec = Codec {
        transports: &transports,
        flow_control: &flow_control,
        sharing: &sharing,
        retry: false,
        outside: None,
        hosts: 8,
        links: 16,
    };
    for (index, transport) in transports.iter().enumerate() {
        let name = transport.name();
        let text = format!(
            "fabric.star = {{}}\ntransport = '{name}'\n\
             [[traffic]]\nsizes.constant = '300B'\narrivals = 'all_at_once'\n"
        );
        let mut host = Plan::new(&scenario::read(&text, "seeds", &[])?)?.host(HostId(0));
        let mut lengths = Vec::new();
        for micros in 0..100 {
            let now = Time::from_us(micros);
            host.wake(now);
            let Some(mut packet) = host.pull(now) else { continue };
            packet.transport = index as u8;
            let mut content = vec![0; packet.payload_bytes.into()];
            live::content::write(packet.flow, 0, &mut content);
            let mut header = Vec::new();
            transport.emit_header(&packet, &content, &mut Writer::new(&mut header));
            if lengths.contains(&(header.len(), content.len())) || lengths.len() == PER_TRANSPORT {
                continue;
            }
            lengths.push((header.len(), content.len()));
            let mut telemetry = Telemetry::default();
            if packet.has(TELEMETRY) {
                telemetry.push(SwitchId(0), HopRecord::new(Rate::from_gbps(100), now, 3_000, 1_500));
            }
            let frame = Frame {
                link: LinkId(3),
                number: 7,
                gone: now,
                tail_lag: Default::default(),
                queue: 0,
                retry: 0,
                packet,
                journey: Journey::default(),
                telemetry,
                content: &content,
            };
            let mut bytes = Vec::new();
            codec.emit(&frame, &mut bytes);
            let number = lengths.len();
            // The target puts beginning and checksum around its bytes.
            let body = &bytes[5..bytes.len() - 4];
            fs::write(seeds.join(format!("frame/{name}-{number}")), body)?;
            // One entry: how many are written, how many read, its length.
            let counts = [&1u64.to_le_bytes()[..], &[0; 248]].concat();
            let entry = [&counts[..], &(body.len() as u64).to_le_bytes(), body].concat();
            fs::write(seeds.join(format!("ring/{name}-{number}")), entry)?;
            // A greeting, numbers of a board, a packet from one worker to another, the end.
            let record = |kind: u8, body: &[u8]| [&[kind][..], &(body.len() as u32).to_be_bytes(), body].concat();
            let numbers = [&17u32.to_be_bytes()[..], &4u64.to_be_bytes()].concat();
            let records = [record(0, &[0; 8]), record(2, &numbers), record(1, &[&[0; 4][..], body].concat())];
            fs::write(seeds.join(format!("trunk/{name}-{number}")), [records.concat(), record(3, &[])].concat())?;
            header.extend(&content);
            fs::write(seeds.join(format!("header/{name}-{number}")), header)?;
        }
    }
    clients(&seeds.join("client"))?;
    Ok(())
}

/// What a program that has joined a Maze says, and what it is told.
fn clients(seeds: &Path) -> std::io::Result<()> {
    let at = |host, port| Address { host: HostId(host), port };
    let asks = [
        Ask::Hello { version: wire::VERSION },
        Ask::Open { ask: 1, host: 3, port: 7 },
        Ask::Send { ask: 2, from: at(3, 7), to: at(0, 49_152), class: 0, content: b"how are you?" },
        Ask::Taken { flow: 5 },
        Ask::Now { ask: 3 },
        Ask::Wake { ask: 4, of: at(3, 7), at: 9_500 },
        Ask::Close { at: at(3, 7) },
    ];
    let times = [Some(1_000), Some(2_000), None];
    let [started, delivered, completed] = times;
    let fate = |failure, ended| Fate { flow: 4, started, delivered, completed, failure, given_up: ended, ended };
    let tells = [
        Tell::Welcome { dilation: 20, hosts: vec!["host0", "host1"], classes: vec![("rpc", "dctcp")] },
        Tell::Opened { ask: 1, at: at(3, 7) },
        Tell::Accepted { ask: 2, flow: 4 },
        Tell::Refused { ask: 3, why: MazeError::Full("no room".to_owned()) },
        Tell::Fate(fate(None, false)),
        Tell::Fate(fate(Some(MazeError::Undelivered("nobody listens".to_owned())), true)),
        Tell::Came { flow: 5, from: at(0, 49_152), to: at(3, 7), class: 0, delivered: 9_000, content: b"fine" },
        Tell::Now { ask: 3, at: 9_100 },
        Tell::Passed { to: at(3, 7), at: 9_500 },
        Tell::Over { why: "the run is over" },
    ];
    let (mut said, mut told) = (Vec::new(), Vec::new());
    asks.iter().for_each(|ask| ask.emit(&mut said));
    tells.iter().for_each(|tell| tell.emit(&mut told));
    fs::create_dir_all(seeds)?;
    fs::write(seeds.join("refused-cut-off"), &said[..said.len() - 1])?;
    fs::write(seeds.join("refused-length"), [255; 8])?;
    fs::write(seeds.join("said"), said)?;
    fs::write(seeds.join("told"), told)
}
