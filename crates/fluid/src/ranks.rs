//! The ranks of training jobs at flow level: when their messages start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use job::{MessageId, Progress, Rank, Summed};
use run::{FlowTable, Flows, Jobs, Noted, Rest};
use units::{FlowId, Time};

/// The ranks of all jobs.
pub(crate) struct Ranks<'a> {
    jobs: &'a Jobs,
    /// By job, once it has begun.
    progress: Vec<Option<Progress>>,
    /// When messages arrive, and when their senders know: (time in picoseconds, flow, whether it is the sender).
    news: BinaryHeap<Reverse<(u64, FlowId, bool)>>,
    out: Vec<MessageId>,
    /// The outcome of flows that have no row in results.
    pub unlisted: Unlisted,
    /// When the last of them was known to be there.
    last: u64,
}

/// Flows that have no row in results.
pub(crate) struct Unlisted {
    /// The first, and how many there are.
    first: u64,
    count: u64,
    /// By flow from the first on, as bits: whether it has been delivered.
    delivered: Vec<u64>,
    /// The sum of digests of those that have been.
    digest: u64,
    /// Their share in the totals.
    pub rest: Rest,
    /// How many senders know.
    pub completed: u64,
}

impl Unlisted {
    fn new(flows: &FlowTable) -> Unlisted {
        let (planned, listed) = (flows.planned() as u64, flows.row_count() as u64);
        let count = planned - listed;
        let delivered = vec![0; count.div_ceil(64) as usize];
        let rest = Rest { flows: count, ..Rest::default() };
        Unlisted { first: listed, count, delivered, digest: 0, rest, completed: 0 }
    }

    /// The receiver or the sender learns of a delivery.
    fn note(&mut self, flow: FlowId, at: u64, is_sender: bool, bytes: impl FnOnce() -> u64) {
        let Some(place) = u64::from(flow.0).checked_sub(self.first) else { return };
        if is_sender {
            self.completed += 1;
        } else {
            self.delivered[(place / 64) as usize] |= 1 << (place % 64);
            self.digest = self.digest.wrapping_add(units::mix(flow.0.into(), at));
            self.rest.deliver(Time::from_ps(at), bytes());
        }
    }

    /// The sum of all their digests.
    pub fn digest(&self) -> u64 {
        let is_open = |place: &u64| self.delivered[(place / 64) as usize] >> (place % 64) & 1 == 0;
        let open = (0..self.count).filter(is_open).map(|place| units::mix(self.first + place, Flows::NONE));
        open.fold(self.digest, u64::wrapping_add)
    }
}

impl<'a> Ranks<'a> {
    pub fn new(jobs: &'a Jobs, flows: &FlowTable) -> Ranks<'a> {
        let progress = jobs.iter().map(|_| None).collect();
        let unlisted = Unlisted::new(flows);
        Ranks { jobs, progress, news: BinaryHeap::new(), out: Vec::new(), unlisted, last: 0 }
    }

    /// When the last message was there, or the last step of a job that is noted in sum was done, in picoseconds.
    pub fn last(&self) -> u64 {
        let summed = self.summed().flat_map(|of| of.1.iterations()).map(|of| of.0.ps());
        summed.fold(self.last, u64::max)
    }

    /// Sums over the steps of jobs whose steps are not noted one by one, with the job's number.
    pub fn summed(&self) -> impl Iterator<Item = (u16, &Summed)> {
        (0..).zip(&self.progress).filter_map(|(job, progress)| Some((job, progress.as_ref()?.summed()?)))
    }

    /// When the next rank does something.
    pub fn next(&self) -> Option<u64> {
        let of = |(job, progress): (usize, &Option<Progress>)| match progress {
            None => self.jobs.begins(job).map(Time::ps),
            Some(progress) => Some(progress.next_at().ps()).filter(|&at| at != Time::MAX.ps()),
        };
        let ranks = self.progress.iter().enumerate().filter_map(of).min();
        [ranks, self.news.peek().map(|next| next.0.0)].into_iter().flatten().min()
    }

    /// A flow has left its sender now: when it will be there, and when its sender will know. Tells which flows start.
    pub fn departed(&mut self, flow: FlowId, [now, delivered, completed]: [u64; 3], mut start: impl FnMut(FlowId)) {
        if let Some((job, message)) = self.jobs.of(flow) {
            if let Some(progress) = &mut self.progress[usize::from(job)] {
                progress.left_host(message, Time::from_ps(now), &mut self.out);
            }
            self.tell(usize::from(job), &mut start);
            self.news.push(Reverse((delivered, flow, false)));
            self.news.push(Reverse((completed, flow, true)));
        }
    }

    /// Time has come to `now`: tells which flows start.
    pub fn advance(&mut self, now: u64, mut start: impl FnMut(FlowId)) {
        let time = Time::from_ps(now);
        while self.next().is_some_and(|next| next <= now) {
            while let Some(&Reverse((at, flow, is_sender))) = self.news.peek()
                && at <= now
            {
                self.news.pop();
                self.last = at;
                let (job, message) = self.jobs.of(flow).expect("only flows of jobs make news");
                let graph = &self.jobs.iter().as_slice()[usize::from(job)].graph;
                self.unlisted.note(flow, at, is_sender, || graph.message(message).bytes);
                let progress = self.progress[usize::from(job)].as_mut().expect("it has sent");
                match is_sender {
                    false => progress.arrived(message, time, &mut self.out),
                    true => progress.sent(message, time, &mut self.out),
                }
                self.tell(usize::from(job), &mut start);
            }
            for (index, placed) in self.jobs.iter().enumerate() {
                match &mut self.progress[index] {
                    None if self.jobs.begins(index).is_some_and(|start| start <= time) => {
                        let ranks: Vec<Rank> = (0..placed.graph.ranks()).map(Rank).collect();
                        let mut progress = self.jobs.progress(index, &ranks);
                        progress.begin(time, &mut self.out);
                        self.progress[index] = Some(progress);
                    }
                    Some(progress) if progress.next_at() <= time => progress.wake(time, &mut self.out),
                    _ => {}
                }
                self.tell(index, &mut start);
            }
        }
    }

    fn tell(&mut self, job: usize, start: &mut impl FnMut(FlowId)) {
        let placed = &self.jobs.iter().as_slice()[job];
        for message in self.out.drain(..) {
            start(placed.flow(message).expect("a message within the host is not told of"));
        }
    }

    /// What was noted of computations and of messages within hosts until `end`, with the job's number.
    pub fn done(&self, end: u64) -> impl Iterator<Item = Noted> + '_ {
        let of = |(job, progress): (u16, &'_ Option<Progress>)| {
            let done = progress.as_ref().map_or(&[][..], |progress| progress.done());
            done.iter().map(move |&done| (job, done)).collect::<Vec<_>>()
        };
        (0..).zip(&self.progress).flat_map(of).filter(move |(_, done)| done.end.ps() <= end)
    }
}
