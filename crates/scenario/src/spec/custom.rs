//! Users' own congestion controls that a scenario names: modules are read from their files, Python classes are looked
//! up among those that came with the scenario's text.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use catalogue::Transport;
use transports::tcp::custom::Config;
use transports::tcp::custom::contract::Module;
use units::Problem;

use super::Scenario;

/// Users' controls that no file holds, by their digests.
pub type Programs = BTreeMap<String, Arc<dyn Module>>;

impl Scenario {
    /// Loads the module or class that each user's control names.
    pub(super) fn load_controls(&mut self, folder: &Path, programs: &Programs) -> Result<(), Problem> {
        for (key, transport) in self.transports_mut() {
            if let Some(custom) = transport.custom_mut() {
                load(custom, folder, programs).map_err(|problem| problem.under("custom").under(key))?;
            }
        }
        Ok(())
    }

    /// The first transport from a crate outside of Clearway's tree whose settings could not be read.
    pub(super) fn misread(&mut self) -> Option<Problem> {
        let all = self.transports_mut().into_iter();
        all.filter_map(|(key, transport)| Some(transport.misread()?.under(key))).next()
    }

    /// Every transport that it names, with its key.
    fn transports_mut(&mut self) -> Vec<(String, &mut Transport)> {
        let mut all = vec![("transport".to_owned(), &mut self.transport)];
        for (index, class) in self.traffic.iter_mut().enumerate() {
            let key = format!("traffic[{index}]");
            all.extend(class.transport.as_mut().map(|own| (format!("{key}.transport"), own)));
            for (entry, again) in class.resubmit.iter_mut().enumerate() {
                all.extend(again.over.as_mut().map(|over| (format!("{key}.resubmit[{entry}].over"), over)));
            }
        }
        for (index, job) in self.job.iter_mut().enumerate() {
            all.extend(job.transport.as_mut().map(|own| (format!("job[{index}].transport"), own)));
        }
        let sockets = self.live.sockets.iter_mut();
        all.extend(sockets.filter_map(|(name, class)| {
            class.transport.as_mut().map(|own| (format!("live.sockets.{name}.transport"), own))
        }));
        all
    }
}

fn load(custom: &mut Config, folder: &Path, programs: &Programs) -> Result<(), Problem> {
    if let Some(path) = custom.module.clone() {
        let content = fabric::read_file(&folder.join(&path), custom::FILE_BYTES_MAX)
            .map_err(|error| Problem::new("module", format!("\"{path}\" could not be read: {error}")))?;
        let module = custom::read(&content).map_err(|why| Problem::new("module", format!("\"{path}\" {why}")))?;
        custom.load(module)?;
    } else if let Some(module) = custom.digest.as_ref().and_then(|digest| programs.get(digest)) {
        custom.load(module.clone())?;
    }
    Ok(())
}
