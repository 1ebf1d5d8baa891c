use std::collections::BTreeSet;

use proptest::prelude::*;
use units::Duration;

use super::*;
use crate::testing::after;
use crate::{Graph, Message, StepId, Work};

/// The contributions that each rank has of each piece of the buffer.
struct Buffers {
    /// The ends of pieces: no message begins or ends inside a piece.
    cuts: Vec<u64>,
    has: Vec<Vec<BTreeSet<usize>>>,
    /// The data of each rank once it has entered.
    own: Vec<Vec<BTreeSet<usize>>>,
}

impl Buffers {
    fn new(graph: &Graph, bytes: u64, own: impl Fn(usize, u64) -> bool) -> Buffers {
        let mut cuts: BTreeSet<u64> = [0, bytes].into();
        graph.messages().for_each(|message| cuts.extend([message.span.0, message.span.0 + message.span.1]));
        let ranks = graph.ranks() as u64;
        cuts.extend(split((0, bytes), ranks).map(|part| part.0));
        let cuts: Vec<u64> = cuts.into_iter().collect();
        let piece = |rank: usize, at: u64| own(rank, at).then_some(rank).into_iter().collect();
        let of = |rank: usize| cuts[..cuts.len() - 1].iter().map(|&at| piece(rank, at)).collect();
        let own: Vec<Vec<_>> = (0..graph.ranks() as usize).map(of).collect();
        let has = own.iter().map(|pieces| vec![BTreeSet::new(); pieces.len()]).collect();
        Buffers { cuts, has, own }
    }

    fn pieces(&self, span: (u64, u64)) -> impl Iterator<Item = usize> + use<> {
        let begin = self.cuts.binary_search(&span.0).expect("a cut");
        let end = self.cuts.binary_search(&(span.0 + span.1)).expect("a cut");
        begin..end
    }
}

/// Runs the graph in an order that dependencies allow, drawn by `draw`, and applies each message: what arrives is added
/// to what is there, or replaces it. Nothing may be counted twice.
fn carried_out(graph: &Graph, buffers: &mut Buffers, mut draw: impl FnMut(usize) -> usize) {
    let mut missing: Vec<u32> = (0..graph.steps().len()).map(|step| graph.needs(StepId(step as u32))).collect();
    graph.messages().for_each(|message| missing[message.receive.index()] += 1);
    let mut free: Vec<StepId> =
        (0..missing.len() as u32).map(StepId).filter(|step| missing[step.index()] == 0).collect();
    let mut on_the_way: Vec<Option<Vec<BTreeSet<usize>>>> = vec![None; graph.messages().len()];
    let mut ended = 0;
    while !free.is_empty() {
        let step = free.swap_remove(draw(free.len()));
        ended += 1;
        let mut next: Vec<StepId> = after(graph, step);
        match graph.step(step).work {
            Work::Send(message) => {
                let Message { from, span, receive, .. } = graph.message(message);
                let pieces = buffers.pieces(span);
                let content = pieces.map(|piece| buffers.has[from.index()][piece].clone()).collect();
                on_the_way[message.index()] = Some(content);
                next.push(receive);
            }
            Work::Receive(message) => {
                let Message { to, span, .. } = graph.message(message);
                let content = on_the_way[message.index()].take().expect("sent before it is received");
                for (piece, content) in buffers.pieces(span).zip(content) {
                    let own = &mut buffers.has[to.index()][piece];
                    assert!(
                        own.is_disjoint(&content) || own.is_subset(&content),
                        "a sum must count nobody twice: {own:?} and {content:?}"
                    );
                    own.extend(content);
                }
            }
            Work::Compute(_) => {
                let rank = graph.step(step).rank.index();
                let own = std::mem::take(&mut buffers.own[rank]);
                buffers.has[rank].iter_mut().zip(own).for_each(|(has, own)| has.extend(own));
            }
            Work::Delay(_) => {}
        }
        for next in next {
            missing[next.index()] -= 1;
            if missing[next.index()] == 0 {
                free.push(next);
            }
        }
    }
    assert_eq!(ended, graph.steps().len(), "everything ends");
}

