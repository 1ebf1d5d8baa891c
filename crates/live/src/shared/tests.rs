use std::sync::atomic::Ordering;

use super::*;

#[test]
fn what_one_writes_others_read_and_the_length_stays() {
    let file = create(3).expect("memory");
    let (here, there) = (Shared::map(&file, 3, true).expect("mapped"), read_only(&file).expect("opened"));
    let seen = Shared::map(&there, 3, false).expect("mapped");
    here[2].0[15].store(7, Ordering::Relaxed);
    assert_eq!((seen.len(), seen[2].0[15].load(Ordering::Relaxed)), (3, 7));
    assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err(), "sealed");
    assert!(Shared::map(&there, 3, true).is_err(), "opened to be read");
    assert!(Shared::map(&file, 4, true).is_err(), "longer than the file");
}

#[test]
fn a_file_that_may_be_shortened_is_refused() {
    let file = File::from(rustix::fs::memfd_create("short", rustix::fs::MemfdFlags::CLOEXEC).expect("memory"));
    file.set_len(4096).expect("it is not sealed");
    assert!(Shared::map(&file, 1, true).is_err());
}
