use units::HostId;

use super::*;

#[derive(Debug)]
#[expect(dead_code, reason = "they are only printed")]
enum Message {
    Done,
    Pause { root: Root, distance: u8 },
    Data(Part),
    To(Option<HostId>, [u8; 2]),
    Blocks { blocks: [Part; 2], last: bool },
}

#[derive(Debug)]
#[expect(dead_code, reason = "they are only printed")]
struct Root {
    node: u32,
    port: u16,
}

#[derive(Debug)]
#[expect(dead_code, reason = "they are only printed")]
struct Part {
    packet: u32,
    last: bool,
}

#[test]
fn a_header_is_said_without_names_of_types() {
    let says = |message: Message| in_words(&format!("{message:?}"));
    assert_eq!(says(Message::Done), "Done");
    let pause = Message::Pause { root: Root { node: 3, port: 2 }, distance: 1 };
    assert_eq!(says(pause), "Pause root node 3, port 2, distance 1");
    assert_eq!(says(Message::Data(Part { packet: 7, last: true })), "Data packet 7, last true");
    assert_eq!(says(Message::To(Some(HostId(4)), [1, 2])), "To 4, [1, 2]");
    let blocks = [Part { packet: 7, last: true }, Part { packet: 8, last: false }];
    let said = "Blocks blocks [packet 7, last true, packet 8, last false], last true";
    assert_eq!(says(Message::Blocks { blocks, last: true }), said);
}
