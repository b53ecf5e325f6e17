#[allow(dead_code, reason = "the macro reads it; not every crate calls it")]
trait Greeter: Send + Sync {
    fn greeting(&self, r#type: String) -> Read<String>;
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl dyn Greeter {
    /// How [`greeting`](Greeter::greeting) is called.
    const GREETING: crate::vendor::outlast::call::Method = crate::vendor::outlast::call::Method::new(
        "greetings.v1/greeting",
    );
}
/// A client of [`Greeter`]. Cloning is cheap.
#[allow(deprecated, reason = "it is made of what may be deprecated")]
#[derive(::core::clone::Clone, ::core::fmt::Debug)]
struct GreeterClient {
    caller: crate::vendor::outlast::client::Caller,
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl GreeterClient {
    /// A client that calls through `client`.
    #[must_use]
    fn new(client: &crate::vendor::outlast::client::Client) -> Self {
        Self { caller: client.caller() }
    }
    /// One whose next command has this L3 key: it names one command. A method with an L2 key keeps its own.
    #[must_use]
    fn with_key(
        &self,
        key: impl ::core::convert::Into<crate::vendor::outlast::key::CommandKey>,
    ) -> Self {
        Self {
            caller: self.caller.with_key(key),
        }
    }
    /// One whose commands with L2 keys are the `n`th attempt; the first is 1.
    #[must_use]
    fn attempt(&self, n: u32) -> Self {
        Self {
            caller: self.caller.attempt(n),
        }
    }
    /// See [`Greeter::greeting`].
    fn greeting(&self, r#type: String) -> Read<String> {
        crate::vendor::outlast::declare::ask(
            &self.caller,
            &<dyn Greeter>::GREETING,
            crate::vendor::outlast::call::Params::new().with("type", &r#type),
        )
    }
}
/// One that calls through `caller`, with the metadata that it has.
impl ::core::convert::From<crate::vendor::outlast::client::Caller> for GreeterClient {
    fn from(caller: crate::vendor::outlast::client::Caller) -> Self {
        Self { caller }
    }
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl Greeter for GreeterClient {
    fn greeting(&self, r#type: String) -> Read<String> {
        Self::greeting(self, r#type)
    }
}
#[doc(hidden)]
#[allow(deprecated, reason = "it is made of what may be deprecated")]
#[derive(::core::fmt::Debug)]
struct GreeterHandlers<__Service> {
    greeting: crate::vendor::outlast::declare::Handler<
        __Service,
        (String,),
        Read<String>,
    >,
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl crate::vendor::outlast::declare::Service for dyn Greeter {
    type Handlers<__Service> = GreeterHandlers<__Service>;
}
/// Serves [`Greeter`].
#[derive(::core::fmt::Debug)]
#[must_use = "it serves nothing until a server is built with it"]
struct GreeterServer {
    routes: crate::vendor::outlast::server::Routes,
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl GreeterServer {
    /// Serves with the handlers of `service`.
    fn new<__Service: crate::vendor::outlast::declare::Serve<dyn Greeter>>(
        service: __Service,
    ) -> Self {
        Self::shared(::std::sync::Arc::new(service))
    }
    /// Serves with the handlers of `service`, which may serve others too.
    fn shared<__Service: crate::vendor::outlast::declare::Serve<dyn Greeter>>(
        service: ::std::sync::Arc<__Service>,
    ) -> Self {
        let handlers = __Service::handlers();
        let routes = crate::vendor::outlast::server::Routes::new("greetings", 1u32);
        let routes = handlers
            .greeting
            .mount(
                routes,
                &<dyn Greeter>::GREETING,
                &service,
                |args| { ::core::result::Result::Ok((args.take::<String>("type")?,)) },
            );
        Self { routes }
    }
}
impl ::core::convert::From<GreeterServer> for crate::vendor::outlast::server::Routes {
    fn from(server: GreeterServer) -> Self {
        server.routes
    }
}
#[allow(
    clippy::needless_pass_by_value,
    clippy::unused_async,
    clippy::unused_self,
    reason = "a handler owns its arguments; a command's is async"
)]
impl Hall {
    fn greeting(&self, _: String) -> Result<Live<String>, Error> {
        Ok(self.greeting.live())
    }
}
#[allow(deprecated, reason = "it is made of what may be deprecated")]
impl crate::vendor::outlast::declare::Serve<dyn api::Greeter> for Hall {
    fn handlers() -> <dyn api::Greeter as crate::vendor::outlast::declare::Service>::Handlers<
        Self,
    > {
        type __Handlers<__Service> = <dyn api::Greeter as crate::vendor::outlast::declare::Service>::Handlers<
            __Service,
        >;
        __Handlers {
            greeting: crate::vendor::outlast::declare::Handler::read(|
                this,
                _scope,
                arguments|
            {
                let (a0,) = crate::vendor::outlast::declare::arguments::<
                    1usize,
                    _,
                >(arguments);
                Self::greeting(
                    this,
                    crate::vendor::outlast::declare::argument::<_, String>(a0),
                )
            }),
        }
    }
}