/// A job of one collective, in which ranks enter after a computation each.
fn job(ranks: u32, add: impl FnOnce(&mut Builder, &[Rank], Entry<'_>) -> Vec<StepId>) -> Graph {
    let mut b = Builder::new(ranks);
    let all: Vec<Rank> = (0..ranks).map(Rank).collect();
    let entry: Vec<Vec<StepId>> = all.iter().map(|&rank| vec![b.compute(rank, Duration::from_us(1), &[])]).collect();
    let ends = add(&mut b, &all, &entry);
    assert_eq!(ends.len(), all.len());
    b.build().expect("a sound job")
}

/// Bytes that each rank sends.
fn sent(graph: &Graph) -> Vec<u64> {
    let mut sent = vec![0; graph.ranks() as usize];
    graph.messages().for_each(|message| sent[message.from.index()] += message.bytes);
    sent
}

fn terms() -> impl Strategy<Value = Terms> {
    let latency = prop_oneof![Just(Duration::ZERO), Just(Duration::from_ns(300))];
    (1u32..4, 1u64..2_000, 1u32..9, latency).prop_map(|(channels, chunk, slots, latency)| Terms {
        channels,
        chunk,
        slots,
        latency,
        expand: (1, 1),
        local: 1 + slots / 2,
    })
}

/// Whose part of `bytes` the byte at `at` is.
fn part_of(bytes: u64, ranks: u32, at: u64) -> usize {
    split((0, bytes), u64::from(ranks)).position(|part| (part.0..part.0 + part.1).contains(&at)).expect("within")
}

proptest! {
    #[test]
    fn an_all_reduce_gives_everybody_the_sum_of_all(
        ranks in 2u32..14, bytes in 1u64..5_000, terms in terms(), which in 0..4, order: prop::sample::Index
    ) {
        let graph = job(ranks, |b, all, entry| match which {
            0 => ring::all_reduce(b, all, bytes, &terms, entry),
            1 => two_trees(b, all, bytes, &terms, entry),
            2 => halving_doubling(b, all, bytes, &terms, entry)
                .unwrap_or_else(|| ring::all_reduce(b, all, bytes, &terms, entry)),
            _ => {
                let local = (1..=all.len()).rev().find(|local| all.len() % local == 0 && local * local <= all.len());
                rails(b, all, local.expect("1 divides"), bytes, &terms, entry).expect("it divides")
            }
        });
        let mut buffers = Buffers::new(&graph, bytes, |_, _| true);
        carried_out(&graph, &mut buffers, |free| order.index(free));
        let everybody: BTreeSet<usize> = (0..ranks as usize).collect();
        prop_assert!(buffers.has.iter().flatten().all(|piece| *piece == everybody));
    }

    #[test]
    fn a_reduce_scatter_gives_each_its_part_and_an_all_gather_all_parts_to_all(
        ranks in 2u32..14, bytes in 1u64..5_000, chunk in 1u64..2_000, slots in 1u32..9, order: prop::sample::Index
    ) {
        let terms = Terms { chunk, slots, ..Terms::default() };
        let everybody: BTreeSet<usize> = (0..ranks as usize).collect();
        let graph = job(ranks, |b, all, entry| reduce_scatter(b, all, bytes, &terms, entry));
        let mut buffers = Buffers::new(&graph, bytes, |_, _| true);
        carried_out(&graph, &mut buffers, |free| order.index(free));
        for (piece, &at) in buffers.cuts[..buffers.cuts.len() - 1].iter().enumerate() {
            prop_assert_eq!(&buffers.has[part_of(bytes, ranks, at)][piece], &everybody);
        }
        let graph = job(ranks, |b, all, entry| all_gather(b, all, bytes, &terms, entry));
        let mut buffers = Buffers::new(&graph, bytes, |rank, at| part_of(bytes, ranks, at) == rank);
        carried_out(&graph, &mut buffers, |free| order.index(free));
        for (piece, &at) in buffers.cuts[..buffers.cuts.len() - 1].iter().enumerate() {
            let owner = BTreeSet::from([part_of(bytes, ranks, at)]);
            prop_assert!(buffers.has.iter().all(|rank| rank[piece] == owner));
        }
    }

    #[test]
    fn rails_scatter_and_gather_in_hosts_and_across_them(
        local in 1u32..5, nodes in 1u32..5, bytes in 1u64..5_000, chunk in 1u64..2_000, slots in 1u32..9,
        order: prop::sample::Index
    ) {
        let (terms, ranks) = (Terms { chunk, slots, ..Terms::default() }, local * nodes);
        prop_assume!(ranks > 1);
        let everybody: BTreeSet<usize> = (0..ranks as usize).collect();
        // Of each chunk a rank has the part of its node within that of its place in the node.
        let owner = |at: u64| {
            let within = |span: (u64, u64)| (span.0..span.0 + span.1).contains(&at);
            let chunk = split((0, bytes), super::rails::turns(bytes, local.into(), &terms)).find(|&of| within(of));
            let parts = split(chunk.expect("within"), local.into());
            let (place, part) = parts.enumerate().find(|&(_, of)| within(of)).expect("within");
            let node = split(part, nodes.into()).position(within).expect("within");
            node * local as usize + place
        };
        let by_rails = |phases| {
            let of = move |b: &mut Builder, all: &[Rank], entry: Entry<'_>| {
                super::rails::phases_of_rails(b, all, local as usize, bytes, &terms, entry, phases).expect("it divides")
            };
            job(ranks, of)
        };
        let graph = by_rails(ring::Phases::ReduceScatter);
        let mut buffers = Buffers::new(&graph, bytes, |_, _| true);
        carried_out(&graph, &mut buffers, |free| order.index(free));
        for (piece, &at) in buffers.cuts[..buffers.cuts.len() - 1].iter().enumerate() {
            prop_assert_eq!(&buffers.has[owner(at)][piece], &everybody);
        }
        let graph = by_rails(ring::Phases::AllGather);
        let mut buffers = Buffers::new(&graph, bytes, |rank, at| owner(at) == rank);
        carried_out(&graph, &mut buffers, |free| order.index(free));
        for (piece, &at) in buffers.cuts[..buffers.cuts.len() - 1].iter().enumerate() {
            let owner = BTreeSet::from([owner(at)]);
            prop_assert!(buffers.has.iter().all(|rank| rank[piece] == owner));
        }
    }

    #[test]
    fn a_broadcast_gives_everybody_what_the_first_has(
        ranks in 2u32..14, bytes in 1u64..5_000, terms in terms(), tree: bool, order: prop::sample::Index
    ) {
        let graph = job(ranks, |b, all, entry| match tree {
            true => two_trees_broadcast(b, all, bytes, &terms, entry),
            false => broadcast(b, all, bytes, &terms, entry),
        });
        let mut buffers = Buffers::new(&graph, bytes, |rank, _| rank == 0);
        carried_out(&graph, &mut buffers, |free| order.index(free));
        prop_assert!(buffers.has.iter().flatten().all(|piece| *piece == BTreeSet::from([0])));
    }

    #[test]
    fn an_all_to_all_has_a_message_for_each_pair(ranks in 2u32..14, bytes in 14u64..5_000, terms in terms()) {
        let graph = job(ranks, |b, all, entry| all_to_all(b, all, bytes, &terms, entry));
        for from in 0..ranks {
            for to in (0..ranks).filter(|&to| to != from) {
                let between = graph.messages().filter(|m| (m.from.0, m.to.0) == (from, to));
                let own: u64 = split((0, bytes), u64::from(terms.channels))
                    .filter_map(|span| split(span, u64::from(ranks)).nth(to as usize))
                    .map(|part| part.1)
                    .sum();
                prop_assert_eq!(between.map(|message| message.bytes).sum::<u64>(), own);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_collective_has_more_steps_than_was_said_before_nor_more_waits(
        n in 1usize..20, bytes in 0u64..5_000, terms in terms(), which in 0usize..5, other in 0..4, tree: bool
    ) {
        let kinds = [Kind::AllReduce, Kind::ReduceScatter, Kind::AllGather, Kind::AllToAll, Kind::Broadcast];
        let (kind, local) = (kinds[which], (1..=n).rev().find(|local| n % local == 0 && local * local <= n));
        let all_reduce = match other {
            0 => AllReduce::Ring,
            1 => AllReduce::Tree,
            2 if n.is_power_of_two() => AllReduce::HalvingDoubling,
            _ => AllReduce::Rails(local.expect("1 divides") as u32),
        };
        let broadcast = if tree { Broadcast::Tree } else { Broadcast::Ring };
        let how = CollectiveAlgorithm { all_reduce, broadcast, terms, ..CollectiveAlgorithm::default() };
        let mut b = Builder::new(n as u32);
        let ranks: Vec<Rank> = (0..n as u32).map(Rank).collect();
        let entry = vec![Vec::new(); n];
        let ends = how.add(&mut b, kind, "some", 0, &ranks, bytes, &entry).expect("it fits");
        prop_assert_eq!(ends.len(), n);
        let most = how.steps_most(kind, n, bytes);
        prop_assert!(b.steps() <= most.max(n as u64), "{} and {}", b.steps(), most);
        let graph = b.build().expect("sound");
        // As many waits as steps, but for a small factor: of a phase that many chunks part, no step waits for each.
        let waits: u64 = (0..graph.steps().len() as u32).map(|step| u64::from(graph.needs(StepId(step)))).sum();
        prop_assert!(waits <= 6 * graph.steps().len() as u64, "{} and {}", waits, graph.steps().len());
        let named = graph.collectives().iter().all(|c| c.kind == kind.name() && c.algorithm == how.algorithm(kind));
        prop_assert!(named && graph.collectives().len() == usize::from(n > 1));
    }
}

#[test]
fn rings_and_halving_send_the_same_least_amount() {
    let (n, bytes) = (16, 16_000);
    let least = vec![2 * (16 - 1) * bytes / 16; 16];
    let ring = job(n, |b, all, entry| all_reduce(b, all, bytes, &Terms::default(), entry));
    assert_eq!(sent(&ring), least);
    let halving = job(n, |b, all, entry| halving_doubling(b, all, bytes, &Terms::default(), entry).expect("2^4"));
    assert_eq!(sent(&halving), least);
    assert_eq!((ring.messages().len(), halving.messages().len()), (16 * 30, 16 * 8));
}

#[test]
fn two_trees_load_no_rank_with_more_than_twice_the_buffer() {
    for n in 2..40 {
        let graph = job(n, |b, all, entry| two_trees(b, all, 8_000, &Terms::default(), entry));
        let most = sent(&graph).into_iter().max();
        // Up and down: a rank inside one tree has two children and a parent there, half of the buffer each, and sends
        // to its parent alone in the other, where it is a leaf.
        assert!(most <= Some(2 * 8_000), "{n} ranks: {most:?}");
    }
}

#[test]
fn rails_send_less_across_nodes() {
    let bytes = 64_000;
    let graph = job(32, |b, all, entry| rails(b, all, 8, bytes, &Terms::default(), entry).expect("8 divides 32"));
    let across = graph.messages().filter(|message| message.from.0 / 8 != message.to.0 / 8);
    assert_eq!(across.map(|message| message.bytes).sum::<u64>(), 32 * 2 * 3 * (bytes / 8) / 4);
    let mut b = Builder::new(6);
    let all: Vec<Rank> = (0..6).map(Rank).collect();
    assert!(rails(&mut b, &all, 4, bytes, &Terms::default(), &vec![Vec::new(); 6]).is_none(), "4 does not divide 6");
    assert!(halving_doubling(&mut b, &all, bytes, &Terms::default(), &vec![Vec::new(); 6]).is_none());
}

/// The first message of the second phase need not wait until the first phase is over.
#[test]
fn rails_go_chunk_by_chunk_with_a_bound_on_chunks_under_way() {
    // Two nodes of 3 ranks, whose parts of 5 chunks each are 10 bytes long, and one of them 9.
    let terms = Terms { chunk: 10, slots: 2, ..Terms::default() };
    let graph = job(6, |b, all, entry| rails(b, all, 3, 149, &terms, entry).expect("3 divides 6"));
    assert!(graph.messages().all(|message| message.bytes <= 10));
    let across = |message: &Message| message.from.0 / 3 != message.to.0 / 3;
    // All that must have ended before a step may begin, over messages too.
    let before = |step: StepId| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![step]);
        let mut needed: Vec<Vec<StepId>> = vec![Vec::new(); graph.steps().len()];
        for of in (0..graph.steps().len() as u32).map(StepId) {
            after(&graph, of).into_iter().for_each(|later| needed[later.index()].push(of));
        }
        graph.messages().for_each(|message| needed[message.receive.index()].push(message.send));
        while let Some(step) = next.pop() {
            for &of in &needed[step.index()] {
                if seen.insert(of) {
                    next.push(of);
                }
            }
        }
        seen
    };
    let chunk_of = |message: &Message| message.span.0 / 30;
    let first = graph.messages().find(across).expect("two nodes");
    assert_eq!(chunk_of(&first), 0);
    let ready = before(first.send);
    let local = || graph.messages().filter(|message| !across(message) && message.to == first.from);
    assert!(local().filter(|message| chunk_of(message) > 0).all(|message| !ready.contains(&message.receive)));
    // With two slots, the third chunk begins once the first is summed across nodes, the second need not.
    let begins = |chunk: u64| local().filter(|of| chunk_of(of) == chunk).map(|of| of.send).min().expect("some");
    let summed = graph.messages().filter(|message| across(message) && chunk_of(message) == 0);
    let of_sender = |chunk: u64| {
        let sender = graph.step(begins(chunk)).rank;
        summed.clone().filter(move |message| message.to == sender).map(|message| message.receive)
    };
    assert!(of_sender(2).all(|receive| before(begins(2)).contains(&receive)));
    assert!(of_sender(1).all(|receive| !before(begins(1)).contains(&receive)));
}

/// With one slot a message of the network still leaves beside one within the host.
#[test]
fn an_all_to_all_uses_both_sides_at_once() {
    let terms = Terms { slots: 1, local: 2, ..Terms::default() };
    let graph = job(4, |b, all, entry| all_to_all(b, all, 4_000, &terms, entry));
    let needs = |from: u32, to: u32| {
        let message = graph.messages().find(|of| (of.from, of.to) == (Rank(from), Rank(to))).expect("everybody to all");
        graph.needs(message.send)
    };
    // Rank 0 sends to 1 in its host, then to 2 and 3 across: each waits for the entry, and the last for a slot.
    assert_eq!((needs(0, 1), needs(0, 2), needs(0, 3)), (1, 1, 2));
    let terms = Terms { local: 1, ..terms };
    let graph = job(4, |b, all, entry| all_to_all(b, all, 4_000, &terms, entry));
    let waits = graph.messages().filter(|of| of.from == Rank(0)).map(|of| graph.needs(of.send));
    assert_eq!(waits.collect::<Vec<_>>(), [1, 2, 2], "across hosts alone all share the slot");
}

#[test]
fn a_protocol_makes_messages_longer_and_channels_go_both_ways() {
    let ll = Terms { expand: (2, 1), channels: 2, ..Terms::default() };
    let graph = job(4, |b, all, entry| all_reduce(b, all, 8_000, &ll, entry));
    assert_eq!(sent(&graph), vec![2 * 2 * 3 * 8_000 / 4; 4]);
    let forwards = graph.messages().filter(|message| message.to.0 == (message.from.0 + 1) % 4).count();
    assert_eq!(2 * forwards, graph.messages().len());
    let ll128 = Terms { expand: (16, 15), ..Terms::default() };
    assert_eq!((ll128.payload(120), ll128.payload(121), ll128.payload(1)), (128, 130, 2));
}
