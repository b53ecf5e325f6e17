//! The farm's service, written by hand: what both ends know of it, and its client.

use outlast::call::{Method, Params};
use outlast::client::{Caller, Client};
use outlast::command::Command;
use outlast::observe::Observable;

use crate::domain::{Build, BuildId, BuildSpec, Outcome};

/// Reads one build.
pub(crate) const BUILD: Method = Method::new("build_farm.v1/build");
/// Reads the builds that wait for a worker.
pub(crate) const QUEUE: Method = Method::new("build_farm.v1/queue");
/// Submits a build. Its key is made of the id: a client that restarts finds its command again (K2).
pub(crate) const SUBMIT_BUILD: Method = Method::new("build_farm.v1/submit_build").keyed_by(&["id"]);
/// Claims a build. A claim has a key of its own per call: a second one is another command, and loses.
pub(crate) const CLAIM: Method = Method::new("build_farm.v1/claim");
/// Reports a line of a build.
pub(crate) const PROGRESS: Method = Method::new("build_farm.v1/progress").keyed_by(&["id", "n"]);
/// Reports the end of a build.
pub(crate) const FINISHED: Method = Method::new("build_farm.v1/finished").keyed_by(&["id"]);
/// Reports that a build was stopped.
pub(crate) const STOPPED: Method = Method::new("build_farm.v1/stopped").keyed_by(&["id"]);

/// A client of the farm.
#[derive(Clone, Debug)]
pub(crate) struct BuildFarmClient {
    caller: Caller,
}

impl BuildFarmClient {
    /// Calls through `client`.
    pub(crate) fn new(client: &Client) -> Self {
        Self { caller: client.caller() }
    }

    /// Where a build stands.
    pub(crate) fn build(&self, id: BuildId) -> Observable<Build> {
        self.caller.read(&BUILD, Params::new().with("id", &id))
    }

    /// The builds that wait for a worker, oldest first.
    pub(crate) fn queue(&self) -> Observable<Vec<BuildId>> {
        self.caller.read(&QUEUE, Params::new())
    }

    /// Submits a build. The command ends with the build: succeeded, failed or canceled.
    pub(crate) fn submit_build(&self, id: BuildId, spec: &BuildSpec) -> Command {
        self.caller.call(&SUBMIT_BUILD, Params::new().with("id", &id).with("spec", spec))
    }

    /// Takes a build. Fails, for good, if another worker has it.
    pub(crate) fn claim(&self, id: BuildId) -> Command {
        self.caller.call(&CLAIM, Params::new().with("id", &id))
    }

    /// Reports line `n`, counted from 1, of a build.
    pub(crate) fn progress(&self, id: BuildId, n: u64, line: &str) -> Command {
        self.caller.call(&PROGRESS, Params::new().with("id", &id).with("n", &n).with("line", line))
    }

    /// Reports how a build ended.
    pub(crate) fn finished(&self, id: BuildId, outcome: &Outcome) -> Command {
        self.caller.call(&FINISHED, Params::new().with("id", &id).with("outcome", outcome))
    }

    /// Reports that a build was stopped because of a cancel.
    pub(crate) fn stopped(&self, id: BuildId) -> Command {
        self.caller.call(&STOPPED, Params::new().with("id", &id))
    }
}
