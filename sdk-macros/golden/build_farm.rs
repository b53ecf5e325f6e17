/// Builds, and who runs them.
#[service(version = 2)]
pub trait BuildFarm {
    /// Where a build stands.
    fn build(&self, id: BuildId) -> Observable<Build>;

    /// Submits a build.
    fn submit_build(&self, #[key] sha: Sha, spec: Spec) -> Command;

    #[cfg(feature = "admin")]
    #[command(without_dedupe)]
    #[wire(name = "restart-all")]
    fn restart(&self) -> Command;
}

#[handlers(BuildFarm)]
impl<L: LogExt> Farm<L> {
    fn build(&self, id: BuildId) -> Live<Build> {
        self.builds.live(&id)
    }

    async fn submit_build(&self, rpc: &RpcScope, sha: Sha, spec: Spec) -> Events {
        self.submitted(rpc, sha, spec)
    }

    #[cfg(feature = "admin")]
    async fn restart(&self) -> Events {
        self.restarted()
    }
}
