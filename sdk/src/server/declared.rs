//! Handlers of a declared service: what it declares and what a type has, held against each other.
//!
//! The macros' expansions are written with these, and nothing else needs them: by hand, a service is
//! [`Routes`] and its closures.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::live::{Feed, IntoLive, Live};
use super::outcome::{IntoOutcome, Outcome};
use super::routes::{Route, Routes};
use super::scope::RpcScope;
use crate::call::{Args, Method};
use crate::command::Command;
use crate::error::Error;
use crate::observe::Observable;

/// A declared service, as the handle `dyn Trait`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no service",
    label = "no service",
    note = "`#[outlast::service]` on the trait makes it one"
)]
pub trait Service {
    /// The handlers of the service in `S`: one field for each method, of its name.
    type Handlers<S>;
}

/// A type with the handlers of the service `D`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handlers of `{D}`",
    label = "does not serve `{D}`",
    note = "`#[outlast::handlers(..)]` on its `impl` block says that these are them"
)]
pub trait Serve<D: Service + ?Sized>: Sized + Send + Sync + 'static {
    /// Its handlers.
    fn handlers() -> D::Handlers<Self>;
}

/// The handler in `S` of a method that is declared with the arguments `A` and returns `R`.
pub struct Handler<S, A, R> {
    answer: Answer<S, A>,
    returned: PhantomData<fn() -> R>,
}

enum Answer<S, A> {
    Read(Read<S, A>),
    Command(Decide<S, A>),
}

type Read<S, A> = Arc<dyn Fn(&S, &RpcScope, A) -> Result<Box<dyn Feed>, Error> + Send + Sync>;
type Decide<S, A> = Arc<dyn for<'a> Fn(&'a S, &'a RpcScope, A) -> BoxFuture<'a, Result<Outcome, Error>> + Send + Sync>;

impl<S: 'static, A: 'static, R> Handler<S, A, R> {
    /// A `fn`: a read's.
    pub fn read<L: 'static>(handler: fn(&S, &RpcScope, A) -> L) -> Self
    where
        R: IsRead + ReadBy<L>,
    {
        let answer = move |service: &S, scope: &RpcScope, arguments: A| {
            Ok(R::into_live(handler(service, scope, arguments))?.into_feed())
        };
        Self { answer: Answer::Read(Arc::new(answer)), returned: PhantomData }
    }

    /// An `async fn`: a command's.
    pub fn command<O: 'static>(handler: for<'a> fn(&'a S, &'a RpcScope, A) -> BoxFuture<'a, O>) -> Self
    where
        R: IsCommand + DecidedBy<O>,
    {
        Self { answer: Answer::Command(decided::<S, A, R, O>(handler)), returned: PhantomData }
    }

    /// Adds the handler to `routes`; `decode` reads the declared arguments.
    pub fn mount(
        self,
        routes: Routes,
        method: &Method,
        service: &Arc<S>,
        decode: fn(&mut Args) -> Result<A, Error>,
    ) -> Routes
    where
        S: Send + Sync,
    {
        let service = Arc::clone(service);
        let route = match self.answer {
            Answer::Read(answer) => Route::Read(Arc::new(move |scope, mut args| {
                let arguments = decode(&mut args)?;
                answer(&service, scope, arguments)
            })),
            Answer::Command(answer) => Route::Command(
                *method,
                Arc::new(move |scope, mut args| {
                    let (service, answer) = (Arc::clone(&service), Arc::clone(&answer));
                    Box::pin(async move {
                        // The arguments are not held across the wait, so they need not be `Send`.
                        let decision = answer(&service, &scope, decode(&mut args)?);
                        decision.await
                    })
                }),
            ),
        };
        routes.route(method, route)
    }
}

fn decided<S: 'static, A: 'static, R, O: 'static>(
    handler: for<'a> fn(&'a S, &'a RpcScope, A) -> BoxFuture<'a, O>,
) -> Decide<S, A>
where
    R: DecidedBy<O>,
{
    fn each<'a, O: 'a, R: DecidedBy<O>>(decision: BoxFuture<'a, O>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move { R::into_decision(decision.await) })
    }
    Arc::new(move |service, scope, arguments| each::<O, R>(handler(service, scope, arguments)))
}

impl<S, A, R> fmt::Debug for Handler<S, A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.answer {
            Answer::Read(_) => "Handler::Read",
            Answer::Command(_) => "Handler::Command",
        })
    }
}

/// A declared read: its handler is a `fn`.
#[diagnostic::on_unimplemented(
    message = "the handler of a command is an `async fn`",
    label = "declared to return `{Self}`",
    note = "a read's handler is a `fn`, and a read returns `Observable<_>`"
)]
pub trait IsRead {}

impl<V> IsRead for Observable<V> {}

/// A declared command: its handler is an `async fn`.
#[diagnostic::on_unimplemented(
    message = "the handler of a read is a `fn` that is not `async`",
    label = "declared to return `{Self}`",
    note = "it returns a live source and does not wait for a value"
)]
pub trait IsCommand {}

impl IsCommand for Command {}

/// A declared method that a `fn` answers with `L`.
///
/// A command is answered with anything: that it is no read ([`IsRead`]) is told once.
pub trait ReadBy<L> {
    /// The value's type.
    type Value;

    /// The live value.
    ///
    /// # Errors
    /// The handler's own.
    fn into_live(read: L) -> Result<Live<Self::Value>, Error>;
}

