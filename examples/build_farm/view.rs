//! What readers see: every build and the queue, folded from the log.

use std::collections::{BTreeSet, HashMap};

use outlast::log::{Entry, Prefix};
use outlast::server::{Cell, Cells, Changes, Projection};

use crate::build_farm::domain::{BUILDS, Build, BuildEvent, BuildId, BuildStatus};

/// The cells that reads follow. Cloning shares them.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// Each build.
    pub(crate) builds: Cells<BuildId, Build>,
    /// The builds that wait for a worker, oldest first.
    pub(crate) queue: Cell<Vec<BuildId>>,
}

/// The fold that writes them.
#[derive(Debug)]
pub(crate) struct View {
    shown: Shown,
    builds: HashMap<BuildId, Build>,
    /// In the order of their ids, which is that of their minting.
    queue: BTreeSet<BuildId>,
}

impl View {
    /// An empty view.
    pub(crate) fn new() -> Self {
        let shown = Shown { builds: Cells::new(), queue: Cell::new(Vec::new()) };
        Self { shown, builds: HashMap::new(), queue: BTreeSet::new() }
    }

    /// What it writes.
    pub(crate) fn shown(&self) -> Shown {
        self.shown.clone()
    }
}

impl Projection for View {
    fn prefix(&self) -> Prefix {
        Prefix::of([BUILDS])
    }

    fn apply(&mut self, entry: &Entry, changes: &mut Changes<'_>) {
        // An entry that this version cannot read changes nothing: the same in every life of the server.
        let Ok(event) = serde_json::from_slice::<BuildEvent>(&entry.body) else { return };
        let Some(id) = BuildId::of_subject(&entry.subject) else { return };
        let Some(build) = Build::apply(self.builds.remove(&id), event) else { return };
        let queued = build.status == BuildStatus::Queued;
        if if queued { self.queue.insert(id) } else { self.queue.remove(&id) } {
            changes.put(&self.shown.queue, self.queue.iter().copied().collect());
        }
        changes.set(&self.shown.builds, id, build.clone());
        self.builds.insert(id, build);
    }
}

#[cfg(test)]
mod tests {
    use outlast::key::{CommandRef, Principal};
    use outlast::log::{AppendId, Committed};
    use outlast::machine::Wall;
    use ulid::Ulid;

    use super::*;
    use crate::build_farm::domain::{BuildSpec, Outcome};

    fn append(seq: u64, id: BuildId, body: impl Into<Vec<u8>>) -> Committed {
        let append = AppendId::new(Ulid::from_parts(seq, 0));
        let entry = Entry::new(seq, id.subject(), append, Wall::default(), body.into().into());
        Committed::new(seq, vec![entry])
    }

    #[test]
    fn the_queue_holds_what_nobody_has_claimed() {
        let (first, second) = (BuildId::new(Ulid::from_parts(1, 0)), BuildId::new(Ulid::from_parts(2, 0)));
        let mut view = View::new();
        let mut seq = 0;
        let mut tell = |view: &mut View, id, event: &BuildEvent| {
            seq += 1;
            view.fold(&append(seq, id, serde_json::to_vec(event).unwrap()));
        };
        let queue = |view: &View| view.shown().queue.get().unwrap().to_vec();
        let poller = Principal::new("poller").unwrap();
        let submitted = BuildEvent::Submitted {
            command: CommandRef::new(poller.clone(), "key"),
            spec: BuildSpec { directory: "/".into(), command: "true".into() },
        };
        tell(&mut view, second, &submitted);
        tell(&mut view, first, &submitted);
        assert_eq!(queue(&view), [first, second]);
        tell(&mut view, first, &BuildEvent::Claimed { worker: poller });
        assert_eq!(queue(&view), [second]);
        tell(&mut view, second, &BuildEvent::CancelRequested);
        assert_eq!(queue(&view), []);
        tell(&mut view, first, &BuildEvent::Finished { outcome: Outcome::Succeeded });
        view.fold(&append(9, first, "an event of a later version"));
        assert_eq!(view.shown().builds.get(&first).unwrap().status, BuildStatus::Succeeded);
        assert_eq!(view.shown().builds.get(&second).unwrap().status, BuildStatus::Canceled);
    }
}
