//! Programs that send messages over a network that lives. The machine may be busy, so nothing here depends on how late
//! things are.

use std::sync::Arc;
use std::time::Duration;

use catalogue::Transport;
use clearway_live::maze::{Maze, MazeError, Message, Socket, Times};
use run::Data;
use units::{Time, mix};

use super::run::{column, finding, read, sound};

/// Longer than any machine takes.
const LIMIT: Option<Duration> = Some(Duration::from_secs(60));

/// Two racks with two ways between them, on which one packet in a hundred is lost: messages of several packets come
/// with gaps, and where a transport sprays, in disorder.
const LOSSY: &str = r#"
live.wait = "sleep"
live.sockets.socket = {}
live.dilation = 20
failure = [{ at = "0s", link = ["leaf0", "spine0"], loss = 0.01 }]
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 4
spines = 2
host_rate = "1Gbps"
spine_rate = "1Gbps"
[measure]
interval = "0s"
"#;

fn content(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8)).flat_map(|word| mix(seed, word as u64).to_le_bytes()).take(bytes).collect()
}

fn start(text: &str, sets: &[(&str, &str)]) -> Maze {
    Maze::start(&read(text, sets)).unwrap_or_else(|problem| panic!("{problem}"))
}

fn names(result: &clearway_live::RunResult, table: &str, name: &str) -> Vec<String> {
    let column = result.tables.iter().find(|known| known.name == table).and_then(|table| table.column(name));
    match column.map(|column| &column.data) {
        Some(Data::Names { index, names }) => index.iter().map(|&index| names[index as usize].clone()).collect(),
        _ => panic!("{table}.{name}"),
    }
}

/// Sizes of no packet, one, a few with a last one that is short, and many; each way at once.
#[test]
fn messages_are_whole_and_unchanged_over_every_transport() {
    const SIZES: [usize; 6] = [0, 1, 1_452, 1_453, 20_001, 300_000];
    for (name, links) in Transport::NAMES.iter().flat_map(|name| [(name, "memory"), (name, "datagrams")]) {
        let maze = start(LOSSY, &[("transport", name), ("live.links", links)]);
        let (one, other) = (maze.socket("host1", None).unwrap(), maze.socket("host6", None).unwrap());
        for (seed, bytes) in (0..).zip(SIZES) {
            let contents = [content(seed, bytes), content(seed + 100, bytes)];
            let forth = one.send(other.address(), None, &contents[0]).unwrap();
            let back = other.send(one.address(), None, &contents[1]).unwrap();
            // UDP repeats nothing, and Harmony gives up what it was not let in with.
            let gives_up = |sent: clearway_live::maze::Sent| match sent
                .wait(LIMIT.filter(|_| *name != "udp").or(Some(Duration::from_millis(500))))
            {
                Ok(Times { started, delivered, .. }) => {
                    assert!(started < delivered, "{name}, {bytes} bytes");
                    false
                }
                Err(MazeError::Undelivered(_) | MazeError::Rejected(_)) => true,
                Err(MazeError::Late(_)) if *name == "udp" => true,
                Err(other) => panic!("{name}, {bytes} bytes: {other}"),
            };
            for (sent, socket, from, content) in
                [(forth, &other, &one, &contents[0]), (back, &one, &other, &contents[1])]
            {
                if !gives_up(sent) {
                    let message = socket.receive(LIMIT).unwrap();
                    assert!(message.content == *content, "{name}, {bytes} bytes");
                    assert_eq!((message.from, message.to), (from.address(), socket.address()));
                }
            }
        }
        drop((one, other));
        let result = maze.close(Duration::from_secs(1)).unwrap();
        sound(&result);
        assert_eq!((result.info.ended, result.info.flows), ("closed", 2 * SIZES.len() as u64), "{name}");
        assert_eq!(names(&result, "flows", "class"), ["socket"; 2 * SIZES.len()]);
        let sent: Vec<u64> = SIZES.iter().flat_map(|&bytes| [bytes as u64 + 8; 2]).collect();
        assert_eq!(column(&result.tables, "flows", "bytes"), sent, "{name}");
        assert!(result.info.flows_completed >= 4, "{name}: {:#?}", result.info);
    }
}

