/// Asks the processor for the cache lines of something that will be read soon, and goes on at once. A hint: nothing
/// depends on it, and on processors other than x86-64 it does nothing.
///
/// The time of a hop is mostly spent waiting for a packet's slot and its output port to come from memory, one after the
/// other. Prefetching what will be needed next lets these waits overlap.
#[inline(always)]
#[allow(unsafe_code, reason = "a prefetch has no safe form in the standard library")]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE_BYTES: usize = 64;
        let first = std::ptr::from_ref(place).cast::<i8>();
        for line in 0..size_of::<T>().div_ceil(LINE_BYTES) {
            // SAFETY: a prefetch reads nothing that the program could see and never faults; the address lies within
            // `place` besides.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.add(line * LINE_BYTES)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
