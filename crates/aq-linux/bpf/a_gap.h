/* SPDX-License-Identifier: Apache-2.0
 *
 * The A-Gap of one entity (Wu, Wang, Wang, Ng, SIGCOMM 2023; Theorem 3.2, Algorithms 1 and 2) in one 64-bit word.
 *
 * The paper stores the gap A and the time of the last packet, and computes at each packet
 *
 *     A = max(0, A - R * (now - last)) + size;  drop if A > limit (and take size back);  mark if A > threshold
 *
 * as crates/sharing/src/aq/gap.rs does. Here the state is the instant E at which a queue of its own, drained at R, would
 * be empty: A = R * max(0, E - now). In this form the same recurrence is
 *
 *     E = max(E, now) + size / R;  drop if E - now > limit / R (E stays);  mark if E - now > threshold / R
 *
 * so one compare-and-swap updates it, and no update of two processors is lost. A change of R leaves E as it is, which
 * keeps the virtual queueing delay A/R, as Gap::change_rate does.
 *
 * Unit: a tick is 2^-10 ns. The time of a byte is a fixed-point number with 16 bits after the point. A packet's time is
 * rounded to the nearest tick: at 100 Gbps a packet of 64 bytes takes 5,243 ticks.
 *
 * Wrap: ticks of the kernel's monotonic clock wrap after 208 days. E is never further ahead than the limit, which is at
 * most the horizon of 2^47 ticks (137 s); what seems further ahead lies in the past. An entity that was silent for 208
 * days to within 137 s may lose packets until they are over. A new entity's E is the instant at which it was made.
 *
 * crates/aq-linux/src/word.rs is the same in Rust; tests/kernel.rs holds the two against each other.
 */
#ifndef CLEARWAY_A_GAP_H
#define CLEARWAY_A_GAP_H

#define TICKS_PER_NS_SHIFT 10
#define PER_BYTE_SHIFT 16
#define HORIZON_TICKS (1ULL << 47)
/* Attempts before the time is added without a look at the limit. With twice as many, a verifier that may not assume
 * CAP_PERFMON gives the program up as too complex. */
#define ATTEMPTS 8

/* What the control plane writes; the program only reads it. All times in ticks. */
struct aq_config {
	__u64 per_byte;	/* time of a byte at R, times 2^16; 0: no AQ, every packet passes */
	__u64 limit;
	__u64 mark;	/* all ones: never */
	__u32 first;	/* the first of its states */
	__u32 flows;	/* how many states it has: its flows are spread over them by hash */
};

/* What the program writes; the control plane reads it. A cache line. */
struct aq_state {
	__u64 when_empty;	/* E */
	__u64 packets;		/* passed */
	__u64 bytes;		/* passed */
	__u64 drops;
	__u64 dropped_bytes;
	__u64 marks;
	__u64 hidden;		/* packets with ports that could not be known */
	__u64 spare;
};

enum aq_verdict { AQ_PASS, AQ_MARK, AQ_DROP };

static __always_inline enum aq_verdict a_gap(struct aq_state *state, const struct aq_config *config, __u64 now,
					     __u64 bytes)
{
	__u64 limit = config->limit, cost;
	int attempt;

	cost = (bytes * config->per_byte + (1ULL << (PER_BYTE_SHIFT - 1))) >> PER_BYTE_SHIFT;
	for (attempt = 0; attempt < ATTEMPTS; attempt++) {
		__u64 empty = *(volatile __u64 *)&state->when_empty;
		__u64 ahead = empty - now;

		if (ahead > HORIZON_TICKS)
			ahead = 0;
		ahead += cost;
		if (ahead > limit)
			return AQ_DROP;
		if (__sync_val_compare_and_swap(&state->when_empty, empty, now + ahead) == empty)
			return ahead > config->mark ? AQ_MARK : AQ_PASS;
	}
	/* Other processors were faster each time, so E is fresh: no packet goes uncounted. */
	__sync_fetch_and_add(&state->when_empty, cost);
	return AQ_PASS;
}

#endif
