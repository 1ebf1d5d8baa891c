// SPDX-License-Identifier: Apache-2.0
/*
 * A policer of one destination port, for kernels without tc's: a token bucket that drops what finds too few tokens.
 * A token is a nanosecond at the rate, as in RFC 2697 and as most policers count. PORT, NS_PER_KB and BURST_NS are
 * given to the compiler, and DROP, if a drop is to be something else than the hook's own.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#ifndef DROP
#define DROP TC_ACT_SHOT
#endif

struct bucket {
	struct bpf_spin_lock lock;
	__u64 last, tokens;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bucket);
} buckets SEC(".maps");

SEC("classifier")
int police(struct __sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns(), cost = (__u64)skb->wire_len * NS_PER_KB / 1000;
	struct bucket *bucket;
	__u32 zero = 0;
	struct iphdr ip;
	__be16 port;
	int conforms;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
	    bpf_skb_load_bytes_relative(skb, ip.ihl * 4 + 2, &port, sizeof(port), BPF_HDR_START_NET) ||
	    port != bpf_htons(PORT))
		return TC_ACT_UNSPEC;
	bucket = bpf_map_lookup_elem(&buckets, &zero);
	if (!bucket)
		return TC_ACT_UNSPEC;
	bpf_spin_lock(&bucket->lock);
	bucket->tokens += now - bucket->last;
	bucket->last = now;
	if (bucket->tokens > BURST_NS)
		bucket->tokens = BURST_NS;
	conforms = bucket->tokens >= cost;
	if (conforms)
		bucket->tokens -= cost;
	bpf_spin_unlock(&bucket->lock);
	return conforms ? TC_ACT_UNSPEC : DROP;
}

char _license[] SEC("license") = "Apache-2.0";
