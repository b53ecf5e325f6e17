//! Names, forms and lints of the user that expansions must not trip over.
#![deny(warnings)]
#![allow(missing_docs, unreachable_pub, dead_code, reason = "what is declared here is only compiled")]

use steadfast::Command;
use steadfast::server::{Events, Routes, RpcScope};

/// Types are not hygienic: what an expansion calls its own types, a user may call his.
mod types {
    use super::*;

    pub type S = u8;
    pub type Handlers = u16;

    #[steadfast::service(crate = "steadfast")]
    pub trait Farm {
        fn go(&self, a: S, b: Handlers) -> Command;
    }

    pub struct Type;

    #[steadfast::handlers(Farm, crate = "steadfast")]
    impl Type {
        async fn go(&self, a: S, b: Handlers) -> Events {
            let _ = Handlers::from(a) + b;
            Events::none()
        }
    }
}

mod service_called_s {
    use super::*;

    #[steadfast::service(crate = "steadfast")]
    pub trait S {
        fn go(&self) -> Command;
    }

    pub struct Type;

    #[steadfast::handlers(S, crate = "steadfast")]
    impl Type {
        async fn go(&self) -> Events {
            Events::none()
        }
    }
}

#[test]
fn a_users_types_are_the_users() {
    let _: [Routes; 2] =
        [types::FarmServer::new(types::Type).into(), service_called_s::SServer::new(service_called_s::Type).into()];
}

/// A type that comes out of a macro is in a group of its own.
mod grouped {
    use super::*;

    #[steadfast::service(crate = "steadfast")]
    pub trait Farm {
        fn go(&self, a: u8) -> Command;
        fn stop(&self, a: u8) -> Command;
    }

    pub struct Type;

    macro_rules! served {
        ($scope:ty, $argument:ty) => {
            #[steadfast::handlers(Farm, crate = "steadfast")]
            impl Type {
                async fn go(&self, _: $scope, a: $argument) -> Events {
                    let _ = a;
                    Events::none()
                }

                #[allow(unused_parens, reason = "a macro may write them")]
                async fn stop(&self, _: (&RpcScope), a: (u8)) -> Events {
                    let _ = a;
                    Events::none()
                }
            }
        };
    }

    served!(&RpcScope, u8);
}

#[test]
fn a_scope_is_seen_in_a_group() {
    let _: Routes = grouped::FarmServer::new(grouped::Type).into();
}

/// What the user allows or expects of a declaration holds for what is made of it.
mod lints {
    use super::*;

    #[deprecated]
    pub type Old = u8;

    #[steadfast::service(crate = "steadfast")]
    #[allow(non_snake_case, reason = "it is called so elsewhere")]
    #[expect(deprecated, reason = "it travels still")]
    pub trait Farm {
        fn goNow(&self, argOne: Old) -> Command;
    }

    #[steadfast::service(crate = "steadfast")]
    pub trait Yard {
        #[expect(non_snake_case, reason = "it is called so elsewhere")]
        fn stopNow(&self, argOne: u8) -> Command;
    }

    #[steadfast::service(crate = "steadfast")]
    #[allow(clippy::too_many_arguments, reason = "they travel by name")]
    pub trait Wide {
        fn go(&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8) -> Command;
    }

    #[steadfast::service(crate = "steadfast")]
    #[deprecated = "go elsewhere"]
    pub trait Past {
        fn gone(&self) -> Command;
    }

    pub struct Type;

    #[steadfast::handlers(Farm, crate = "steadfast")]
    #[allow(non_snake_case, reason = "it is declared so")]
    #[expect(deprecated, reason = "it travels still")]
    impl Type {
        async fn goNow(&self, _: Old) -> Events {
            Events::none()
        }
    }

    #[steadfast::handlers(Yard, crate = "steadfast")]
    impl Type {
        #[expect(non_snake_case, reason = "it is declared so")]
        async fn stopNow(&self, _: u8) -> Events {
            Events::none()
        }
    }

    #[steadfast::handlers(Past, crate = "steadfast")]
    impl Type {
        #[deprecated = "go elsewhere"]
        async fn gone(&self) -> Events {
            Events::none()
        }
    }
}

#[test]
fn lints_of_a_declaration_are_the_users() {
    let _: [Routes; 3] = [
        lints::FarmServer::new(lints::Type).into(),
        lints::YardServer::new(lints::Type).into(),
        lints::PastServer::new(lints::Type).into(),
    ];
}

/// What is said inside of a declaration is copied outside of what is made of it.
mod inside {
    use super::*;

    #[steadfast::service(crate = "steadfast")]
    pub trait Farm {
        //! Documented inside.
        #![allow(non_snake_case, reason = "it is called so elsewhere")]

        fn goNow(&self, argOne: u8) -> Command;
    }
}

/// A handler may name its lifetimes; what is declared is owned.
mod lifetimes {
    use std::borrow::Cow;

    use super::*;

    #[steadfast::service(crate = "steadfast")]
    pub trait Farm {
        fn go(&self, a: Cow<'static, str>, b: Vec<Cow<'static, [u8]>>) -> Command;
    }

    pub struct Type;

    #[steadfast::handlers(Farm, crate = "steadfast")]
    impl Type {
        async fn go<'a, 'b>(&'a self, _: &'a RpcScope, a: Cow<'a, str>, b: Vec<Cow<'b, [u8]>>) -> Events {
            let _ = (a, b);
            Events::none()
        }
    }
}

#[test]
fn a_handler_may_name_its_lifetimes() {
    let _: Routes = lifetimes::FarmServer::new(lifetimes::Type).into();
}
