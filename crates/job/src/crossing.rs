//! The messages of a job that leave their hosts, with numbers of their own.

use std::collections::HashMap;

use crate::graph::index::Index;
use crate::graph::ring::Ring;
use crate::{Graph, Message, MessageId, Placement, Rank};

/// The messages of a job that leave their hosts, numbered from 0 on in the order of their ids.
///
/// Which they are follows from where ranks are: of a ring the same in every round.
#[derive(Clone, PartialEq, Debug)]
pub struct Crossing {
    /// By ring: the number of its first.
    first: Vec<u32>,
    /// Where a number is among these.
    index: Index,
    /// By ring: its way round.
    way: Vec<u32>,
    ways: Vec<Way>,
    /// By message outside of rings: its number, or [`WITHIN`].
    single: Vec<u32>,
    /// Those of them that leave their hosts: their numbers and ids.
    singles: Vec<(u32, MessageId)>,
    count: u64,
}

/// Who on the way round a ring has the next on another host.
#[derive(Clone, PartialEq, Debug)]
struct Way {
    /// By place on the way: how many there are before; one more at the end.
    before: Vec<u32>,
    /// The places of these.
    places: Vec<u32>,
}

/// In place of the number of a message that stays within its host.
const WITHIN: u32 = u32::MAX;

impl Crossing {
    /// Of a graph whose ranks are there. None if there are more than `most`.
    pub fn new(graph: &Graph, placement: &Placement, most: u64) -> Option<Crossing> {
        let (mut way, mut ways, mut known) = (Vec::new(), Vec::new(), HashMap::new());
        for ring in graph.rings() {
            let next = ways.len() as u32;
            let number = *known.entry((ring.group, ring.backwards)).or_insert(next);
            if number == next {
                ways.push(Way::new(graph, ring, placement));
            }
            way.push(number);
        }
        let (single, singles) = (Vec::new(), Vec::new());
        let mut all = Crossing { first: Vec::new(), index: Index::default(), way, ways, single, singles, count: 0 };
        let mut singles = graph.single_messages().peekable();
        for (number, ring) in graph.rings().iter().enumerate() {
            while let Some(next) = singles.next_if(|of| of.0.0 < ring.first_message) {
                all.add_single(next, placement);
            }
            all.first.push(all.count.min(u64::from(u32::MAX)) as u32);
            let places = all.ways[all.way[number] as usize].places.len();
            all.count += places as u64 * u64::from(ring.rounds());
        }
        singles.for_each(|next| all.add_single(next, placement));
        all.index = Index::new(all.first.iter().copied());
        (all.count <= most).then_some(all)
    }

    fn add_single(&mut self, (id, message): (MessageId, &Message), placement: &Placement) {
        if placement.is_within(message) {
            return self.single.push(WITHIN);
        }
        let number = self.count.min(u64::from(u32::MAX)) as u32;
        self.single.push(number);
        self.singles.push((number, id));
        self.count += 1;
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The number of a message; none if it stays within its host.
    #[inline]
    pub fn number(&self, graph: &Graph, message: MessageId) -> Option<u32> {
        match graph.find_message(message) {
            Err(single) => Some(self.single[single as usize]).filter(|&number| number != WITHIN),
            Ok((ring, round, i)) => {
                let way = &self.ways[self.way[ring as usize] as usize];
                let (before, until) = (way.before[i as usize], way.before[i as usize + 1]);
                (before < until).then(|| self.first[ring as usize] + round * way.places.len() as u32 + before)
            }
        }
    }

    /// The message of a number.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn id(&self, graph: &Graph, number: u32) -> MessageId {
        match self.find(graph, number) {
            Ok((ring, round, i)) => {
                let ring = graph.ring(ring);
                MessageId(ring.first_message + round * ring.ranks + i)
            }
            Err(id) => id,
        }
    }

    /// The same message, with all of it.
    #[inline]
    pub fn message(&self, graph: &Graph, number: u32) -> Message {
        match self.find(graph, number) {
            Ok((ring, round, i)) => graph.message_of_ring(ring, round, i),
            Err(id) => graph.message(id),
        }
    }

