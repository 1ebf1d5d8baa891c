// SPDX-License-Identifier: Apache-2.0
/*
 * Augmented Queue for one direction of one network device: whose packet is it, and may it pass?
 *
 * The packet's entity is the first that matches of: cgroup (the deepest first), mark, VLAN, destination prefix, source
 * prefix, destination port, source port; else the default entity, number 0. Only the kinds that some entity uses are
 * looked at. Then a_gap.h decides. Packets that pass go on to whatever program or filter comes next.
 *
 * A packet of several segments (GSO, GRO) is one arrival of all its segments' bytes on the wire.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "a_gap.h"

/* Set before loading; the verifier removes what they rule out. */
volatile const __u32 drop_code = TC_ACT_SHOT;	/* TC_ACT_STOLEN at a local sender's own egress */
volatile const __u32 at_ingress = 0;
volatile const __u32 link_bytes = ETH_HLEN;	/* of a packet's link header; 0 for devices without */
volatile const __u32 kinds = 0xffffffff;	/* which kinds of match to look at */
volatile const __u32 test_clock = 0;		/* tests only: the packet's time stamp is the time */
volatile const __u32 test_entities = 0;		/* tests only: an entity at random of so many */

enum kind { CGROUP, MARK, VLAN, DESTINATION, SOURCE, DESTINATION_PORT, SOURCE_PORT };
#define HAS(kind) (kinds & (1U << (kind)))
#define LEVELS 8
#define NO_ENTITY (~0U)

struct key {
	__u64 value;
	__u32 kind;
	__u32 pad;
};

/* A prefix of either family and direction in one trie: the first word is both, the length counts it. */
struct prefix {
	__u32 length;
	__u32 which;
	__u8 address[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct aq_config);
} configs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct aq_state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct key);
	__type(value, __u32);
} keys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __u32);
} prefixes SEC(".maps");

/* By port number: 65,536 destination ports, then as many source ports. 0 for none, else the entity plus 1. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct headers {
	__u32 l4;	/* offset behind the network header; 0 if this is no IP */
	__u8 protocol;
	__u8 fragment;	/* a later fragment has no ports */
	__u16 version;
	__u8 source[16], destination[16];
};

static __always_inline void parse(struct __sk_buff *skb, struct headers *h)
{
	h->l4 = 0;
	h->fragment = 0;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET) || ip.version != 4)
			return;
		h->version = 4;
		h->protocol = ip.protocol;
		h->l4 = ip.ihl * 4;
		h->fragment = (ip.frag_off & bpf_htons(0x1fff)) != 0;
		__builtin_memset(h->source, 0, 16);
		__builtin_memset(h->destination, 0, 16);
		__builtin_memcpy(h->source, &ip.saddr, 4);
		__builtin_memcpy(h->destination, &ip.daddr, 4);
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET))
			return;
		h->version = 6;
		h->protocol = ip.nexthdr;
		h->l4 = sizeof(ip);
		__builtin_memcpy(h->source, &ip.saddr, 16);
		__builtin_memcpy(h->destination, &ip.daddr, 16);
	}
}

static __always_inline __u32 by_key(enum kind kind, __u64 value)
{
	struct key key = { .value = value, .kind = kind };
	__u32 *found = bpf_map_lookup_elem(&keys, &key);

	return found ? *found : NO_ENTITY;
}

static __always_inline __u32 by_prefix(enum kind kind, __u32 version, const __u8 *address)
{
	struct prefix prefix = { .length = 32 + (version == 4 ? 32 : 128), .which = version << 8 | kind };
	__u32 *found;

	__builtin_memcpy(prefix.address, address, 16);
	found = bpf_map_lookup_elem(&prefixes, &prefix);
	return found ? *found : NO_ENTITY;
}

static __always_inline __u32 by_port(__u32 index)
{
	__u32 *found = bpf_map_lookup_elem(&ports, &index);

	return found && *found ? *found - 1 : NO_ENTITY;
}

