/* DCTCP (RFC 8257), written for Clearway's interface of modules: a template for a congestion control in C.
 *
 * What a flow has is `state`, which Clearway puts into place before each call and takes away after it. What has happened
 * is in `event`, the answer goes to `verdict`: docs/own-protocol.md says what each number is. Settings are the module's
 * own and the same for all flows.
 */
typedef unsigned long long u64;
#define EXPORT(name) __attribute__((export_name("clearway_" name)))

/* A flow: its window as NewReno keeps it, and the share of marked bytes. */
static struct {
    u64 mss, window, threshold;
    u64 counted;    /* bytes acknowledged since the window last grew */
    u64 window_end; /* end of the window of data that is being observed */
    u64 acked, marked;
    double alpha;
} state;
static u64 event[24], verdict[5];
/* The weight of the newest window in `alpha`, and the first `alpha`. */
static double settings[2];

EXPORT("abi") int abi(void) { return 1; }
EXPORT("event") u64 *event_at(void) { return event; }
EXPORT("verdict") u64 *verdict_at(void) { return verdict; }
EXPORT("state") void *state_at(void) { return &state; }
EXPORT("state_bytes") int state_bytes(void) { return sizeof state; }
EXPORT("settings") const char *names(void) { return "g=0.0625\nalpha=1\n"; }
EXPORT("set") void set(int index, double value) { settings[index & 1] = value; }

/* Until so many bytes may let the window grow, or the observed window ends, each acknowledgement would get the same
 * answer: Clearway may gather them. In slow start each counts that lets it grow at all. */
static void answer(void) {
    verdict[0] = state.window;
    verdict[1] = 0; /* no rate */
    verdict[2] = 0; /* no timer */
    verdict[3] = state.window < state.threshold ? 1 : state.window < state.counted ? 0 : state.window - state.counted;
    verdict[4] = state.window_end;
}

/* Sets the window, at least two segments; it then grows by one a round trip. */
static void reduce(u64 bytes) {
    state.threshold = bytes > 2 * state.mss ? bytes : 2 * state.mss;
    state.window = state.threshold;
    state.counted = 0;
}

EXPORT("on_start") void on_start(void) {
    state.mss = event[0];
    state.window = event[1];
    state.threshold = ~0ULL;
    state.alpha = settings[1];
    answer();
}

EXPORT("on_ack") void on_ack(void) {
    u64 growing = event[4], una = event[7], next = event[8], phase = event[21];
    /* Whether the last one may let the window grow: without a mark, sent by a full window, outside fast recovery. */
    int grows = event[19] == 0 && event[20] == 1 && phase != 1;
    state.acked += event[2];
    state.marked += event[3];
    if (una > state.window_end) {
        double share = (double)state.marked / (double)state.acked, g = settings[0];
        state.alpha = state.alpha * (1.0 - g) + g * share;
        state.window_end = next;
        state.acked = state.marked = 0;
    }
    if (state.window < state.threshold) {
        /* After a timeout (phase 2) one acknowledgement may cover much that arrived long ago. */
        u64 most = (phase == 2 ? 1 : 2) * state.mss;
        state.window += growing < most ? growing : most;
    } else {
        state.counted += growing;
        if (state.counted >= state.window && grows) {
            state.counted -= state.window;
            state.window += state.mss;
        }
    }
    answer();
}

EXPORT("on_mark") void on_mark(void) {
    reduce((u64)((double)state.window * (1.0 - state.alpha / 2.0)));
    answer();
}

EXPORT("on_loss") void on_loss(void) {
    u64 signal = event[1], in_flight = event[2];
    if (signal != 3) /* another timeout of the same segment: the threshold stays */
        reduce(in_flight / 2);
    if (signal >= 2)
        state.window = state.mss;
    answer();
}