/// A message starts when its program has sent it, or later, even while the host's worker has much else to do.
#[test]
fn no_message_starts_before_it_is_sent() {
    let traffic = "[[traffic]]\nname = 'load'\nsizes.constant = '20KB'\narrivals.poisson.load = 0.5\n";
    let maze = start(&format!("{LOSSY}{traffic}duration = '1s'\n"), &[("transport", "dctcp"), ("failure", "[]")]);
    let (one, other) = (maze.socket("host1", None).unwrap(), maze.socket("host6", None).unwrap());
    let mut sent = Vec::new();
    for _ in 0..300 {
        let before = maze.now().unwrap();
        sent.push((before, one.send(other.address(), None, b"now").unwrap()));
        std::thread::yield_now();
    }
    let started: Vec<_> = sent.into_iter().map(|(before, sent)| (before, sent.wait(LIMIT).unwrap().started)).collect();
    let result = maze.close(Duration::ZERO).unwrap();
    // The clock may have been set back where the machine was busy.
    let stood = units::Duration::from_ps(result.info.lost_ps);
    for (before, started) in started {
        assert!(started + stood >= before, "{before:?} {started:?} {stood:?}");
    }
}

/// Beside the scenario's own traffic, in classes over different transports, between workers.
#[test]
fn classes_have_their_transports_and_traffic_goes_on() {
    const CLASSES: &str = r#"
transport = "dctcp"
live.sockets.small.transport = "dcpim"
live.sockets.large = {}"#;
    const TRAFFIC: &str = r#"
[[traffic]]
name = "load"
sizes.constant = "100KB"
arrivals.poisson.load = 0.2
duration = "20ms"
"#;
    for (links, workers) in [("memory", "1"), ("memory", "2"), ("datagrams", "1")] {
        let sets = [("live.links", links), ("live.workers", workers), ("failure", "[]")];
        let maze = start(&format!("{CLASSES}{LOSSY}{TRAFFIC}"), &sets);
        assert_eq!(maze.classes().collect::<Vec<_>>(), [("large", "dctcp"), ("small", "dcpim"), ("socket", "dctcp")]);
        let server = Arc::new(maze.socket("host7", Some(80)).unwrap());
        std::thread::scope(|scope| {
            let answering = server.clone();
            scope.spawn(move || answer(&answering));
            let clients: Vec<Socket> = (0..3).map(|host| maze.socket(&format!("host{host}"), None).unwrap()).collect();
            for (index, client) in clients.iter().enumerate() {
                let class = ["small", "large"][index % 2];
                for question in 0..10 {
                    let content = content(question, 1_000 * question as usize);
                    client.send(server.address(), Some(class), &content).unwrap().wait(LIMIT).unwrap();
                    let Message { content: answer, class, .. } = client.receive(LIMIT).unwrap();
                    assert!(answer.iter().eq(content.iter().rev()) && class == 1);
                }
            }
            server.close();
        });
        let result = maze.close(Duration::from_secs(60)).unwrap();
        sound(&result);
        let (class, over) = (names(&result, "flows", "class"), names(&result, "flows", "transport"));
        let of = |class_name, transport| class.iter().zip(&over).filter(|of| *of == (&class_name, &transport)).count();
        let of = |class: &str, transport: &str| of(class.to_owned(), transport.to_owned());
        assert_eq!((of("small", "dcpim"), of("large", "dctcp")), (20 + 30, 10));
        assert!(of("load", "dctcp") > 10, "the scenario's own");
        assert_eq!(result.info.flows_completed, result.info.flows - late(&result), "{:#?}", result.info);
        assert!(result.info.digest.starts_with("none"));
    }
}

