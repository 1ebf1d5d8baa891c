use std::net::{Ipv4Addr, TcpListener};

use super::*;

fn token(text: &str) -> Token {
    Token::new(text).expect("long enough")
}

/// A connection over loopback: the listening side, the other.
fn streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback is there");
    let stream = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    (listener.accept().expect("somebody has come").0, stream)
}

const PATIENCE: Span = Span::from_secs(10);

/// Both sides of a connection on which each shows a token.
fn meet(one: &str, other: &str) -> (Result<Control, Denial>, io::Result<Control>) {
    let (here, there) = streams();
    let other = token(other);
    std::thread::scope(|scope| {
        let joins = scope.spawn(move || Control::join(there, &other, PATIENCE));
        let mut guest = Guest::new(here).expect("it can be greeted");
        while !guest.listen().expect("it speaks well") {
            std::thread::yield_now();
        }
        (guest.judge(&token(one)), joins.join().expect("no panic"))
    })
}

const TOKEN: &str = "a token of these tests";

#[test]
fn two_with_the_same_token_hear_each_other() {
    let (here, there) = meet(TOKEN, TOKEN);
    let (here, there) = (here.expect("same"), there.expect("same"));
    for words in [&b"one"[..], b"", &[7; 100_000]] {
        std::thread::scope(|scope| {
            scope.spawn(|| here.send(words).expect("it is read"));
            assert_eq!(there.receive().expect("it is sent"), words);
        });
        there.send(b"heard").expect("it is read");
        assert_eq!(here.receive().expect("it is sent"), b"heard");
    }
    assert!(!here.is_gone());
    drop(there);
    assert!(here.is_gone() && here.receive().is_err());
}

/// Notes go both ways at once; behind the last of each way the connection is for other words again.
#[test]
fn between_other_words_it_carries_notes() {
    let (here, there) = meet(TOKEN, TOKEN);
    let [here, there] = [here.expect("same"), there.expect("same")].map(Arc::new);
    std::thread::scope(|scope| {
        for (own, notes) in
            [(&here, [&b"\0\0\0\x05there"[..], b"\0\0\0\x01!"]), (&there, [b"\0\0\0\x01?", b"\0\0\0\x02no"])]
        {
            let (mut say, mut hear) = (own.notes().say, own.notes().hear);
            scope.spawn(move || {
                notes.into_iter().for_each(|note| say(Some(note)).expect("it is heard"));
                say(None).expect("it is heard");
            });
            let expected: [&[u8]; 2] = if Arc::ptr_eq(own, &here) { [b"?", b"no"] } else { [b"there", b"!"] };
            scope.spawn(move || {
                let mut note = Vec::new();
                for expected in expected {
                    hear(&mut note).expect("it is said");
                    assert_eq!(note, expected);
                }
                assert!(matches!(hear(&mut note), Err(Over::Closed)));
            });
        }
    });
    there.send(b"over").expect("it is read");
    assert_eq!(here.receive().expect("it is sent"), b"over");
    std::thread::scope(|scope| {
        // It need not be read to its end.
        scope.spawn(|| there.send(&vec![0; NOTE_BYTES_MAX + 1]));
        assert!(matches!((here.notes().hear)(&mut Vec::new()), Err(Over::Wrong(_))));
        here.shut();
    });
}

/// Whoever waits for a note learns at once that the connection was shut, on either side.
#[test]
fn a_connection_that_is_shut_says_nothing_more() {
    for shuts_here in [true, false] {
        let (here, there) = meet(TOKEN, TOKEN);
        let [here, there] = [here.expect("same"), there.expect("same")].map(Arc::new);
        let mut hear = here.notes().hear;
        std::thread::scope(|scope| {
            let hears = scope.spawn(move || hear(&mut Vec::new()));
            (if shuts_here { &here } else { &there }).shut();
            assert!(matches!(hears.join().expect("no panic"), Err(Over::Closed)));
        });
        assert!(here.is_gone() && there.is_gone());
    }
}

