#[allow(dead_code, reason = "the macro reads it; not every crate calls it")]
/// Builds, and who runs them.
pub trait BuildFarm {
    /// Where a build stands.
    fn build(&self, id: BuildId) -> Observable<Build>;
    /// Submits a build.
    fn submit_build(&self, sha: Sha, spec: Spec) -> Command;
    #[cfg(feature = "admin")]
    fn restart(&self) -> Command;
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl dyn BuildFarm {
    /// How [`build`](BuildFarm::build) is called.
    pub const BUILD: ::outlast::call::Method = ::outlast::call::Method::new(
        "build_farm.v2/build",
    );
    /// How [`submit_build`](BuildFarm::submit_build) is called.
    pub const SUBMIT_BUILD: ::outlast::call::Method = ::outlast::call::Method::new(
            "build_farm.v2/submit_build",
        )
        .keyed_by(&["sha"]);
    /// How [`restart`](BuildFarm::restart) is called.
    #[cfg(feature = "admin")]
    pub const RESTART: ::outlast::call::Method = ::outlast::call::Method::new(
            "build_farm.v2/restart-all",
        )
        .without_dedupe();
}
/// A client of [`BuildFarm`]. Cloning is cheap.
///
/// Builds, and who runs them.
#[allow(deprecated, reason = "it is made of what may be deprecated")]
#[derive(::core::clone::Clone, ::core::fmt::Debug)]
pub struct BuildFarmClient {
    caller: ::outlast::client::Caller,
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl BuildFarmClient {
    /// A client that calls through `client`.
    #[must_use]
    pub fn new(client: &::outlast::client::Client) -> Self {
        Self { caller: client.caller() }
    }
    /// One whose next command has this L3 key: it names one command. A method with an L2 key keeps its own.
    #[must_use]
    pub fn with_key(
        &self,
        key: impl ::core::convert::Into<::outlast::key::CommandKey>,
    ) -> Self {
        Self {
            caller: self.caller.with_key(key),
        }
    }
    /// One whose commands with L2 keys are the `n`th attempt; the first is 1.
    #[must_use]
    pub fn attempt(&self, n: u32) -> Self {
        Self {
            caller: self.caller.attempt(n),
        }
    }
    /// Where a build stands.
    pub fn build(&self, id: BuildId) -> Observable<Build> {
        ::outlast::declare::ask(
            &self.caller,
            &<dyn BuildFarm>::BUILD,
            ::outlast::call::Params::new().with("id", &id),
        )
    }
    /// Submits a build.
    pub fn submit_build(&self, sha: Sha, spec: Spec) -> Command {
        ::outlast::declare::ask(
            &self.caller,
            &<dyn BuildFarm>::SUBMIT_BUILD,
            ::outlast::call::Params::new().with("sha", &sha).with("spec", &spec),
        )
    }
    #[cfg(feature = "admin")]
    /// See [`BuildFarm::restart`].
    pub fn restart(&self) -> Command {
        ::outlast::declare::ask(
            &self.caller,
            &<dyn BuildFarm>::RESTART,
            ::outlast::call::Params::new(),
        )
    }
}
/// One that calls through `caller`, with the metadata that it has.
impl ::core::convert::From<::outlast::client::Caller> for BuildFarmClient {
    fn from(caller: ::outlast::client::Caller) -> Self {
        Self { caller }
    }
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl BuildFarm for BuildFarmClient {
    fn build(&self, id: BuildId) -> Observable<Build> {
        Self::build(self, id)
    }
    fn submit_build(&self, sha: Sha, spec: Spec) -> Command {
        Self::submit_build(self, sha, spec)
    }
    #[cfg(feature = "admin")]
    fn restart(&self) -> Command {
        Self::restart(self)
    }
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
const _: () = ::outlast::declare::keyed::<Command>();
#[cfg(feature = "admin")]
#[allow(deprecated, reason = "it is made of what may be deprecated")]
const _: () = ::outlast::declare::keyed::<Command>();
#[doc(hidden)]
#[allow(deprecated, reason = "it is made of what may be deprecated")]
#[derive(::core::fmt::Debug)]
pub struct BuildFarmHandlers<__Service> {
    pub build: ::outlast::declare::Handler<__Service, (BuildId,), Observable<Build>>,
    pub submit_build: ::outlast::declare::Handler<__Service, (Sha, Spec), Command>,
    #[cfg(feature = "admin")]
    pub restart: ::outlast::declare::Handler<__Service, (), Command>,
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl ::outlast::declare::Service for dyn BuildFarm {
    type Handlers<__Service> = BuildFarmHandlers<__Service>;
}
/// Serves [`BuildFarm`].
#[derive(::core::fmt::Debug)]
#[must_use = "it serves nothing until a server is built with it"]
pub struct BuildFarmServer {
    routes: ::outlast::server::Routes,
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl BuildFarmServer {
    /// Serves with the handlers of `service`.
    pub fn new<__Service: ::outlast::declare::Serve<dyn BuildFarm>>(
        service: __Service,
    ) -> Self {
        Self::shared(::std::sync::Arc::new(service))
    }
    /// Serves with the handlers of `service`, which may serve others too.
    pub fn shared<__Service: ::outlast::declare::Serve<dyn BuildFarm>>(
        service: ::std::sync::Arc<__Service>,
    ) -> Self {
        let handlers = __Service::handlers();
        let routes = ::outlast::server::Routes::new("build_farm", 2u32);
        let routes = handlers
            .build
            .mount(
                routes,
                &<dyn BuildFarm>::BUILD,
                &service,
                |args| { ::core::result::Result::Ok((args.take::<BuildId>("id")?,)) },
            );
        let routes = handlers
            .submit_build
            .mount(
                routes,
                &<dyn BuildFarm>::SUBMIT_BUILD,
                &service,
                |args| {
                    ::core::result::Result::Ok((
                        args.take::<Sha>("sha")?,
                        args.take::<Spec>("spec")?,
                    ))
                },
            );
        #[cfg(feature = "admin")]
        let routes = handlers
            .restart
            .mount(
                routes,
                &<dyn BuildFarm>::RESTART,
                &service,
                |_| { ::core::result::Result::Ok(()) },
            );
        Self { routes }
    }
}
impl ::core::convert::From<BuildFarmServer> for ::outlast::server::Routes {
    fn from(server: BuildFarmServer) -> Self {
        server.routes
    }
}
#[allow(
    clippy::needless_pass_by_value,
    clippy::unused_async,
    clippy::unused_self,
    reason = "a handler owns its arguments; a command's is async"
)]
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
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl<L: LogExt> ::outlast::declare::Serve<dyn BuildFarm> for Farm<L> {
    fn handlers() -> <dyn BuildFarm as ::outlast::declare::Service>::Handlers<Self> {
        type __Handlers<__Service> = <dyn BuildFarm as ::outlast::declare::Service>::Handlers<
            __Service,
        >;
        __Handlers {
            build: ::outlast::declare::Handler::read(|this, _scope, arguments| {
                let (a0,) = ::outlast::declare::arguments::<1usize, _>(arguments);
                Self::build(this, ::outlast::declare::argument::<_, BuildId>(a0))
            }),
            submit_build: ::outlast::declare::Handler::command(|this, scope, arguments| {
                let (a0, a1) = ::outlast::declare::arguments::<2usize, _>(arguments);
                ::std::boxed::Box::pin(
                    Self::submit_build(
                        this,
                        ::outlast::declare::scope::<RpcScope>(scope),
                        ::outlast::declare::argument::<_, Sha>(a0),
                        ::outlast::declare::argument::<_, Spec>(a1),
                    ),
                )
            }),
            #[cfg(feature = "admin")]
            restart: ::outlast::declare::Handler::command(|this, _scope, arguments| {
                let () = ::outlast::declare::arguments::<0usize, _>(arguments);
                ::std::boxed::Box::pin(Self::restart(this))
            }),
        }
    }
}