    /// Tells all in kinds: the ends, the length, and how many messages are like that.
    pub fn each_kind(&self, graph: &Graph, mut each: impl FnMut((Rank, Rank), u64, u64)) {
        for (ring, &way) in graph.rings().iter().zip(&self.way) {
            for &i in &self.ways[way as usize].places {
                let ends = (graph.rank_at(ring, i), graph.rank_at(ring, ring.next(i)));
                ring.each_length(i, |bytes, count| each(ends, graph.payload(ring, bytes), count));
            }
        }
        for &(_, id) in &self.singles {
            let Message { from, to, bytes, .. } = graph.message(id);
            each((from, to), bytes, 1);
        }
    }

    #[inline]
    fn find(&self, graph: &Graph, number: u32) -> Result<(u32, u32, u32), MessageId> {
        let before = self.index.until(number, |at| self.first[at]);
        if let Some(ring) = before.checked_sub(1) {
            let (into, places) = (number - self.first[ring], &self.ways[self.way[ring] as usize].places);
            let each = places.len() as u32;
            if into < each * graph.ring(ring as u32).rounds() {
                return Ok((ring as u32, into / each, places[(into % each) as usize]));
            }
        }
        let at = self.singles.partition_point(|of| of.0 < number);
        Err(self.singles[at].1)
    }
}

impl Way {
    fn new(graph: &Graph, ring: &Ring, placement: &Placement) -> Way {
        let host = |i: u32| placement.host_of[graph.rank_at(ring, i).index()];
        let mut way = Way { before: vec![0], places: Vec::new() };
        for i in 0..ring.ranks {
            if host(i) != host(ring.next(i)) {
                way.places.push(i);
            }
            way.before.push(way.places.len() as u32);
        }
        way
    }
}

#[cfg(test)]
mod tests {
    use units::{Duration, HostId, Rate};

    use super::*;
    use crate::collective::CollectiveAlgorithm;
    use crate::{Builder, StepId, collective::Kind};

    #[test]
    fn messages_that_leave_their_hosts_are_numbered_in_order() {
        let mut b = Builder::new(6);
        let all: Vec<Rank> = (0..6).map(Rank).collect();
        let mut last: Vec<Vec<StepId>> = vec![Vec::new(); 6];
        let how = CollectiveAlgorithm {
            terms: crate::collective::Terms { channels: 2, chunk: 20, ..Default::default() },
            ..CollectiveAlgorithm::default()
        };
        for kind in [Kind::AllToAll, Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::AllToAll] {
            let ends = how.add(&mut b, kind, "some", 0, &all, 617, &last).expect("fits");
            last = ends.into_iter().map(|end| vec![end]).collect();
            // Within one host nothing crosses.
            how.add(&mut b, Kind::AllReduce, "pair", 0, &all[..2], 600, &last[..2]).expect("fits");
        }
        let graph = b.build().expect("sound");
        let host_of = [0, 0, 1, 2, 2, 2].map(HostId).to_vec();
        let placement = Placement { host_of, rate: Rate::from_gbps(1), delay: Duration::ZERO };
        let crossing = Crossing::new(&graph, &placement, u64::MAX).expect("few");
        let mut numbers = 0..;
        for (id, message) in (0..).map(MessageId).zip(graph.messages()) {
            let number = crossing.number(&graph, id);
            assert_eq!(number, (!placement.is_within(&message)).then(|| numbers.next().expect("endless")));
            if let Some(number) = number {
                assert_eq!((crossing.id(&graph, number), crossing.message(&graph, number)), (id, message));
            }
        }
        assert_eq!(crossing.count(), numbers.start as usize);
        let mut left: HashMap<(Rank, Rank, u64), u64> = HashMap::new();
        for number in 0..numbers.start {
            let Message { from, to, bytes, .. } = crossing.message(&graph, number);
            *left.entry((from, to, bytes)).or_default() += 1;
        }
        crossing.each_kind(&graph, |(from, to), bytes, count| {
            *left.get_mut(&(from, to, bytes)).expect("there are such messages") -= count;
        });
        assert!(left.into_values().all(|left| left == 0));
        assert!(Crossing::new(&graph, &placement, u64::from(numbers.start) - 1).is_none());
    }
}
