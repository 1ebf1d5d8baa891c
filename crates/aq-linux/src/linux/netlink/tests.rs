use super::*;

fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend((value.len() as u16 + 4).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// A port of a bridge, as the kernel describes it.
fn body() -> Vec<u8> {
    let mut body = vec![0; LINK_BODY];
    body[2..4].copy_from_slice(&1_u16.to_ne_bytes());
    body[4..8].copy_from_slice(&7_u32.to_ne_bytes());
    body[8..12].copy_from_slice(&0x1043_u32.to_ne_bytes());
    attribute(&mut body, NAME, b"veth0\0");
    attribute(&mut body, PEER, &9_u32.to_ne_bytes());
    attribute(&mut body, PEER_NAMESPACE, &0_u32.to_ne_bytes());
    let mut info = Vec::new();
    attribute(&mut info, INFO_KIND, b"veth\0");
    attribute(&mut info, INFO_MASTER, b"bridge\0");
    // Nested, by a flag.
    attribute(&mut body, 0x8000 | INFO, &info);
    let counts: Vec<u8> = [10_u64, 20, 1_000, 2_000].iter().flat_map(|count| count.to_ne_bytes()).collect();
    attribute(&mut body, STATISTICS, &counts);
    body
}

#[test]
fn a_device_is_read() {
    let wanted = Link {
        index: 7,
        name: "veth0".to_owned(),
        kind: "veth".to_owned(),
        port_of: "bridge".to_owned(),
        header: 1,
        up: true,
        peer: Some(9),
        peer_is_elsewhere: true,
        received: Count { packets: 10, bytes: 1_000 },
        sent: Count { packets: 20, bytes: 2_000 },
    };
    assert_eq!(Link::read(&body()), Some(wanted));
}

#[test]
fn no_bytes_make_it_panic() {
    let whole = request(NEW_LINK, 0, &body());
    for cut in 0..whole.len() {
        let mut read = |_: u16, body: &[u8]| _ = Link::read(body);
        let _ = take(&whole[..cut], &mut read);
        let _ = take(&whole[cut..], &mut read);
        let _ = Link::read(&whole[cut..]);
    }
    let refused = request(ERROR, 0, &(-1_i32).to_ne_bytes());
    assert_eq!(take(&refused, &mut |_, _| {}), Err(Errno::PERM));
}

#[test]
fn this_machine_has_a_loopback_device() {
    // Any user may ask.
    let lo = link("lo").unwrap().unwrap();
    assert_eq!((lo.index, lo.header), (1, 772));
    let found = links().unwrap().into_iter().find(|one| one.index == 1).unwrap();
    assert_eq!(found.name, "lo");
    assert_eq!(link("absent0").unwrap(), None);
    if lo.up {
        assert!(addresses(lo.index).unwrap().iter().all(|address| address.is_loopback()));
    }
}
