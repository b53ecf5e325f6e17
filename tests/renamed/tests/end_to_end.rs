//! A declared service from end to end, under a name of the user's choice.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use outlast_renamed::{Greeter, GreeterClient, GreeterServer, Hall};
use steadfast::client::Client;
use steadfast::command::Protection;
use steadfast::env::Env;
use steadfast::key::Principal;
use steadfast::log::{Entry, MemoryLog, Prefix, Subject};
use steadfast::server::{Cell, Cells, Changes, Events, Live, Projection, Routes, RpcScope, Server};
use steadfast::testing::{Life, Net};
use steadfast::{Command, KeyLevel, Observable};

struct View {
    greetings: Cells<String, String>,
    count: Cell<u64>,
    counted: u64,
}

impl Projection for View {
    fn prefix(&self) -> Prefix {
        Prefix::of(["greeting"])
    }

    fn apply(&mut self, entry: &Entry, changes: &mut Changes<'_>) {
        self.counted += 1;
        changes.put(&self.count, self.counted);
        if let Some(name) = entry.subject.tokens().nth(1) {
            changes.set(&self.greetings, name, String::from_utf8_lossy(&entry.body).into_owned());
        }
    }
}

/// A second service on the same type, in another place than its type's first.
mod porter {
    use super::{Command, Observable};

    /// Opens and closes.
    #[steadfast::service(crate = "steadfast")]
    pub(crate) trait Porter {
        fn open(&self) -> Observable<bool>;
        fn close(&self, r#type: String) -> Command;
    }
}

/// A type that is generic, and serves two services.
struct House<T> {
    hall: Hall,
    open: tokio::sync::watch::Sender<bool>,
    _of: T,
}

#[steadfast::handlers(Greeter, crate = "steadfast")]
impl<T: Send + Sync + 'static> House<T> {
    fn greeting(&self, scope: &RpcScope, name: String) -> Live<String> {
        drop(scope.clone());
        self.hall.greetings().live(&name)
    }

    fn count(&self) -> tokio::sync::watch::Receiver<u64> {
        tokio::sync::watch::channel(3).1
    }

    async fn greet(&self, _name: String, _: Option<String>, mut loudly: bool) -> Events {
        loudly ^= true;
        let _ = loudly;
        Events::none()
    }

    async fn hail(&self, _name: String) -> Events {
        Events::none()
    }

    async fn cry(&self, this: Vec<String>) -> Result<Events, steadfast::Error> {
        Ok(Events::on(Subject::of(["greeting", &this.concat()])).push(&1))
    }
}

#[steadfast::handlers(porter::Porter, crate = "steadfast")]
impl<T> House<T>
where
    T: Send + Sync + 'static,
{
    fn open(&self) -> tokio::sync::watch::Receiver<bool> {
        self.open.subscribe()
    }

    async fn close(&self, kind: String) -> Events {
        tokio::task::yield_now().await;
        self.open.send_replace(kind.is_empty());
        Events::none()
    }
}

fn hall() -> (Hall, View) {
    let (greetings, count) = (Cells::new(), Cell::new(0));
    (Hall::new(greetings.clone(), count.clone()), View { greetings, count, counted: 0 })
}

async fn serve(net: &Net, env: &Env, service: impl Into<Routes>, view: View) -> (Server, Life) {
    let log = MemoryLog::declared_durable(env);
    let server = Server::builder(log).project(view).service(service).start().await.unwrap();
    let life = Life::serve(net, "hall", server.router());
    (server, life)
}

fn client(net: &Net, env: &Env) -> Client {
    Client::builder("ws://hall/".to_owned()).network(net.clone()).env(env.clone()).open().unwrap()
}

