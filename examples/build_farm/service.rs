//! The farm's service: what it is, once for both ends.

use outlast::{Command, Observable};

use crate::build_farm::domain::{Build, BuildId, BuildSpec, Outcome};

/// A farm that builds.
#[outlast::service]
pub(crate) trait BuildFarm {
    /// Where a build stands.
    fn build(&self, id: BuildId) -> Observable<Build>;

    /// The builds that wait for a worker, oldest first.
    fn queue(&self) -> Observable<Vec<BuildId>>;

    /// Submits a build. The command ends with the build: succeeded, failed or canceled.
    ///
    /// Its key is made of the id: a client that restarts finds its command again (K2).
    fn submit_build(&self, #[key] id: BuildId, spec: BuildSpec) -> Command;

    /// Takes a build. Fails, for good, if another worker has it.
    ///
    /// A claim has a key of its own per call: a second one is another command, and loses.
    fn claim(&self, id: BuildId) -> Command;

    /// Reports line `n`, counted from 1, of a build.
    fn progress(&self, #[key] id: BuildId, #[key] n: u64, line: String) -> Command;

    /// Reports how a build ended.
    fn finished(&self, #[key] id: BuildId, outcome: Outcome) -> Command;

    /// Reports that a build was stopped because of a cancel.
    fn stopped(&self, #[key] id: BuildId) -> Command;
}
