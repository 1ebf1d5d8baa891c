//! A flag by which long work is stopped. The working thread holds it, so that loops at any depth can poll it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Problem;

thread_local! {
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Does some work on this thread, which ends early once `stop` is set.
pub fn stopped_by<R>(stop: Arc<AtomicBool>, work: impl FnOnce() -> R) -> R {
    let before = STOP.with(|of| of.borrow_mut().replace(stop));
    let result = work();
    STOP.with(|of| *of.borrow_mut() = before);
    result
}

/// An error if the work of this thread is to stop.
pub fn check() -> Result<(), Problem> {
    let stop = STOP.with(|of| of.borrow().as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)));
    if stop { Err(Problem::new("", "interrupted")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_stops_when_somebody_says_so_and_other_work_does_not() {
        let stop = Arc::new(AtomicBool::new(false));
        stopped_by(stop.clone(), || {
            assert!(check().is_ok());
            stop.store(true, Ordering::Relaxed);
            assert_eq!(check().expect_err("stopped").message, "interrupted");
            stopped_by(Arc::default(), || assert!(check().is_ok()));
            assert!(check().is_err());
        });
        assert!(check().is_ok());
    }
}