/// Flows of the scenario that had not come to their end when the run was closed.
fn late(result: &clearway_live::RunResult) -> u64 {
    let (class, status) = (names(result, "flows", "class"), names(result, "flows", "status"));
    class.iter().zip(status).filter(|(class, status)| *class == "load" && status != "completed").count() as u64
}

/// Each message goes back with its bytes turned round, until the socket is closed.
fn answer(server: &Socket) {
    for Message { from, mut content, .. } in server.messages() {
        content.reverse();
        server.send(from, Some("small"), &content).unwrap();
    }
}

#[test]
fn what_can_not_be_is_said() {
    let maze = start(LOSSY, &[("failure", "[]")]);
    let (one, other) = (maze.socket("host0", Some(7)).unwrap(), maze.socket("host4", Some(7)).unwrap());
    let wrong = |result: Result<_, MazeError>, words: &str| match result {
        Err(MazeError::Wrong(message)) => assert!(message.contains(words), "{message}"),
        other => panic!("{words}: {other:?}"),
    };
    wrong(maze.socket("host0", Some(7)).map(drop), "host0:7 is open already");
    wrong(maze.socket("host0", Some(0)).map(drop), "port 0");
    wrong(maze.socket("host9", None).map(drop), "host9");
    wrong(maze.socket("leaf0", None).map(drop), "is a switch");
    wrong(one.send(other.address(), Some("rpc"), b"").map(drop), "there are \"socket\"");
    let several = start(LOSSY, &[("failure", "[]"), ("live.sockets.rpc", "{}")]);
    let unclear = several.socket("host0", None).unwrap();
    wrong(unclear.send(other.address(), None, b"").map(drop), "name one of \"rpc\", \"socket\"");
    wrong(one.send(one.address(), None, b"").map(drop), "own host");
    let late = one.receive(Some(Duration::from_millis(1)));
    assert!(matches!(&late, Err(MazeError::Late(message)) if message.contains("host0:7")), "{late:?}");
    let address = other.address();
    other.close();
    let refused = one.send(address, None, b"hello").unwrap().wait(LIMIT);
    assert!(matches!(&refused, Err(MazeError::Undelivered(said)) if said.contains("nobody listens at host4:7")));
    assert!(matches!(other.receive(LIMIT), Err(MazeError::Over(said)) if said.contains("closed")));
    // It can be opened again.
    let other = maze.socket("host4", Some(7)).unwrap();
    one.send(other.address(), None, b"again").unwrap();
    assert_eq!(other.receive(LIMIT).unwrap().content, b"again");
    let result = maze.close(Duration::from_secs(60)).unwrap();
    sound(&result);
    assert!(matches!(one.receive(LIMIT), Err(MazeError::Over(_))));
    assert!(matches!(one.send(address, None, b""), Err(MazeError::Over(_))));
}

/// A run that ends by itself tells all who wait.
#[test]
fn the_end_of_the_run_wakes_who_waits() {
    // Both ways from host0 are dead, so that its message never comes.
    let dead = r#"[{ at = "0s", link = ["host0", "leaf0"] }]"#;
    let maze = start(LOSSY, &[("failure", dead), ("transport", "cubic"), ("measure.end", "10ms")]);
    let (one, other) = (maze.socket("host0", None).unwrap(), maze.socket("host4", None).unwrap());
    let sent = one.send(other.address(), None, b"hello").unwrap();
    assert!(matches!(sent.wait(None), Err(MazeError::Over(_))));
    assert!(matches!(other.receive(None), Err(MazeError::Over(_))));
    assert!(maze.over().is_some());
    let result = maze.close(Duration::ZERO).unwrap();
    assert_eq!((result.info.ended, result.info.flows_completed), ("horizon", 0));
    assert!(finding(&result, "bytes conserved"), "{:#?}", result.info.audit);
}