static __always_inline __u32 classify(struct __sk_buff *skb, const struct headers *h)
{
	__u32 entity;

	if (HAS(CGROUP)) {
		int level;

		for (level = LEVELS; level >= 1; level--) {
			__u64 id = bpf_skb_ancestor_cgroup_id(skb, level);

			if (id && (entity = by_key(CGROUP, id)) != NO_ENTITY)
				return entity;
		}
	}
	if (HAS(MARK) && skb->mark && (entity = by_key(MARK, skb->mark)) != NO_ENTITY)
		return entity;
	if (HAS(VLAN) && skb->vlan_present && (entity = by_key(VLAN, skb->vlan_tci & 0xfff)) != NO_ENTITY)
		return entity;
	if (!h->l4)
		return 0;
	if (HAS(DESTINATION) && (entity = by_prefix(DESTINATION, h->version, h->destination)) != NO_ENTITY)
		return entity;
	if (HAS(SOURCE) && (entity = by_prefix(SOURCE, h->version, h->source)) != NO_ENTITY)
		return entity;
	if ((HAS(DESTINATION_PORT) || HAS(SOURCE_PORT)) && !h->fragment &&
	    (h->protocol == IPPROTO_TCP || h->protocol == IPPROTO_UDP)) {
		__be16 pair[2];

		if (bpf_skb_load_bytes_relative(skb, h->l4, pair, sizeof(pair), BPF_HDR_START_NET))
			return 0;
		if (HAS(DESTINATION_PORT) && (entity = by_port(bpf_ntohs(pair[1]))) != NO_ENTITY)
			return entity;
		if (HAS(SOURCE_PORT) && (entity = by_port(65536 + bpf_ntohs(pair[0]))) != NO_ENTITY)
			return entity;
	}
	return 0;
}

/* Bytes on the wire. At egress the kernel has counted each segment's headers, at ingress it has not. */
static __always_inline __u64 bytes_of(struct __sk_buff *skb, const struct headers *h)
{
	__u32 size, headers;
	__u8 words = 0;

	if (!at_ingress)
		return skb->wire_len;
	size = skb->gso_size;
	if (!size || !h->l4)
		return skb->len;
	headers = link_bytes + h->l4 + 8;
	if (h->protocol == IPPROTO_TCP) {
		if (bpf_skb_load_bytes_relative(skb, h->l4 + 12, &words, 1, BPF_HDR_START_NET))
			return skb->len;
		headers = link_bytes + h->l4 + (words >> 4) * 4;
	}
	if (skb->len <= headers)
		return skb->len;
	return skb->len + (__u64)((skb->len - headers - 1) / size) * headers;
}

SEC("classifier")
int aq(struct __sk_buff *skb)
{
	struct headers h = {};
	struct aq_config *config;
	struct aq_state *state;
	__u32 entity, which;
	__u64 now, bytes;

	if (kinds || at_ingress || !test_entities)
		parse(skb, &h);
	entity = test_entities ? (__u32)(((__u64)bpf_get_prandom_u32() * test_entities) >> 32) : classify(skb, &h);
	config = bpf_map_lookup_elem(&configs, &entity);
	if (!config)
		return TC_ACT_UNSPEC;
	which = config->first;
	if (config->flows > 1)
		which += ((__u64)bpf_get_hash_recalc(skb) * config->flows) >> 32;
	state = bpf_map_lookup_elem(&states, &which);
	if (!state)
		return TC_ACT_UNSPEC;
	bytes = bytes_of(skb, &h);
	/* ARP and the like must pass, or nobody finds anybody. */
	if (config->per_byte && (h.l4 || test_entities)) {
		now = test_clock ? skb->tstamp : bpf_ktime_get_ns();
		switch (a_gap(state, config, now << TICKS_PER_NS_SHIFT, bytes)) {
		case AQ_DROP:
			__sync_fetch_and_add(&state->drops, 1);
			__sync_fetch_and_add(&state->dropped_bytes, bytes);
			return drop_code;
		case AQ_MARK:
			if (bpf_skb_ecn_set_ce(skb))
				__sync_fetch_and_add(&state->marks, 1);
			break;
		case AQ_PASS:
			break;
		}
	}
	__sync_fetch_and_add(&state->packets, 1);
	__sync_fetch_and_add(&state->bytes, bytes);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Apache-2.0";