#[test]
fn another_token_is_said_on_both_sides() {
    let (here, there) = meet(TOKEN, "another token of these");
    assert_eq!(here.err(), Some(Denial::Token));
    let said = there.err().expect("it is not let in").to_string();
    assert!(said.contains("does not take this token"), "{said}");
}

/// What a machine says that joins a listener like this.
fn said_to(listener: impl FnOnce(TcpStream)) -> String {
    let (here, there) = streams();
    std::thread::scope(|scope| {
        let joins = scope.spawn(move || Control::join(there, &token(TOKEN), PATIENCE));
        listener(here);
        joins.join().expect("no panic").err().expect("it is not joined").to_string()
    })
}

/// One that lets everybody in has not got the token, and learns nothing.
#[test]
fn a_listener_without_the_token_is_not_joined() {
    let said = said_to(|mut here| {
        here.write_all(&greeting(&[3; 32])).expect("it is read");
        here.read_exact(&mut [0; ANSWER_BYTES]).expect("it answers");
        here.write_all(&[1; VERDICT_BYTES]).expect("it is read");
    });
    assert!(said.contains("token is another"), "{said}");
}

#[test]
fn nonsense_is_sent_away_at_its_first_wrong_byte() {
    let said = |bytes: &[u8]| {
        let (here, mut there) = streams();
        let mut guest = Guest::new(here).expect("it can be greeted");
        there.write_all(bytes).expect("it is read");
        drop(there);
        loop {
            match guest.listen() {
                Ok(true) => return guest.judge(&token(TOKEN)).err(),
                Ok(false) => std::thread::yield_now(),
                Err(denial) => return Some(denial),
            }
        }
    };
    assert_eq!(said(b"GET / HTTP/1.1\r\n\r\n"), Some(Denial::Nonsense));
    assert_eq!(said(b""), Some(Denial::Nonsense));
    assert_eq!(said(&MAGIC[..5]), Some(Denial::Nonsense), "it hung up");
    assert_eq!(said(&[&MAGIC[..], &[VERSION + 1]].concat()), Some(Denial::Version));
    let right = [&greeting(&[3; 32])[..], &[0; TAG_BYTES]].concat();
    assert_eq!(said(&right), Some(Denial::Token));
    assert_eq!(said(&[&right[..], &[9; 1000]].concat()), Some(Denial::Token), "what is behind is not read");
    let said = said_to(|mut here| here.write_all(&[b'x'; GREETING_BYTES]).expect("it is read"));
    assert!(said.contains("does not speak"), "{said}");
}

/// What somebody on the way has changed, left out, or said twice.
#[test]
fn a_message_that_is_not_the_others_is_refused() {
    let speak = |change: &dyn Fn(&mut Vec<u8>)| {
        let (here, there) = meet(TOKEN, TOKEN);
        let (here, there) = (here.expect("same"), there.expect("same"));
        let mut words = b"words".to_vec();
        let length = (words.len() as u64).to_be_bytes();
        let tags = [&b"length"[..], &words].map(|bytes| lock(&here.to).key.tag(&head(0, &length, bytes)));
        words = [&length[..], tags.as_flattened(), &words].concat();
        change(&mut words);
        (&here.stream).write_all(&words).expect("it is read");
        drop(here);
        let first = there.receive().map_err(|error| error.kind());
        (first, there.receive().map_err(|error| error.kind()))
    };
    let whole = speak(&|_| ());
    assert_eq!(whole, (Ok(b"words".to_vec()), Err(ErrorKind::UnexpectedEof)));
    assert_eq!(speak(&|words| words[0] = 0x7F).0, Err(ErrorKind::InvalidData), "a length of 9 EB");
    assert_eq!(speak(&|words| words[7] = 4).0, Err(ErrorKind::InvalidData));
    assert_eq!(speak(&|words| *words.last_mut().expect("some") ^= 1).0, Err(ErrorKind::InvalidData));
    assert_eq!(speak(&|words| words.truncate(42)).0, Err(ErrorKind::UnexpectedEof));
    let twice = speak(&|words| words.extend_from_within(..));
    assert_eq!(twice, (Ok(b"words".to_vec()), Err(ErrorKind::InvalidData)));
}
