use super::{check, numbered};

#[test]
fn another_machine_says_no_more_of_a_file_than_its_name() {
    assert_eq!(numbered("/tmp/out.pcapng", 0), "/tmp/out.pcapng");
    assert_eq!(numbered("/etc/cron.d/out.pcapng", 1), "out.1.pcapng");
    assert_eq!(numbered("../../.bashrc", 2), ".bashrc.2");
    assert_eq!(numbered("a/..", 3), "capture.3");
}

#[test]
fn a_file_that_is_no_capture_is_not_overwritten() {
    let folder = std::env::temp_dir().join(format!("clearway-captures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("file");
    let of = |content: &[u8]| {
        std::fs::write(&path, content).expect("a file");
        check(&path.to_string_lossy())
    };
    let (none, capture) = (of(b""), of(b"\x0A\x0D\x0D\x0A and more"));
    let (precious, short) = (of(b"precious"), of(b"\x0A"));
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(none.is_ok() && capture.is_ok() && precious.is_err() && short.is_err());
    assert!(check(&path.to_string_lossy()).is_ok(), "a new file");
}