/// A transport with admission control rejects what it has no room for, and one that tries in vain gives up.
#[test]
fn what_a_transport_gives_up_is_an_error() {
    let dead = r#"[{ at = "0s", link = ["host4", "leaf1"] }]"#;
    let harmony = r#"{ harmony = { delta_admission = "100us" } }"#;
    let maze = start(LOSSY, &[("failure", dead), ("transport", harmony)]);
    let (one, other) = (maze.socket("host0", None).unwrap(), maze.socket("host4", None).unwrap());
    let sent = one.send(other.address(), None, &content(1, 5_000)).unwrap().wait(LIMIT);
    let said = |error: &MazeError| error.to_string().contains("harmony") && error.to_string().contains("host4");
    assert!(
        matches!(&sent, Err(error @ (MazeError::Undelivered(_) | MazeError::Rejected(_))) if said(error)),
        "{sent:?}"
    );
    let queue = maze.completions();
    let living = maze.socket("host5", None).unwrap();
    let unknown = one.submit(other.address(), None, b"dead", Some(&queue)).unwrap();
    let known = one.submit(living.address(), None, b"alive", Some(&queue)).unwrap();
    let ended: Vec<u32> = (0..2).map(|_| queue.next(LIMIT).unwrap().flow()).collect();
    assert_eq!(ended, [known.flow(), unknown.flow()], "in the order of their ends");
    assert!(known.wait(None).unwrap().completed.is_some());
    assert!(matches!(queue.next(Some(Duration::ZERO)), Err(MazeError::Late(_))));
    drop(maze);
}

/// What a program has by a time of the network is all that was delivered before, on however many workers, and however
/// late the program asks.
#[test]
fn by_a_time_of_the_network_all_has_come_that_was_delivered_before() {
    for workers in ["1", "2"] {
        let maze = start(LOSSY, &[("live.workers", workers), ("transport", "dctcp")]);
        let server = maze.socket("host7", Some(80)).unwrap();
        let clients: Vec<Socket> = (0..7).map(|host| maze.socket(&format!("host{host}"), None).unwrap()).collect();
        let sent: Vec<_> = (0..100)
            .map(|seed| clients[seed % 7].send(server.address(), None, &content(seed as u64, 1_000 * seed)).unwrap())
            .collect();
        let mut windows: Vec<(Time, Vec<Message>)> = Vec::new();
        let mut until = maze.now().unwrap();
        while windows.iter().map(|(_, messages)| messages.len()).sum::<usize>() < sent.len() {
            until += units::Duration::from_us(500);
            let window = std::iter::from_fn(|| server.receive_until(until, LIMIT).unwrap()).collect();
            assert!(maze.now().unwrap() >= until, "it waits for the network");
            windows.push((until, window));
        }
        let mut from = Time::ZERO;
        for (until, messages) in windows {
            assert!(messages.iter().all(|message| (from..until).contains(&message.delivered)), "{from} to {until}");
            from = until;
        }
        // A time that has passed is told at once, and nothing is taken that came after it.
        clients[0].send(server.address(), None, b"later").unwrap().wait(LIMIT).unwrap();
        assert_eq!(server.receive_until(from, LIMIT).unwrap(), None);
        assert_eq!(server.receive(LIMIT).unwrap().content, b"later");
        let never = Time::from_ps(u64::MAX);
        let late = server.receive_until(never, Some(Duration::from_millis(1)));
        assert!(matches!(&late, Err(MazeError::Late(said)) if said.contains("live.dilation")), "{late:?}");
        sound(&maze.close(Duration::from_secs(60)).unwrap());
        assert!(matches!(server.receive_until(never, LIMIT), Err(MazeError::Over(_))));
    }
}

/// Who waits for a time beyond the run's end is told that it is over; who waits for one before, that it has come.
#[test]
fn times_after_the_end_never_come() {
    let maze = start(LOSSY, &[("transport", "dctcp"), ("measure.end", "10ms")]);
    let socket = maze.socket("host0", None).unwrap();
    assert_eq!(socket.receive_until(Time::from_ps(9_000_000_000), LIMIT).unwrap(), None);
    assert!(matches!(socket.receive_until(Time::from_ps(11_000_000_000), LIMIT), Err(MazeError::Over(_))));
    assert!(matches!(maze.now(), Err(MazeError::Over(_))));
}
