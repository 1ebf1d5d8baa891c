// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * DCTCP (RFC 8257) as a congestion control in BPF, for kernels that were built without it. Growth is Reno's; what is
 * DCTCP's is the window after marks, by their share (sections 3.3 and 3.4), and a receiver that tells the sender of each
 * change between marked and unmarked packets at once (section 3.2). A loss halves the window (section 3.5).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define ONE 1024U		/* alpha is a fraction of this */
#define GAIN_SHIFT 4		/* g = 1/16 */
#define NEEDS_ECN 2		/* TCP_CONG_NEEDS_ECN */
#define DEMAND_CWR 4		/* TCP_ECN_DEMAND_CWR */
#define ACK_TIMER 4		/* ICSK_ACK_TIMER */

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

struct memory {
	__u32 alpha;
	__u32 window_end;	/* the share of marks is taken when this is acknowledged */
	__u32 delivered, delivered_ce;
	__u32 before;		/* the window before the last reduction */
	__u32 received;		/* up to where the last packet of the same kind was received */
	__u32 marked;
	__u32 state;
};

static __always_inline struct memory *memory_of(struct sock *sk)
{
	return (struct memory *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

SEC("struct_ops/begin") void BPF_PROG(begin, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct memory *m = memory_of(sk);

	m->alpha = ONE;
	m->window_end = tp->snd_nxt;
	m->delivered = tp->delivered;
	m->delivered_ce = tp->delivered_ce;
	m->before = 0;
	m->received = tp->rcv_nxt;
	m->marked = 0;
	m->state = 0;
}

static __always_inline void halve(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 half = tp->snd_cwnd / 2;

	memory_of(sk)->before = tp->snd_cwnd;
	tp->snd_ssthresh = half < 2 ? 2 : half;
}

SEC("struct_ops/changed") void BPF_PROG(changed, struct sock *sk, __u8 state)
{
	struct memory *m = memory_of(sk);

	if (state == TCP_CA_Recovery && m->state != TCP_CA_Recovery)
		halve(sk);
	m->state = state;
}

SEC("struct_ops/acknowledged") void BPF_PROG(acknowledged, struct sock *sk, __u32 flags)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct memory *m = memory_of(sk);
	__u32 all, marked, alpha;

	if ((__s32)(tp->snd_una - m->window_end) < 0)
		return;
	all = tp->delivered - m->delivered;
	marked = tp->delivered_ce - m->delivered_ce;
	alpha = m->alpha;
	/* What rounds to nothing is nothing. */
	alpha -= alpha >> GAIN_SHIFT ? alpha >> GAIN_SHIFT : alpha;
	if (marked && all)
		alpha += (__u32)(((__u64)marked * (ONE >> GAIN_SHIFT)) / all);
	m->alpha = alpha > ONE ? ONE : alpha;
	m->window_end = tp->snd_nxt;
	m->delivered = tp->delivered;
	m->delivered_ce = tp->delivered_ce;
}

SEC("struct_ops/reduced") __u32 BPF_PROG(reduced, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct memory *m = memory_of(sk);
	__u32 window = tp->snd_cwnd;

	m->before = window;
	window -= (__u32)(((__u64)window * m->alpha) / (2 * ONE));
	return window < 2 ? 2 : window;
}

SEC("struct_ops/restored") __u32 BPF_PROG(restored, struct sock *sk)
{
	__u32 before = memory_of(sk)->before, now = ((struct tcp_sock *)sk)->snd_cwnd;

	return before > now ? before : now;
}

SEC("struct_ops/happened") void BPF_PROG(happened, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct memory *m = memory_of(sk);
	__u32 marked = event == CA_EVENT_ECN_IS_CE;

	if (event == CA_EVENT_LOSS)
		halve(sk);
	if (!marked && event != CA_EVENT_ECN_NO_CE)
		return;
	if (marked != m->marked && (((struct inet_connection_sock *)sk)->icsk_ack.pending & ACK_TIMER))
		bpf_tcp_send_ack(tp, m->received);
	m->received = tp->rcv_nxt;
	m->marked = marked;
	if (marked)
		tp->ecn_flags |= DEMAND_CWR;
	else
		tp->ecn_flags &= ~DEMAND_CWR;
}

SEC("struct_ops/grown") void BPF_PROG(grown, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC(".struct_ops") struct tcp_congestion_ops cwaqdctcp = {
	.init = (void *)begin,
	.in_ack_event = (void *)acknowledged,
	.ssthresh = (void *)reduced,
	.undo_cwnd = (void *)restored,
	.cwnd_event = (void *)happened,
	.set_state = (void *)changed,
	.cong_avoid = (void *)grown,
	.flags = NEEDS_ECN,
	.name = "cwaqdctcp",
};

char _license[] SEC("license") = "GPL";
