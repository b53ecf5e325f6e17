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

impl<S: Send + Sync + 'static, A: 'static, R> Handler<S, A, R> {
    /// A `fn`: a read's.
    pub fn read<L: 'static>(handler: fn(&S, &RpcScope, A) -> L) -> Self
    where
        R: ReadBy<L>,
    {
        let answer = move |service: &S, scope: &RpcScope, arguments: A| {
            Ok(R::into_live(handler(service, scope, arguments))?.into_feed())
        };
        Self { answer: Answer::Read(Arc::new(answer)), returned: PhantomData }
    }

    /// An `async fn`: a command's.
    pub fn command<O: 'static>(handler: for<'a> fn(&'a S, &'a RpcScope, A) -> BoxFuture<'a, O>) -> Self
    where
        R: DecidedBy<O>,
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
    ) -> Routes {
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

/// A declared read, answered by a `fn` that returns `L`.
#[diagnostic::on_unimplemented(
    message = "the handler of a command is an `async fn`",
    label = "declared to return `{Self}`, so its handler is an `async fn`",
    note = "the service declares a command; a read returns `Observable<_>`"
)]
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
    L::Value: DeclaredAs<V>,
{
    type Value = L::Value;

    fn into_live(read: L) -> Result<Live<L::Value>, Error> {
        read.into_read()
    }
}

/// A declared command, decided by an `async fn` that returns `O`.
#[diagnostic::on_unimplemented(
    message = "the handler of a read is a `fn` that is not `async`",
    label = "declared to return `{Self}`, so its handler is a `fn`",
    note = "it returns a live source and does not wait for a value; a command returns `Command`"
)]
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

/// What a declared read's handler returns: a live source, or an error instead.
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

impl<L: IntoLive> IntoRead for Result<L, Error> {
    type Value = L::Value;

    fn into_read(self) -> Result<Live<L::Value>, Error> {
        self.map(L::into_live)
    }
}

/// What a declared command's handler returns: an outcome, or an error that leaves no record.
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

impl<O: IntoOutcome> IntoDecision for Result<O, Error> {
    fn into_decision(self) -> Result<Outcome, Error> {
        self.map(O::into_outcome)
    }
}

/// A handler's type that is the one declared: every type, as itself.
#[diagnostic::on_unimplemented(
    message = "the service declares `{D}`, the handler has `{Self}`",
    label = "declared as `{D}`"
)]
pub trait DeclaredAs<D> {
    /// The same value.
    fn from_declared(declared: D) -> Self;
}

impl<T> DeclaredAs<T> for T {
    fn from_declared(declared: T) -> T {
        declared
    }
}

/// A declared argument, as the handler takes it.
pub fn argument<D, H: DeclaredAs<D>>(declared: D) -> H {
    H::from_declared(declared)
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
    message = "the handler takes {N} arguments, the service declares `{Self}`",
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
