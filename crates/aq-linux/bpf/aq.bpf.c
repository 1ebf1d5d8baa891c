// SPDX-License-Identifier: Apache-2.0
/*
 * Augmented Queue for one direction of one network device: whose packet is it, and may it pass?
 *
 * The packet's entity is the first that matches of: cgroup (the deepest first), mark, VLAN, destination prefix, source
 * prefix, destination port, source port; else the default entity, number 0. Only the kinds that some entity uses are
 * looked at. Then a_gap.h decides. Packets that pass go on to whatever program or filter comes next.
 *
 * What a packet is stands in its frame: skb->protocol is what a raw socket says it is. Of nested headers the outermost
 * count: the first VLAN tag, the outer IP header of a tunnel. Behind an IPv6 header its extension headers are walked. A
 * later fragment has no ports, so its entity is the first fragment's, which is remembered. A packet that has ports,
 * but out of sight (the first fragment was not seen, or there are too many headers), is counted, and belongs to the
 * entity that claims such packets of its address, else to the default.
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
/* At a local sender's own egress: TC_ACT_STOLEN in clsact; TC_ACT_REDIRECT in tcx, to a device that does not exist. */
volatile const __u32 drop_code = TC_ACT_SHOT;
volatile const __u32 at_ingress = 0;
volatile const __u32 link_bytes = ETH_HLEN;	/* of a packet's link header; 0 for devices without */
volatile const __u32 kinds = 0xffffffff;	/* which kinds of match to look at */
volatile const __u32 test_clock = 0;		/* tests only: the packet's time stamp is the time */
volatile const __u32 test_entities = 0;		/* tests only: an entity at random of so many */

enum kind { CGROUP, MARK, VLAN, DESTINATION, SOURCE, DESTINATION_PORT, SOURCE_PORT, PORTLESS };
#define HAS(kind) (kinds & (1U << (kind)))
#define LEVELS 8
#define TAGS 3		/* VLAN tags in the frame */
#define EXTENSIONS 8	/* IPv6 headers between the first and the transport's */
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

/* A fragmented packet of which the first fragment has passed: whose it is. */
struct fragmented {
	__u8 source[16], destination[16];
	__u32 id;
	__u32 which;	/* IP version; of IPv4 the protocol too */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16);
	__type(key, struct fragmented);
	__type(value, __u32);
} fragments SEC(".maps");

/* IPv6 extension headers that Linux accepts before a transport's. Tests by mask: each branch doubles the verifier's work. */
enum { HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, AUTHENTICATION = 51, OPTIONS = 60 };
#define EXTENSION_MASK (1ULL << HOP_BY_HOP | 1ULL << ROUTING | 1ULL << FRAGMENT | 1ULL << AUTHENTICATION | 1ULL << OPTIONS)
/* Protocols whose header begins with two ports; those from 128 on in a second word. */
#define PORTS_MASK (1ULL << IPPROTO_TCP | 1ULL << IPPROTO_UDP | 1ULL << IPPROTO_DCCP)
#define PORTS_MASK_128 (1ULL << (IPPROTO_SCTP - 128) | 1ULL << (IPPROTO_UDPLITE - 128))

enum fragment { WHOLE, FIRST, LATER };

struct headers {
	__u32 l4;	/* offset of the transport's header; 0 if it is unknown or not in this packet */
	__u32 id;	/* of a fragment */
	__u16 version;	/* 0 if this is no IP */
	__u16 type;	/* of the frame */
	__u16 vlan;	/* id of the tag in the frame, plus 1; 0 if there is none */
	__u8 fragment;
	__u8 protocol;
	__u8 source[16], destination[16];
};

/*
 * Bytes from an offset on: of an Ethernet frame; where the device has another link header or none, of the packet, whose
 * place the kernel knows.
 */
static __always_inline int load(struct __sk_buff *skb, __u32 at, void *to, __u32 size)
{
	if (link_bytes)
		return bpf_skb_load_bytes(skb, at, to, size);
	return bpf_skb_load_bytes_relative(skb, at, to, size, BPF_HDR_START_NET);
}

struct eight {
	__u8 bytes[8];
};

/*
 * Eight of them: no header that is looked at is shorter. As a global function, which the verifier looks at once, and not
 * once for each way that leads here: without CAP_PERFMON it follows ways that no packet takes, too.
 */
