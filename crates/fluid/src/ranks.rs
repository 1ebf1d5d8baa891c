//! The ranks of training jobs at flow level: when their messages start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use job::{MessageId, Progress, Rank};
use run::{Jobs, Noted};
use units::{FlowId, Time};

/// The ranks of all jobs.
pub(crate) struct Ranks<'a> {
    jobs: &'a Jobs,
    /// By job, once it has begun.
    progress: Vec<Option<Progress>>,
    /// When messages arrive, and when their senders know: (time in picoseconds, flow, whether it is the sender).
    news: BinaryHeap<Reverse<(u64, FlowId, bool)>>,
    out: Vec<MessageId>,
}

impl<'a> Ranks<'a> {
    pub fn new(jobs: &'a Jobs) -> Ranks<'a> {
        Ranks { jobs, progress: jobs.iter().map(|_| None).collect(), news: BinaryHeap::new(), out: Vec::new() }
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

    /// A flow has left its sender: when it will be there, and when its sender will know. Tells which flows start.
    pub fn departed(&mut self, flow: FlowId, delivered: u64, completed: u64, mut start: impl FnMut(FlowId)) {
        if let Some((job, message)) = self.jobs.of(flow) {
            if let Some(progress) = &mut self.progress[usize::from(job)] {
                progress.left_host(message, &mut self.out);
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
                let (job, message) = self.jobs.of(flow).expect("only flows of jobs make news");
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
                        let mut progress = Progress::new(placed.graph.clone(), placed.placement.clone(), &ranks);
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
