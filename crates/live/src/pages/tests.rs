use node::Packet;
use node::pool::{Pool, Transit};
use units::{FlowId, HostId};

use super::*;

fn insert(pool: &mut Pool) -> PacketId {
    pool.insert(Packet::bare(FlowId(0), HostId(0), HostId(1)), Transit::default())
}

#[test]
fn a_page_goes_along_and_comes_home() {
    let (mut here, mut there) = (Pages::new(0, 100), Pages::new(1, 100));
    let (mut pool, mut other) = (Pool::default(), Pool::default());
    let id = insert(&mut pool);
    here.fresh(id, 3).copy_from_slice(b"abc");
    let written = here.content(id, 3).expect("just written").as_ptr();
    let page = here.leave(id);
    assert_eq!(here.content(id, 3), None);

    let came = insert(&mut other);
    there.come(came, page);
    let read = there.content(came, 3).expect("it came with it");
    assert_eq!((read, read.as_ptr()), (&b"abc"[..], written), "nothing is copied");
    there.clear(came);
    let (home, page) = there.next_foreign().expect("it is not there's");
    assert_eq!(home, 0);
    here.free(page);
    assert_eq!(here.fresh(id, 3).as_ptr(), written, "it is used again");
}

#[test]
fn what_was_dropped_gives_its_page_to_the_next_in_its_place() {
    let (mut here, mut there) = (Pages::new(0, 100), Pages::new(1, 100));
    let mut pool = Pool::default();
    let id = insert(&mut pool);
    let own = here.fresh(id, 8).as_ptr();
    pool.remove(id);
    let next = insert(&mut pool);
    assert_eq!((next, here.fresh(next, 8).as_ptr()), (id, own));
    // One of another worker goes back.
    there.fresh(id, 8);
    here.come(id, there.leave(id));
    here.fresh(id, 8);
    assert!(here.next_foreign().is_some() && here.next_foreign().is_none());
}
