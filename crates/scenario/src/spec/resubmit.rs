//! The transports that carry each traffic class, at first and on resubmission.

use catalogue::Transport;
use units::{Duration, Problem};
use workload::{Resubmit, Traffic};

use crate::Scenario;

/// Most times that a message may be submitted again.
const TIMES_MAX: u32 = 1_000;

/// The transports of a run and the classes that they carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Carriers<'a> {
    /// Transports in the order of first use, each once.
    pub transports: Vec<&'a Transport>,
    /// By transport: the key where the scenario first names it.
    pub keys: Vec<String>,
    /// By class: index of its transport.
    pub of_class: Vec<u8>,
    /// By class: its resubmissions in order.
    pub again: Vec<Vec<ResubmitPolicy>>,
}

/// One resubmission of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResubmitPolicy {
    /// Index of the transport.
    pub transport: u8,
    /// Delay after the previous attempt has ended.
    pub after: Duration,
}

impl Scenario {
    /// The transports that carry this scenario's traffic.
    pub fn carriers(&self) -> Carriers<'_> {
        let mut carriers =
            Carriers { transports: Vec::new(), keys: Vec::new(), of_class: Vec::new(), again: Vec::new() };
        for (index, class) in self.traffic.iter().enumerate() {
            let (transport, key) = match &class.transport {
                Some(own) => (own, format!("traffic[{index}].transport")),
                None => (&self.transport, "transport".to_owned()),
            };
            let mut last = carriers.index(transport, key);
            carriers.of_class.push(last);
            let mut again = Vec::new();
            for (entry, Resubmit { over, times, after }) in class.resubmit.iter().enumerate() {
                if let Some(over) = over {
                    last = carriers.index(over, format!("traffic[{index}].resubmit[{entry}].over"));
                }
                again.extend((0..*times).map(|_| ResubmitPolicy { transport: last, after: *after }));
            }
            carriers.again.push(again);
        }
        for (index, job) in self.job.iter().enumerate() {
            let (transport, key) = match &job.transport {
                Some(own) => (own, format!("job[{index}].transport")),
                None => (&self.transport, "transport".to_owned()),
            };
            let carrier = carriers.index(transport, key);
            carriers.of_class.push(carrier);
            carriers.again.push(Vec::new());
        }
        for (name, socket) in &self.live.sockets {
            let (transport, key) = match &socket.transport {
                Some(own) => (own, format!("live.sockets.{name}.transport")),
                None => (&self.transport, "transport".to_owned()),
            };
            let carrier = carriers.index(transport, key);
            carriers.of_class.push(carrier);
            carriers.again.push(Vec::new());
        }
        carriers
    }

    pub(super) fn check_resubmit(&self, class: &Traffic<Transport>) -> Result<(), Problem> {
        let mut all = 0u32;
        for (entry, Resubmit { over, times, after }) in class.resubmit.iter().enumerate() {
            let under = |problem: Problem| problem.under(format!("resubmit[{entry}]"));
            if let Some(over) = over {
                over.check().map_err(|problem| under(problem.under("over")))?;
            }
            all = all.saturating_add(*times);
            if *times == 0 || all > TIMES_MAX {
                let message = format!(
                    "{times} is not between 1 and {TIMES_MAX}, or all entries together have more than {TIMES_MAX}"
                );
                return Err(under(Problem::new("times", message)));
            }
            let day = Duration::from_ms(86_400_000);
            if *after > day {
                return Err(under(Problem::new("after", format!("{after} is too long; at most {day}"))));
            }
        }
        Ok(())
    }

    /// The first resubmission that never happens, because the transport before it delivers every message.
    pub(super) fn idle_resubmit(&self, class: &Traffic<Transport>) -> Vec<Problem> {
        let mut last = class.transport.as_ref().unwrap_or(&self.transport);
        for (entry, Resubmit { over, .. }) in class.resubmit.iter().enumerate() {
            if !last.as_scheme().capabilities().gives_up() {
                let message = format!("has no effect: {} neither rejects a message nor gives it up", last.name());
                return vec![Problem::new(format!("resubmit[{entry}]"), message)];
            }
            last = over.as_ref().unwrap_or(last);
        }
        Vec::new()
    }
}

impl<'a> Carriers<'a> {
    fn index(&mut self, transport: &'a Transport, key: String) -> u8 {
        let known = self.transports.iter().position(|known| *known == transport);
        known.unwrap_or_else(|| {
            self.transports.push(transport);
            self.keys.push(key);
            self.transports.len() - 1
        }) as u8
    }
}