__noinline int load_8(struct __sk_buff *skb, __u32 at, struct eight *to)
{
	return to ? load(skb, at, to->bytes, sizeof(to->bytes)) : -1;
}

static __always_inline int has_ports(__u64 protocol)
{
	return (protocol & 128 ? PORTS_MASK_128 : PORTS_MASK) >> (protocol & 63) & !(protocol & 64);
}

static __always_inline int is_extension(__u64 next)
{
	return EXTENSION_MASK >> (next & 63) & !(next & 192);
}

/* Walks IPv6 headers from offset `at` on. Leaves the transport's offset unknown where they don't end. */
static __always_inline void walk(struct __sk_buff *skb, struct headers *h, __u32 at)
{
	int count;

	for (count = 0; count <= EXTENSIONS; count++) {
		struct eight eight = {};
		__u8 *head = eight.bytes;

		if (!is_extension(h->protocol)) {
			h->l4 = at;
			return;
		}
		if (load_8(skb, at, &eight))
			return;
		if (h->protocol == FRAGMENT) {
			__builtin_memcpy(&h->id, head + 4, 4);
			/* The offset's units are in the upper 13 bits; the lowest says that more follow. */
			if (head[2] || head[3] & 0xf8) {
				h->fragment = LATER;
				h->protocol = head[0];
				return;
			}
			if (head[3] & 1)
				h->fragment = FIRST;
			at += 8;
		} else if (h->protocol == AUTHENTICATION) {
			at += (head[1] + 2) * 4;
		} else {
			at += (head[1] + 1) * 8;
		}
		h->protocol = head[0];
	}
}

/* The type of the packet in the frame; `at` becomes the offset behind its VLAN tags. */
static __always_inline __u16 type_of(struct __sk_buff *skb, struct headers *h, __u32 *at)
{
	struct eight eight = {};
	__u8 *bytes = eight.bytes;
	__u16 type;
	int count;

	if (!link_bytes)
		return bpf_ntohs(skb->protocol);
	if (load_8(skb, link_bytes - 2, &eight))
		return 0;
	type = bytes[0] << 8 | bytes[1];
	for (count = 0; count < TAGS; count++) {
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
		if (load_8(skb, *at, &eight))
			return 0;
		if (!h->vlan)
			h->vlan = ((bytes[0] & 0xf) << 8 | bytes[1]) + 1;
		type = bytes[2] << 8 | bytes[3];
		*at += 4;
	}
	return type;
}

