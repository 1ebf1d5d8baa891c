use node::wire::Writer;

use super::*;

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut to = Writer::new(&mut bytes);
    to.u8(kind);
    to.u32(body.len() as u32);
    to.bytes(body);
    bytes
}

fn packet(there: u16, here: u16, entry: &[u8]) -> Vec<u8> {
    record(PACKET, &[&there.to_be_bytes()[..], &here.to_be_bytes(), entry].concat())
}

fn heard(records: &[Vec<u8>]) -> (Vec<Vec<u8>>, bool) {
    let mut entries = Vec::new();
    let (count, whole) = read_any(&records.concat(), |entry| entries.push(entry.to_vec()));
    assert_eq!(count, entries.len());
    (entries, whole)
}

#[test]
fn packets_come_out_in_order_however_many_there_are() {
    // More than a ring holds.
    let entries: Vec<Vec<u8>> = (0..10 * crate::ring::RING).map(|number| vec![number as u8; number]).collect();
    let records: Vec<Vec<u8>> = entries.iter().map(|entry| packet(0, 0, entry)).collect();
    assert_eq!(heard(&[record(HELLO, &[0; 9])]), (Vec::new(), true));
    assert_eq!(heard(&records), (entries, true));
}

#[test]
fn nonsense_behind_a_right_tag_ends_the_trunk_and_nothing_else() {
    let some = packet(0, 0, b"one");
    let number = |word: u32| record(BOARD, &[&word.to_be_bytes()[..], &7u64.to_be_bytes()].concat());
    for nonsense in [
        packet(1, 0, b"no such worker there"),
        packet(0, 1, b"no such worker here"),
        packet(0, 0, &[0; 4_000]),
        record(PACKET, &[0, 0, 0]),
        record(9, b"no such record"),
        record(END, b"not empty"),
        number(u32::MAX),
        record(BOARD, &[0; 13]),
        [record(END, &[]), packet(0, 0, b"behind the end")].concat(),
        [&[PACKET][..], &u32::MAX.to_be_bytes()].concat(),
    ] {
        assert_eq!(heard(&[some.clone(), nonsense, some.clone()]), (vec![b"one".to_vec()], false));
    }
    assert!(heard(&[number(16), record(END, &[]), number(17)]).1, "a board may change to the last");
    let cut = &some[..some.len() - 1];
    assert_eq!(heard(&[cut.to_vec()]), (Vec::new(), false), "the rest has not come");
}
