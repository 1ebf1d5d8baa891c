//! DCTCP (RFC 8257), written for Clearway's interface of modules: a template for a congestion control in Rust.
//!
//! What a flow has is `State`, which Clearway puts into place before each call and takes away after it. What has
//! happened is in `EVENT`, the answer goes to `VERDICT`: docs/own-protocol.md says what each number is. Settings are
//! the module's own and the same for all flows.
#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

/// A flow: its window as NewReno keeps it, and the share of marked bytes.
#[derive(Clone, Copy)]
struct State {
    mss: u64,
    window: u64,
    threshold: u64,
    /// Bytes acknowledged since the window last grew.
    counted: u64,
    /// End of the window of data that is being observed.
    window_end: u64,
    acked: u64,
    marked: u64,
    alpha: f64,
}

const NEW: State =
    State { mss: 0, window: 0, threshold: u64::MAX, counted: 0, window_end: 0, acked: 0, marked: 0, alpha: 0.0 };

static mut EVENT: [u64; 24] = [0; 24];
static mut VERDICT: [u64; 5] = [0; 5];
static mut STATE: State = NEW;
/// The weight of the newest window in `alpha`, and the first `alpha`.
static mut SETTINGS: [f64; 2] = [0.0; 2];
static NAMES: [u8; 17] = *b"g=0.0625\nalpha=1\0";

#[unsafe(no_mangle)]
extern "C" fn clearway_abi() -> i32 {
    1
}
#[unsafe(no_mangle)]
extern "C" fn clearway_event() -> *mut u64 {
    (&raw mut EVENT).cast()
}
#[unsafe(no_mangle)]
extern "C" fn clearway_verdict() -> *mut u64 {
    (&raw mut VERDICT).cast()
}
#[unsafe(no_mangle)]
extern "C" fn clearway_state() -> *mut u8 {
    (&raw mut STATE).cast()
}
#[unsafe(no_mangle)]
extern "C" fn clearway_state_bytes() -> i32 {
    size_of::<State>() as i32
}
#[unsafe(no_mangle)]
extern "C" fn clearway_settings() -> *const u8 {
    NAMES.as_ptr()
}
#[unsafe(no_mangle)]
extern "C" fn clearway_set(index: i32, value: f64) {
    unsafe { SETTINGS[index as usize & 1] = value }
}

/// What has happened.
fn event(index: usize) -> u64 {
    unsafe { EVENT[index] }
}

/// Does something to the flow, and answers.
fn answer(then: impl FnOnce(&mut State)) {
    let mut flow = unsafe { STATE };
    then(&mut flow);
    // Until so many bytes may let the window grow, or the observed window ends, each acknowledgement would get the same
    // answer: Clearway may gather them. In slow start each counts that lets it grow at all.
    let quiet = if flow.window < flow.threshold { 1 } else { flow.window.saturating_sub(flow.counted) };
    unsafe {
        STATE = flow;
        // The window; no rate; no timer; how long to gather acknowledgements.
        VERDICT = [flow.window, 0, 0, quiet, flow.window_end];
    }
}

impl State {
    /// Sets the window, at least two segments; it then grows by one a round trip.
    fn reduce(&mut self, bytes: u64) {
        self.threshold = bytes.max(2 * self.mss);
        self.window = self.threshold;
        self.counted = 0;
    }
}

#[unsafe(no_mangle)]
extern "C" fn clearway_on_start() {
    answer(|flow| *flow = State { mss: event(0), window: event(1), alpha: unsafe { SETTINGS[1] }, ..NEW });
}

#[unsafe(no_mangle)]
extern "C" fn clearway_on_ack() {
    let (acked, marked, growing, una, next, phase) = (event(2), event(3), event(4), event(7), event(8), event(21));
    // Whether the last one may let the window grow: without a mark, sent by a full window, outside fast recovery.
    let grows = event(19) == 0 && event(20) == 1 && phase != 1;
    answer(|flow| {
        flow.acked += acked;
        flow.marked += marked;
        if una > flow.window_end {
            let (share, g) = (flow.marked as f64 / flow.acked as f64, unsafe { SETTINGS[0] });
            flow.alpha = flow.alpha * (1.0 - g) + g * share;
            (flow.window_end, flow.acked, flow.marked) = (next, 0, 0);
        }
        if flow.window < flow.threshold {
            // After a timeout (phase 2) one acknowledgement may cover much that arrived long ago.
            let segments = if phase == 2 { 1 } else { 2 };
            flow.window += growing.min(segments * flow.mss);
        } else {
            flow.counted += growing;
            if flow.counted >= flow.window && grows {
                flow.counted -= flow.window;
                flow.window += flow.mss;
            }
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn clearway_on_mark() {
    answer(|flow| flow.reduce((flow.window as f64 * (1.0 - flow.alpha / 2.0)) as u64));
}

#[unsafe(no_mangle)]
extern "C" fn clearway_on_loss() {
    let (signal, in_flight) = (event(1), event(2));
    answer(|flow| {
        // 3 is another timeout of the same segment: the threshold stays.
        if signal != 3 {
            flow.reduce(in_flight / 2);
        }
        if signal >= 2 {
            flow.window = flow.mss;
        }
    });
}