/* A global function, too. */
__noinline int parse(struct __sk_buff *skb, struct headers *h)
{
	__u32 at = link_bytes;

	if (!h)
		return 0;
	h->type = type_of(skb, h, &at);
	if (h->type == ETH_P_IP) {
		struct iphdr ip;

		if (load(skb, at, &ip, sizeof(ip)) || ip.version != 4)
			return 0;
		h->version = 4;
		h->protocol = ip.protocol;
		__builtin_memcpy(h->source, &ip.saddr, 4);
		__builtin_memcpy(h->destination, &ip.daddr, 4);
		h->id = ip.id;
		if (ip.frag_off & bpf_htons(0x1fff)) {
			h->fragment = LATER;
			return 0;
		}
		if (ip.frag_off & bpf_htons(0x2000))
			h->fragment = FIRST;
		h->l4 = at + ip.ihl * 4;
	} else if (h->type == ETH_P_IPV6) {
		struct ipv6hdr ip;

		if (load(skb, at, &ip, sizeof(ip)))
			return 0;
		h->version = 6;
		h->protocol = ip.nexthdr;
		__builtin_memcpy(h->source, &ip.saddr, 16);
		__builtin_memcpy(h->destination, &ip.daddr, 16);
		walk(skb, h, at + sizeof(ip));
	}
	return 0;
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

/* The entity by ports. `hidden` becomes 1 if the packet has ports that can't be known. */
static __always_inline __u32 by_ports(struct __sk_buff *skb, const struct headers *h, __u32 *hidden)
{
	struct fragmented key = { .id = h->id, .which = h->version == 4 ? 4 << 8 | h->protocol : 6 << 8 };
	__u32 entity, *found;
	struct eight eight = {};
	__u8 *pair = eight.bytes;

	if (!has_ports(h->protocol) && !(h->version == 6 && is_extension(h->protocol)))
		return 0;
	__builtin_memcpy(key.source, h->source, 16);
	__builtin_memcpy(key.destination, h->destination, 16);
	if (h->fragment == LATER && (found = bpf_map_lookup_elem(&fragments, &key)))
		return *found;
	if (!h->l4 || load_8(skb, h->l4, &eight)) {
		*hidden = 1;
		if (HAS(PORTLESS) && (entity = by_prefix(PORTLESS, h->version, h->source)) != NO_ENTITY)
			return entity;
		if (HAS(PORTLESS) && (entity = by_prefix(PORTLESS, h->version, h->destination)) != NO_ENTITY)
			return entity;
		return 0;
	}
	if (!HAS(DESTINATION_PORT) || (entity = by_port(pair[2] << 8 | pair[3])) == NO_ENTITY) {
		if (!HAS(SOURCE_PORT) || (entity = by_port(65536 + (pair[0] << 8 | pair[1]))) == NO_ENTITY)
			entity = 0;
	}
	if (h->fragment == FIRST)
		bpf_map_update_elem(&fragments, &key, &entity, BPF_ANY);
	return entity;
}

static __always_inline __u32 classify(struct __sk_buff *skb, const struct headers *h, __u32 *hidden)
{
	__u32 entity, vlan = skb->vlan_present ? (skb->vlan_tci & 0xfff) + 1 : h->vlan;

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
	if (HAS(VLAN) && vlan && (entity = by_key(VLAN, vlan - 1)) != NO_ENTITY)
		return entity;
	if (!h->version)
		return 0;
	if (HAS(DESTINATION) && (entity = by_prefix(DESTINATION, h->version, h->destination)) != NO_ENTITY)
		return entity;
	if (HAS(SOURCE) && (entity = by_prefix(SOURCE, h->version, h->source)) != NO_ENTITY)
		return entity;
	if (HAS(DESTINATION_PORT) || HAS(SOURCE_PORT))
		return by_ports(skb, h, hidden);
	return 0;
}

/* Bytes on the wire. At egress the kernel has counted each segment's headers, at ingress it has not. */
static __always_inline __u64 bytes_of(struct __sk_buff *skb, const struct headers *h)
{
	__u32 size, headers;
	struct eight eight = {};

	if (!at_ingress)
		return skb->wire_len;
	size = skb->gso_size;
	if (!size || !h->l4)
		return skb->len;
	headers = h->l4 + 8;
	if (h->protocol == IPPROTO_TCP) {
		if (load_8(skb, h->l4 + 8, &eight))
			return skb->len;
		headers = h->l4 + (eight.bytes[4] >> 4) * 4;
	}
	if (skb->len <= headers)
		return skb->len;
	return skb->len + (__u64)((skb->len - headers - 1) / size) * headers;
}

/*
 * A drop that a local sender is not told of. tcx has no code for that; but of a packet that it redirects the sender is
 * told that it was sent, and one to a device that does not exist is freed.
 */
static __always_inline int drop(void)
{
	return drop_code == TC_ACT_REDIRECT ? bpf_redirect(0, 0) : drop_code;
}

SEC("classifier")
int clearway_aq(struct __sk_buff *skb)
{
	__u32 entity, which, hidden = 0;
	struct headers h = {};
	struct aq_config *config;
	struct aq_state *state;
	__u64 now, bytes;

	if (kinds || at_ingress || !test_entities)
		parse(skb, &h);
	entity = test_entities ? (__u32)(((__u64)bpf_get_prandom_u32() * test_entities) >> 32) : classify(skb, &h, &hidden);
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
	if (hidden)
		__sync_fetch_and_add(&state->hidden, 1);
	/* ARP must pass, or nobody finds anybody; so must what holds a link together, which no entity sends. */
	if (config->per_byte && (h.version || (entity && h.type != ETH_P_ARP) || test_entities)) {
		now = test_clock ? skb->tstamp : bpf_ktime_get_ns();
		switch (a_gap(state, config, now << TICKS_PER_NS_SHIFT, bytes)) {
		case AQ_DROP:
			__sync_fetch_and_add(&state->drops, 1);
			__sync_fetch_and_add(&state->dropped_bytes, bytes);
			return drop();
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
