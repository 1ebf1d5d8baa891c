use units::{FlowId, HostId};

use super::*;

fn packet(wire_bytes: u16) -> Packet {
    let mut packet = Packet::bare(FlowId(0), HostId(0), HostId(1));
    packet.wire_bytes = wire_bytes;
    packet
}

#[test]
fn a_packet_is_hit_as_often_as_any_of_its_bits() {
    for (bit_error_rate, bytes) in [(1e-5, 1_500), (1e-3, 64), (1e-6, 9_000), (0.5, 1)] {
        let mut noise = Noise::new(1, 7, Arc::new([]));
        noise.set(LinkNoise { bit_error_rate, loss: 0.0 });
        let count = 100_000;
        let lost = (0..count).filter(|_| noise.loses(&mut packet(bytes))).count() as f64;
        let hit = 1.0 - (1.0 - bit_error_rate).powi(i32::from(bytes) * 8);
        let (due, slack) = (f64::from(count) * hit, 4.0 * (f64::from(count) * hit * (1.0 - hit)).sqrt());
        assert!((lost - due).abs() <= slack, "{bit_error_rate}, {bytes} B: {lost} for {due}");
        assert_eq!(noise.corrupted_packets as f64, lost);
        assert_eq!(noise.corrupted_bytes, noise.corrupted_packets * u64::from(bytes));
    }
}

#[test]
fn packets_are_lost_as_often_as_said_whatever_their_length_and_beside_bit_errors() {
    for (loss, bytes) in [(1e-3, 1_500), (0.3, 64), (1.0, 9_000)] {
        let mut noise = Noise::new(1, 7, Arc::new([]));
        noise.set(LinkNoise { bit_error_rate: 1e-5, loss });
        let count = 100_000;
        let lost = (0..count).filter(|_| noise.loses(&mut packet(bytes))).count() as u64;
        let slack = |due: f64, p: f64| 4.0 * (due * (1.0 - p)).sqrt();
        let due = f64::from(count) * loss;
        assert!(
            (noise.lossy_packets as f64 - due).abs() <= slack(due, loss),
            "{loss}: {} for {due}",
            noise.lossy_packets
        );
        // Bit errors hit what is left as often as ever.
        let hit = 1.0 - (1.0f64 - 1e-5).powi(i32::from(bytes) * 8);
        let due = (f64::from(count) - noise.lossy_packets as f64) * hit;
        assert!(
            (noise.corrupted_packets as f64 - due).abs() <= slack(due, hit),
            "{} for {due}",
            noise.corrupted_packets
        );
        assert_eq!(lost, noise.lossy_packets + noise.corrupted_packets);
        assert_eq!(noise.lossy_bytes, noise.lossy_packets * u64::from(bytes));
    }
}

#[test]
fn a_quiet_link_and_a_frame_lose_nothing() {
    let mut noise = Noise::new(1, 7, Arc::new([]));
    assert!(!noise.loses(&mut packet(1_500)));
    noise.set(LinkNoise { bit_error_rate: 0.5, loss: 1.0 });
    let mut frame = packet(64);
    frame.flags = flags::LINK_FRAME;
    assert!(!noise.loses(&mut frame) && noise.loses(&mut packet(1_500)));
    // Where pauses expire, frames are lost, and are counted with no packets.
    let counted = (noise.lossy_packets, noise.lossy_bytes);
    let mut noise = noise.hitting_frames(true);
    assert!(noise.loses(&mut frame) && noise.lost_frames == 1);
    assert_eq!((noise.lossy_packets, noise.lossy_bytes), counted);
    noise.set(LinkNoise::default());
    assert!((0..100).all(|_| !noise.loses(&mut packet(1_500))));
}
