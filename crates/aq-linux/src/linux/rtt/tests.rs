use std::io::Write;

use super::super::netlink::{HEADER, take};
use super::*;

/// A message as the kernel writes it: two connections, then the end.
fn answer(of: &[([u8; 4], [u8; 4], u64, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (source, destination, acked, rtt) in of {
        let mut body = vec![0; MESSAGE];
        body[0] = 2;
        body[SOURCE_AT..SOURCE_AT + 4].copy_from_slice(source);
        body[DESTINATION_AT..DESTINATION_AT + 4].copy_from_slice(destination);
        // An attribute of another kind, 5 bytes long, comes first.
        body.extend([5, 0, 8, 0, 0, 0, 0, 0]);
        let mut info = vec![0; 232];
        info[BYTES_ACKED_AT..BYTES_ACKED_AT + 8].copy_from_slice(&acked.to_ne_bytes());
        info[MIN_RTT_AT..MIN_RTT_AT + 4].copy_from_slice(&rtt.to_ne_bytes());
        body.extend(((info.len() + 4) as u16).to_ne_bytes());
        body.extend(INFO.to_ne_bytes());
        body.extend(info);
        push(&mut bytes, BY_FAMILY, &body);
    }
    push(&mut bytes, 3, &[0; 4]);
    bytes
}

fn push(bytes: &mut Vec<u8>, kind: u16, body: &[u8]) {
    bytes.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(body);
}

#[test]
fn what_the_kernel_says_of_connections_is_read() {
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let bytes = answer(&[(a, b, 1 << 33, 250), (b, a, 7, u32::MAX)]);
    let mut all = Vec::new();
    assert_eq!(take(&bytes, &mut |_, body: &[u8]| all.extend(connection(body))), Ok(false), "the end was said");
    let source = IpAddr::from(a);
    // The second has no sample.
    assert_eq!(all, [Connection { source, destination: b.into(), bytes_acked: 1 << 33, min_rtt_us: 250 }]);
}

#[test]
fn no_bytes_make_it_panic() {
    let whole = answer(&[([10, 0, 0, 1], [10, 0, 0, 2], 1, 1)]);
    for cut in 0..whole.len() {
        let mut read = |_: u16, body: &[u8]| _ = connection(body);
        let _ = take(&whole[..cut], &mut read);
        let _ = take(&whole[cut..], &mut read);
    }
}

#[test]
fn this_machine_answers() {
    // Any user may ask; a loopback device has only connections to itself.
    match measure("lo") {
        Ok(found) => assert_eq!(found, None),
        Err(why) => {
            // By the stream itself: what a test that passes prints is not shown.
            let _ = writeln!(std::io::stderr(), "skipped, round trips of this machine: {why}");
        }
    }
}