impl<V, L> ReadBy<L> for Observable<V>
where
    L: IntoRead,
    V: TakenAs<L::Value>,
{
    type Value = L::Value;

    fn into_live(read: L) -> Result<Live<L::Value>, Error> {
        read.into_read()
    }
}

impl<L> ReadBy<L> for Command {
    type Value = L;

    fn into_live(_: L) -> Result<Live<L>, Error> {
        Err(Error::invalid("method", "a read"))
    }
}

/// A declared method that an `async fn` decides with `O`.
///
/// A read is decided with anything: that it is no command ([`IsCommand`]) is told once.
pub trait DecidedBy<O> {
    /// The decision.
    ///
    /// # Errors
    /// The handler's own.
    fn into_decision(decided: O) -> Result<Outcome, Error>;
}

impl<O: IntoDecision> DecidedBy<O> for Command {
    fn into_decision(decided: O) -> Result<Outcome, Error> {
        decided.into_decision()
    }
}

impl<V, O> DecidedBy<O> for Observable<V> {
    fn into_decision(_: O) -> Result<Outcome, Error> {
        Err(Error::invalid("method", "a command"))
    }
}

/// What a declared read's handler returns: a live source, or an error instead.
#[diagnostic::on_unimplemented(
    message = "the handler of a read returns a live source, `{Self}` is none",
    label = "no live source",
    note = "return `Live<_>` (of `Cells` or `Cell`), `tokio::sync::watch::Receiver<_>`, or a `Result` of one with `outlast::Error`"
)]
pub trait IntoRead {
    /// The value's type.
    type Value;

    /// The live value.
    ///
    /// # Errors
    /// The handler's own: denied ends the read, every other leaves it unserved.
    fn into_read(self) -> Result<Live<Self::Value>, Error>;
}

impl<L: IntoLive> IntoRead for L {
    type Value = L::Value;

    fn into_read(self) -> Result<Live<L::Value>, Error> {
        Ok(self.into_live())
    }
}

#[diagnostic::do_not_recommend]
impl<L: IntoLive> IntoRead for Result<L, Error> {
    type Value = L::Value;

    fn into_read(self) -> Result<Live<L::Value>, Error> {
        self.map(L::into_live)
    }
}

/// What a declared command's handler returns: an outcome, or an error that leaves no record.
#[diagnostic::on_unimplemented(
    message = "the handler of a command returns an outcome, `{Self}` is none",
    label = "no outcome",
    note = "return `Events`, `Running` or `Outcome`, or a `Result` of one with `CommandFailure` (recorded) or `outlast::Error`"
)]
pub trait IntoDecision {
    /// The decision.
    ///
    /// # Errors
    /// The handler's own: the call is refused, nothing is recorded.
    fn into_decision(self) -> Result<Outcome, Error>;
}

impl<O: IntoOutcome> IntoDecision for O {
    fn into_decision(self) -> Result<Outcome, Error> {
        Ok(self.into_outcome())
    }
}

#[diagnostic::do_not_recommend]
impl<O: IntoOutcome> IntoDecision for Result<O, Error> {
    fn into_decision(self) -> Result<Outcome, Error> {
        self.map(O::into_outcome)
    }
}

/// A declared type that a handler has as `H`: every type, as itself.
#[diagnostic::on_unimplemented(
    message = "the service declares `{Self}`, the handler has `{H}`",
    label = "declared as `{Self}`"
)]
pub trait TakenAs<H> {
    /// The same value.
    fn taken(self) -> H;
}

#[diagnostic::do_not_recommend]
impl<T> TakenAs<T> for T {
    fn taken(self) -> T {
        self
    }
}

/// A declared argument, as the handler takes it.
pub fn argument<D: TakenAs<H>, H>(declared: D) -> H {
    declared.taken()
}

/// A handler's leading reference: to [`RpcScope`].
#[diagnostic::on_unimplemented(
    message = "a handler's leading reference is `&RpcScope`, this is `&{Self}`",
    label = "declared arguments are owned"
)]
pub trait Scope {
    /// The scope.
    fn of(scope: &RpcScope) -> &Self;
}

#[diagnostic::do_not_recommend]
impl Scope for RpcScope {
    fn of(scope: &RpcScope) -> &Self {
        scope
    }
}

/// The scope, for a handler that asks for it.
pub fn scope<T: Scope>(scope: &RpcScope) -> &T {
    T::of(scope)
}

/// Declared arguments that are `N`.
#[diagnostic::on_unimplemented(
    message = "the handler takes {N} argument(s), the service declares `{Self}`",
    label = "declared with the arguments `{Self}`",
    note = "a leading `&RpcScope` does not count"
)]
pub trait Count<const N: usize> {
    /// The same arguments.
    type Same;

    /// The same arguments.
    fn counted(self) -> Self::Same;
}

/// The declared arguments of a handler that takes `N`.
pub fn arguments<const N: usize, A: Count<N>>(declared: A) -> A::Same {
    declared.counted()
}

macro_rules! count {
    ($n:literal: $($each:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($each),*> Count<$n> for ($($each,)*) {
            type Same = Self;

            fn counted(self) -> Self {
                self
            }
        }
    };
}

count!(0:);
count!(1: A);
count!(2: A B);
count!(3: A B C);
count!(4: A B C D);
count!(5: A B C D E);
count!(6: A B C D E F);
count!(7: A B C D E F G);
count!(8: A B C D E F G H);
count!(9: A B C D E F G H I);
count!(10: A B C D E F G H I J);
count!(11: A B C D E F G H I J K);
count!(12: A B C D E F G H I J K L);