/// K2, W1: the client and the server agree on names, arguments and keys, with nothing written twice.
#[tokio::test(start_paused = true)]
async fn k2_both_ends_are_made_of_one_declaration() {
    let (net, env) = (Net::new(), Env::system());
    let (hall, view) = hall();
    let _served = serve(&net, &env, GreeterServer::new(hall), view).await;
    let client = client(&net, &env);
    let greeter = GreeterClient::new(&client);

    let greet = greeter.greet("ann".into(), None, true);
    let again = greeter.greet("ann".into(), None, true);
    assert_eq!((greet.key().level(), greet.key()), (KeyLevel::Semantic, again.key()));
    greet.await.unwrap();
    again.await.unwrap();
    let greeting = greeter.greeting("ann".into()).until(|_| true).await.unwrap();
    assert_eq!(**greeting, *"\"anonymous says: hello ann!\"");
    assert_eq!(*greeter.count().until(|count| *count > 0).await.unwrap(), 1, "S1: one effect");

    let next = greeter.attempt(2).greet("ann".into(), None, true);
    assert_ne!(next.key(), greeter.greet("ann".into(), None, true).key());
    next.await.unwrap();

    let cry = greeter.with_key("cry:1").cry(vec!["a".into(), "b".into()]);
    assert_eq!(cry.key().level(), KeyLevel::Explicit);
    assert_eq!(cry.state().latest().last().unwrap().protection(), Protection::Unprotected);
    cry.await.unwrap();
    assert_eq!(**greeter.greeting("everybody".into()).until(|_| true).await.unwrap(), *"\"a b\"");
}

/// One type serves two services, and is shared between them.
#[tokio::test(start_paused = true)]
async fn two_services_on_one_generic_type() {
    let (net, env) = (Net::new(), Env::system());
    let (hall, view) = hall();
    let house = Arc::new(House { hall, open: tokio::sync::watch::Sender::new(true), _of: "wood" });
    let log = MemoryLog::declared_durable(&env);
    let server = Server::builder(log)
        .project(view)
        .service(GreeterServer::shared(Arc::clone(&house)))
        .service(porter::PorterServer::shared(house))
        .start()
        .await
        .unwrap();
    let _life = Life::serve(&net, "hall", server.router());
    let client = client(&net, &env);
    let porter = porter::PorterClient::new(&client);
    let open = porter.open();
    assert!(*open.until(|_| true).await.unwrap());
    porter.close("shut".into()).await.unwrap();
    open.until(|open| !open).await.unwrap();
    let greeter = GreeterClient::from(client.caller().metadata("from", "test"));
    greeter.cry(vec!["x".into()]).await.unwrap();
    assert_eq!(*greeter.count().until(|_| true).await.unwrap(), 3);
}

#[test]
fn a_method_is_called_by_service_version_and_name() {
    assert_eq!(<dyn Greeter>::CRY.name(), "greetings.v2/shout");
    assert!(!<dyn Greeter>::CRY.dedupes() && <dyn Greeter>::GREET.dedupes());
    assert_eq!(<dyn porter::Porter>::CLOSE.name(), "porter.v1/close");
}

/// A handler is a method: it is tested with a scope that no transport made.
#[tokio::test]
async fn a_handler_is_tested_without_a_transport() {
    let scope = RpcScope::builder(Principal::new("bob").unwrap()).command("key", KeyLevel::Minted).build();
    let events = hall().0.greet(&scope, "ann".into(), None, false).await.unwrap();
    assert!(format!("{events:?}").contains("bob says: hello ann"), "{events:?}");
}

/// The declaring trait is for mocks: a program is tested without a server.
#[tokio::test(start_paused = true)]
async fn a_mock_implements_the_trait() {
    struct Mock(Observable<String>);
    impl Greeter for Mock {
        fn greeting(&self, _: String) -> Observable<String> {
            self.0.clone()
        }
        fn count(&self) -> Observable<u64> {
            steadfast::observe::channel().1
        }
        fn greet(&self, _: String, _: Option<String>, _: bool) -> Command {
            unreachable!("only reads are looked at")
        }
        fn cry(&self, _: Vec<String>) -> Command {
            unreachable!("only reads are looked at")
        }
        fn hail(&self, _: String) -> Command {
            unreachable!("only reads are looked at")
        }
    }
    async fn program(greeter: &impl Greeter) -> usize {
        greeter.greeting("ann".into()).until(|_| true).await.unwrap().len()
    }
    let (publisher, greeting) = steadfast::observe::channel();
    publisher.fresh("hello".to_owned());
    assert_eq!(program(&Mock(greeting)).await, 5);
    fn either(_: &dyn Greeter) {}
    either(&GreeterClient::new(&Client::builder("ws://hall/".to_owned()).network(Net::new()).open().unwrap()));
}
