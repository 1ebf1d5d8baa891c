//! Any datagram is refused or a frame, and what was read is written and read again alike.

#![no_main]

use catalogue::{LinkControl, Transport};
use libfuzzer_sys::fuzz_target;
use live::frame::Codec;

fuzz_target!(|bytes: &[u8]| {
    let transports: Vec<Transport> = Transport::NAMES.iter().filter_map(|name| Transport::named(name)).collect();
    let codec = Codec { transports: &transports, flow_control: &LinkControl::None, hosts: 8, links: 16 };
    check(&codec, bytes);
    // No fuzzer guesses a checksum: the same bytes once more, between what every frame begins and ends with.
    let mut sealed = b"CLWY\x03".to_vec();
    sealed.extend_from_slice(bytes);
    let checksum = crc32fast::hash(&sealed);
    sealed.extend(checksum.to_be_bytes());
    check(&codec, &sealed);
});

fn check(codec: &Codec<'_>, bytes: &[u8]) {
    if let Ok(frame) = codec.parse(bytes) {
        let mut again = Vec::new();
        codec.emit(&frame, &mut again);
        assert_eq!(codec.parse(&again), Ok(frame));
    }
}
