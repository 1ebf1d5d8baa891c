//! Programs that join a Maze by its Unix socket: what they say is carried, and whatever they do hurts nobody else. The
//! machine may be busy, so nothing here depends on how late things are.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clearway_live::RunResult;
use clearway_live::maze::wire::{self, Ask, Tell};
use clearway_live::maze::{Address, MazeError, Remote, serve};
use run::Data;
use units::{HostId, Time, mix};

use crate::run::{Watch, column, finding, live_while, read, sound};

/// Longer than any machine takes.
const LIMIT: Option<Duration> = Some(Duration::from_secs(60));

/// Two racks, and links that lose some packets.
const RACKS: &str = r#"
timing = "ideal"
live = { wait = "sleep", dilation = 20, sockets.rpc = {} }
failure = [{ at = "0s", link = ["leaf0", "spine0"], loss = 0.01 }]
measure.interval = "0s"
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 4
spines = 2
host_rate = "1Gbps"
spine_rate = "1Gbps"
"#;

pub(crate) fn content(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8)).flat_map(|word| mix(seed, word as u64).to_le_bytes()).take(bytes).collect()
}

/// A path of a test's own, which is not there yet.
pub(crate) fn path_of(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("clearway-{test}-{}.socket", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Lets a scenario live while `programs` join it.
fn live_with(test: &str, sets: &[(&str, &str)], programs: impl FnOnce(&Path) + Send) -> RunResult {
    let path = path_of(test);
    let result = live_while(|| programs(&path), |watch: Watch<'_>| serve(&read(RACKS, sets), &path, watch));
    let result = result.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(!path.exists(), "the socket is removed");
    sound(&result);
    result
}

fn ends(result: &RunResult) -> Vec<&str> {
    let table = result.tables.iter().find(|table| table.name == "clients").expect("clients");
    match table.column("ended").map(|column| &column.data) {
        Some(Data::Names { index, names }) => index.iter().map(|&index| names[index as usize].as_str()).collect(),
        _ => panic!("ended"),
    }
}

/// How the clients ended, sorted. A program that leaves as the run ends is taken for gone: whether that is noticed
/// before the run is over or after it is chance.
fn ends_where_over_is_gone(result: &RunResult) -> Vec<&str> {
    let mut ends = ends(result);
    ends.iter_mut().filter(|end| **end == "over").for_each(|end| *end = "gone");
    ends.sort_unstable();
    ends
}

#[test]
fn two_programs_talk_over_a_maze_of_a_third() {
    for (transport, links) in [("dcpim", "memory"), ("dctcp", "memory"), ("dctcp", "datagrams")] {
        let sets = [("live.sockets.rpc.transport", transport), ("live.links", links)];
        let result = live_with(transport, &sets, |path| {
            let mode = std::fs::metadata(path).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let (one, other) = (Remote::connect(path).unwrap(), Remote::connect(path).unwrap());
            assert_eq!(one.hosts().count(), 8);
            assert_eq!(one.classes().collect::<Vec<_>>(), [("rpc", transport)]);
            let (client, server) = (one.socket("host1", None).unwrap(), other.socket("host6", Some(7)).unwrap());
            let queue = one.completions();
            for (seed, bytes) in (0..).zip([0, 1, 1_453, 20_001, 300_000]) {
                let said = content(seed, bytes);
                let sent = client.submit(server.address(), Some("rpc"), &said, Some(&queue)).unwrap();
                let came = server.receive(LIMIT).unwrap();
                assert!(came.content == said && came.from == client.address(), "{transport}, {bytes} bytes");
                let back = server.send(came.from, None, &content(seed + 100, bytes)).unwrap();
                assert!(client.receive(LIMIT).unwrap().content == content(seed + 100, bytes));
                let times = sent.wait(LIMIT).unwrap();
                assert!(times.started < times.delivered && times.delivered == came.delivered);
                assert!(back.wait(LIMIT).unwrap().delivered >= times.delivered);
                let ended = queue.next(LIMIT).unwrap();
                assert_eq!(ended.flow(), sent.flow());
                assert!(ended.wait(LIMIT).unwrap().completed.is_some());
            }
            assert_eq!((one.settle(LIMIT.unwrap()), other.settle(LIMIT.unwrap())), (0, 0));
            assert!(one.over().is_none());
        });
        assert_eq!(result.info.flows_completed, 10, "{transport}");
        assert!(finding(&result, "content right") && result.info.digest.starts_with("none"));
        assert_eq!(ends_where_over_is_gone(&result), ["gone", "gone"]);
        for (name, sum) in [("sent_messages", 10), ("received_messages", 10), ("sockets", 2), ("refused", 0)] {
            assert_eq!(column(&result.tables, "clients", name).iter().sum::<u64>(), sum, "{name}");
        }
        let bytes = 2 * (1 + 1_453 + 20_001 + 300_000);
        assert_eq!(column(&result.tables, "clients", "sent_bytes").iter().sum::<u64>(), bytes);
    }
}

/// Another program waits for the network's time as the one does that has the Maze.
#[test]
fn by_a_time_of_the_network_all_has_come_that_was_delivered_before() {
    let result = live_with("until", &[], |path| {
        let (one, other) = (Remote::connect(path).unwrap(), Remote::connect(path).unwrap());
        let (client, server) = (one.socket("host1", None).unwrap(), other.socket("host6", Some(7)).unwrap());
        let (mut until, mut came) = (other.now().unwrap(), Vec::new());
        (0..50).for_each(|seed| _ = client.send(server.address(), None, &content(seed, 3_000)).unwrap());
        while came.len() < 50 {
            let from = until;
            until += units::Duration::from_us(500);
            while let Some(message) = server.receive_until(until, LIMIT).unwrap() {
                assert!((from..until).contains(&message.delivered), "{from} to {until}: {}", message.delivered);
                came.push(message.flow);
            }
            assert!(one.now().unwrap() >= until);
        }
        assert_eq!(server.receive_until(until, LIMIT).unwrap(), None, "it is told again");
        // It waits for at most so many times at once, and those of a port that is closed do not count.
        let far = |after: u64| Time::from_ps((1 << 62) + after);
        let full = (0..=4_096).find_map(|after| match server.receive_until(far(after), Some(Duration::ZERO)) {
            Err(MazeError::Late(_)) => None,
            other => Some(other),
        });
        assert!(matches!(&full, Some(Err(MazeError::Full(why))) if why.contains("4096 times")), "{full:?}");
        drop(server);
        let again = other.socket("host6", Some(7)).unwrap();
        assert!(matches!(again.receive_until(far(0), Some(Duration::ZERO)), Err(MazeError::Late(_))));
    });
    assert_eq!(column(&result.tables, "clients", "refused").iter().sum::<u64>(), 1);
}

#[test]
fn what_can_not_be_is_said_and_the_end_is_told() {
    let mut kept = None;
    let result = live_with("refused", &[], |path| {
        let maze = Remote::connect(path).unwrap();
        let socket = maze.socket("host0", Some(7)).unwrap();
        let at = |host, port| Address { host: HostId(host), port };
        let said = |error: MazeError| error.to_string();
        assert!(said(maze.socket("host0", Some(7)).unwrap_err()).contains("is open already"));
        assert!(said(maze.socket("host99", None).unwrap_err()).contains("no host \"host99\""));
        assert!(said(socket.send(at(0, 9), None, b"").unwrap_err()).contains("own host"));
        assert!(said(socket.send(at(99, 9), None, b"").unwrap_err()).contains("no host number 99"));
        assert!(said(socket.send(at(1, 9), Some("bulk"), b"").unwrap_err()).contains("there is no class"));
        let long = vec![0; wire::MESSAGE_BYTES_MAX + 1];
        assert!(matches!(socket.send(at(1, 9), None, &long), Err(MazeError::Wrong(_))));
        let nobody = socket.send(at(5, 9), None, b"hello").unwrap();
        assert!(matches!(nobody.wait(LIMIT), Err(MazeError::Undelivered(why)) if why.contains("nobody listens")));
        // A Maze waits there already, and what is no socket is not replaced.
        let taken = serve(&read(RACKS, &[]), path, |_| true).expect_err("it is taken").to_string();
        assert!(taken.contains("another program listens there"), "{taken}");
        let file = path.with_extension("txt");
        std::fs::write(&file, "mine").unwrap();
        let taken = serve(&read(RACKS, &[]), &file, |_| true).expect_err("it is a file").to_string();
        assert!(taken.contains("is no socket") && std::fs::read(&file).unwrap() == b"mine", "{taken}");
        std::fs::remove_file(file).unwrap();
        let gone = Remote::connect(Path::new("/no/such/socket")).unwrap_err().to_string();
        assert!(gone.contains("clearway live SCENARIO.toml --sockets /no/such/socket"), "{gone}");
        kept = Some((maze, socket));
    });
    let (maze, socket) = kept.expect("it was let in");
    // It ended with the run, and is told why.
    assert!(matches!(socket.receive(LIMIT), Err(MazeError::Over(why)) if why.contains("the run is over")));
    assert!(maze.over().is_some());
    // The other is who looked whether somebody listens there.
    assert_eq!(ends(&result), ["over", "gone"]);
    assert_eq!(column(&result.tables, "clients", "refused")[0], 3);
}

/// A connection whose client says what it likes.
fn hostile(path: &Path, said: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(path).expect("it listens");
    stream.set_read_timeout(LIMIT).expect("a timeout");
    // It may have been turned away.
    let _ = stream.write_all(said);
    stream
}

fn notes(asks: &[Ask<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    asks.iter().for_each(|ask| ask.emit(&mut out));
    out
}

/// Reads until the Maze has said its last.
fn last_words(stream: &mut UnixStream) -> String {
    let (mut note, mut last) = (Vec::new(), String::new());
    while wire::read(stream, wire::NOTE_BYTES_MAX, &mut note, || {}).is_ok() {
        if let Ok(Tell::Over { why }) = Tell::parse(&note) {
            last = why.to_owned();
        }
    }
    last
}

#[test]
fn whoever_does_not_keep_to_the_format_hurts_nobody_else() {
    let hello = Ask::Hello { version: wire::VERSION };
    let greeted = notes(std::slice::from_ref(&hello));
    let at = |host, port| Address { host: HostId(host), port };
    let result = live_with("hostile", &[], |path| {
        let (one, other) = (Remote::connect(path).unwrap(), Remote::connect(path).unwrap());
        let (client, server) = (one.socket("host1", None).unwrap(), other.socket("host6", Some(7)).unwrap());
        let works = |seed| {
            client.send(server.address(), None, &content(seed, 9_000)).unwrap();
            assert!(server.receive(LIMIT).unwrap().content == content(seed, 9_000));
        };
        works(0);
        // Those that are told why, and how each ends.
        let mut version = notes(&[Ask::Hello { version: wire::VERSION + 1 }]);
        assert!(last_words(&mut hostile(path, &version)).contains("speaks version"));
        version[5] = b'X';
        assert!(last_words(&mut hostile(path, &version)).contains("no note"));
        assert!(last_words(&mut hostile(path, b"GET / HTTP/1.1\r\n\r\n")).contains("a note has at most"));
        let huge = [&greeted[..], &[255; 4]].concat();
        assert!(last_words(&mut hostile(path, &huge)).contains("a note has at most"));
        let twice = [&greeted[..], &greeted[..]].concat();
        assert!(last_words(&mut hostile(path, &twice)).contains("no note"));
        works(1);
        // One that announces 64 MiB and says no more, and one that says nothing at all, while others go on.
        let announced = [&greeted[..], &(wire::MESSAGE_BYTES_MAX as u32).to_be_bytes(), &[4]].concat();
        let mut silent = [hostile(path, &announced), hostile(path, b"")];
        works(2);
        // A host that there is not, a port that is not its own, a message to itself: refused, and it goes on.
        let asks = [
            hello,
            Ask::Open { ask: 1, host: 1 << 30, port: 1 },
            Ask::Send { ask: 2, from: at(6, 7), to: at(1, 1), class: 0, content: b"forged" },
            Ask::Open { ask: 3, host: 2, port: 9 },
            Ask::Send { ask: 4, from: at(2, 9), to: at(1 << 30, 1), class: 0, content: b"" },
            Ask::Send { ask: 5, from: at(2, 9), to: at(3, 1), class: 9, content: b"" },
            Ask::Close { at: at(6, 7) },
            Ask::Taken { flow: 0 },
            Ask::Wake { ask: 6, of: at(6, 7), at: 0 },
        ];
        let mut wrong = hostile(path, &notes(&asks));
        let mut note = Vec::new();
        let mut refused = 0;
        while refused < 5 {
            wire::read(&mut wrong, wire::NOTE_BYTES_MAX, &mut note, || {}).expect("an answer");
            refused += u32::from(matches!(Tell::parse(&note), Ok(Tell::Refused { .. })));
        }
        works(3);
        // It goes in the middle of a message.
        drop(wrong);
        let half = notes(&[Ask::Send { ask: 1, from: at(1, 1), to: at(2, 2), class: 0, content: &[7; 5_000] }]);
        let mut gone = hostile(path, &greeted);
        wire::read(&mut gone, wire::NOTE_BYTES_MAX, &mut note, || {}).expect("a welcome");
        gone.write_all(&half[..half.len() - 100]).expect("it reads");
        drop(gone);
        for stream in &mut silent {
            assert!(last_words(stream).contains("did not come"));
        }
        works(4);
    });
    // The two, the one with wrong requests, those whose greeting was right; and by reason those whose was not.
    let expected =
        ["gone", "gone", "gone", "length", "length", "note", "note", "silent", "silent", "silent", "version"];
    assert_eq!(ends_where_over_is_gone(&result), expected);
    assert_eq!(column(&result.tables, "clients", "refused").iter().sum::<u64>(), 5);
    assert_eq!(result.info.flows_completed, 5);
}

/// One floods another that takes nothing: it runs out of its own room, and whoever takes nothing has no more than that.
#[test]
fn a_flood_takes_the_floods_own_room() {
    let result = live_with("flood", &[("live.content", "none"), ("live.dilation", "1")], |path| {
        let [flood, victim, others] = [0; 3].map(|_| Remote::connect(path).unwrap());
        let (sends, takes) = (flood.socket("host1", None).unwrap(), victim.socket("host2", Some(7)).unwrap());
        let megabyte = content(1, 1 << 20);
        let mut sent = 0;
        let full = loop {
            match sends.send(takes.address(), None, &megabyte) {
                Ok(_) => sent += 1,
                Err(error) => break error,
            }
            assert!(sent <= 64, "{sent} MiB");
        };
        assert!(matches!(full, MazeError::Full(_)), "{full}");
        // Others have room of their own.
        let (one, other) = (others.socket("host5", None).unwrap(), others.socket("host6", None).unwrap());
        one.send(other.address(), None, &megabyte).unwrap();
        assert!(other.receive(LIMIT).unwrap().content == megabyte);
        // And so has the flood, when somebody takes what has come.
        for _ in 0..sent {
            assert!(takes.receive(LIMIT).unwrap().content == megabyte);
        }
        assert_eq!(flood.settle(LIMIT.unwrap()), 0);
        let room = || sends.send(takes.address(), None, b"room").is_ok();
        assert!((0..1_000).any(|_| room() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }));
    });
    assert!(column(&result.tables, "clients", "refused").iter().sum::<u64>() >= 1);
}

/// A client that never reads does not hold up the run's end, nor the others.
#[test]
fn whoever_does_not_read_is_disconnected() {
    let at = |host, port| Address { host: HostId(host), port };
    let result = live_with("deaf", &[("live.dilation", "1")], |path| {
        let asks = [Ask::Hello { version: wire::VERSION }, Ask::Open { ask: 1, host: 2, port: 9 }];
        let deaf = hostile(path, &notes(&asks));
        let maze = Remote::connect(path).unwrap();
        let socket = maze.socket("host5", None).unwrap();
        // More than a socket's buffers hold; it is not there before its port is.
        let tries = (0..600).map(|_| socket.send(at(2, 9), None, &content(1, 4 << 20)).unwrap().wait(LIMIT));
        assert!(tries.into_iter().any(|delivered| delivered.is_ok()));
        // Until it is done without, which takes some seconds.
        let gone = (0..6_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let again = socket.send(at(2, 9), None, b"still there?").unwrap().wait(LIMIT);
            matches!(again, Err(MazeError::Undelivered(why)) if why.contains("nobody listens"))
        });
        assert!(gone);
        drop(deaf);
    });
    assert_eq!(ends_where_over_is_gone(&result), ["gone", "stalled"]);
}

#[test]
fn no_more_connect_than_may() {
    live_with("many", &[], |path| {
        let clients: Vec<Remote> = (0..64).map(|_| Remote::connect(path).expect("there is room")).collect();
        let why = Remote::connect(path).expect_err("there are 64").to_string();
        assert!(why.contains("64 programs are connected"), "{why}");
        drop(clients);
        let again = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            Remote::connect(path).is_ok()
        });
        assert!(again, "they have gone");
        let mut rest = Vec::new();
        let _ = hostile(path, b"").read_to_end(&mut rest);
    });
}
