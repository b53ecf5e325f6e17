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
