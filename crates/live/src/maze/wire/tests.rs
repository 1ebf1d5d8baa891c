//! Notes: what is written is read back, and nothing else is.

use proptest::prelude::*;

use super::*;

fn an_address() -> impl Strategy<Value = Address> {
    (any::<u32>(), any::<u16>()).prop_map(|(host, port)| Address { host: HostId(host), port })
}

fn a_text() -> impl Strategy<Value = String> {
    "[a-z0-9éß\"]{0,40}"
}

fn an_error() -> impl Strategy<Value = MazeError> {
    (0..6, a_text()).prop_map(|(kind, why)| match kind {
        0 => MazeError::Wrong(why),
        1 => MazeError::Rejected(why),
        2 => MazeError::Undelivered(why),
        3 => MazeError::Full(why),
        4 => MazeError::Late(why),
        _ => MazeError::Over(why),
    })
}

fn a_fate() -> impl Strategy<Value = Fate> {
    let times = prop::array::uniform3(prop::option::of(any::<u64>()));
    (any::<u32>(), times, prop::option::of(an_error()), any::<(bool, bool)>()).prop_map(
        |(flow, [started, delivered, completed], failure, (given_up, ended))| Fate {
            flow,
            started,
            delivered,
            completed,
            failure,
            given_up,
            ended,
        },
    )
}

/// Reads all notes of what was written.
fn read_all(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut notes, mut note) = (Vec::new(), Vec::new());
    while read(&mut bytes, NOTE_BYTES_MAX, &mut note, || {}).is_ok() {
        notes.push(note.clone());
    }
    notes
}

/// It comes back as it was; without its end, or with something behind it, it does not.
fn asked(ask: &Ask<'_>) {
    let mut out = Vec::new();
    ask.emit(&mut out);
    let notes = read_all(&out);
    assert_eq!(notes.len(), 1);
    assert_eq!(Ask::parse(&notes[0]).as_ref(), Ok(ask));
    let mut note = Vec::new();
    assert!(read(&mut &out[..out.len() - 1], NOTE_BYTES_MAX, &mut note, || {}).is_err());
    if !matches!(ask, Ask::Send { .. }) {
        assert!(Ask::parse(&notes[0][..notes[0].len() - 1]).is_err());
        assert!(Ask::parse(&[&notes[0][..], &[0]].concat()).is_err());
    }
}

fn told(tell: &Tell<'_>) {
    let mut out = Vec::new();
    tell.emit(&mut out);
    let notes = read_all(&out);
    assert_eq!(notes.len(), 1);
    assert_eq!(Tell::parse(&notes[0]).as_ref(), Ok(tell));
    if !matches!(tell, Tell::Came { .. }) {
        assert!(Tell::parse(&notes[0][..notes[0].len() - 1]).is_err());
        assert!(Tell::parse(&[&notes[0][..], &[0]].concat()).is_err());
    }
}

proptest! {
    #[test]
    fn what_is_said_is_understood(
        (ask, flow, host) in any::<(u32, u32, u32)>(),
        (class, port, version) in any::<(u16, u16, u16)>(),
        (from, to) in (an_address(), an_address()),
        (why, fate) in (an_error(), a_fate()),
        names in prop::collection::vec(a_text(), 0..5),
        content in prop::collection::vec(any::<u8>(), 0..200),
        (dilation, delivered) in any::<(u32, u64)>(),
    ) {
        asked(&Ask::Hello { version });
        asked(&Ask::Open { ask, host, port });
        asked(&Ask::Close { at: from });
        asked(&Ask::Send { ask, from, to, class, content: &content });
        asked(&Ask::Taken { flow });
        asked(&Ask::Now { ask });
        asked(&Ask::Wake { ask, of: from, at: delivered });
        let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
        let classes = hosts.iter().map(|name| (*name, "dctcp")).collect();
        told(&Tell::Welcome { dilation, hosts, classes });
        told(&Tell::Opened { ask, at: to });
        told(&Tell::Accepted { ask, flow });
        told(&Tell::Refused { ask, why });
        told(&Tell::Fate(fate));
        told(&Tell::Came { flow, from, to, class, delivered, content: &content });
        told(&Tell::Now { ask, at: delivered });
        told(&Tell::Passed { to, at: delivered });
        told(&Tell::Over { why: names.first().map_or("", String::as_str) });
    }

    #[test]
    fn any_bytes_are_refused_or_a_note(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..80u8) {
        for bytes in [&bytes[..], &[&[kind], &bytes[..]].concat()] {
            let mut again = Vec::new();
            if let Ok(ask) = Ask::parse(bytes) {
                ask.emit(&mut again);
                prop_assert_eq!(&again[4..], bytes);
            }
            if let Ok(tell) = Tell::parse(bytes) {
                let mut again = Vec::new();
                tell.emit(&mut again);
                prop_assert_eq!(&again[4..], bytes);
            }
        }
    }

    /// However a stream is cut into pieces, and whatever length it announces: no more is kept than has come.
    #[test]
    fn no_memory_for_what_is_only_announced(length: u32, come in 0..200usize) {
        let stream = [&length.to_be_bytes()[..], &vec![7; come]].concat();
        let mut note = Vec::new();
        let read = read(&mut &stream[..], NOTE_BYTES_MAX, &mut note, || {});
        prop_assert_eq!(read.is_ok(), length as usize <= come);
        prop_assert!(note.capacity() <= 2 * (come + CHUNK));
    }
}

#[test]
fn what_is_too_long_is_not_read() {
    let mut note = Vec::new();
    let long = (NOTE_BYTES_MAX as u32 + 1).to_be_bytes();
    assert!(matches!(read(&mut &long[..], NOTE_BYTES_MAX, &mut note, || {}), Err(Broken::Length(_))));
    assert!(matches!(read(&mut &b""[..], NOTE_BYTES_MAX, &mut note, || {}), Err(Broken::Gone)));
    assert!(matches!(read(&mut &[0, 0][..], NOTE_BYTES_MAX, &mut note, || {}), Err(Broken::Silent)));
    let mut hello = Vec::new();
    Ask::Hello { version: VERSION }.emit(&mut hello);
    assert!(hello.len() <= GREETING_BYTES_MAX);
}
