/* A module with faults, for tests. The setting `fault` says which it has in `on_ack`:
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=16384 faulty.c -o faulty.wasm
 */
typedef unsigned long long u64;
#define EXPORT(name) __attribute__((export_name("clearway_" name)))

static struct { u64 calls; } state;
static u64 event[24], verdict[5];
static double settings[3];
static volatile u64 sink;
/* Of the module, not of a flow: a fresh instance has 0. */
static u64 told;

EXPORT("abi") int abi(void) { return 1; }
EXPORT("event") u64 *event_at(void) { return event; }
EXPORT("verdict") u64 *verdict_at(void) { return verdict; }
EXPORT("state") void *state_at(void) { return &state; }
EXPORT("state_bytes") int state_bytes(void) { return sizeof state; }
/* The fault; in which call of a flow; the window, in bytes. */
EXPORT("settings") const char *names(void) { return "fault=0\nat=1\nwindow=20000\n"; }
EXPORT("set") void set(int index, double value) { settings[index] = value; }

static void answer(void) {
    verdict[0] = (u64)settings[2];
    verdict[1] = verdict[2] = verdict[3] = verdict[4] = 0;
}

static int deeper(volatile int *of) {
    volatile int here[64];
    here[0] = *of + 1;
    return deeper(here) + here[1];
}

EXPORT("on_start") void on_start(void) { answer(); }
EXPORT("on_loss") void on_loss(void) { answer(); }
EXPORT("on_mark") void on_mark(void) { answer(); }

EXPORT("on_ack") void on_ack(void) {
    if (settings[0] == 12) { /* says nothing from its second call on */
        if (!state.calls++) verdict[0] = (u64)settings[2] + event[7];
        return;
    }
    answer();
    state.calls++;
    told++;
    if (state.calls < (u64)settings[1])
        return;
    switch ((int)settings[0]) {
    case 1: __builtin_trap();
    case 2: for (;;) sink++;
    case 3: __builtin_wasm_memory_grow(0, 1000); return;
    case 4: verdict[0] = 0; return;
    case 5: verdict[1] = 1; return;
    case 6: sink = *(volatile u64 *)0xfffffff0u; return;
    case 7: sink = 1 / (settings[0] - 7 > 0 ? 1 : (int)sink); return;
    case 8: verdict[2] = 1; return;
    case 9: { volatile int first = 0; sink = deeper(&first); return; }
    case 10: verdict[2] = 1000000; return; /* a timer, and no on_timer */
    case 11: verdict[0] = told * 1000; return; /* what flows of a host share */
    }
}
