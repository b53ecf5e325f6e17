//! Shapes that are taken: no arguments, raw names, aliases, supertraits, private traits, macros in macros.
#![deny(warnings)]

use outlast::server::{Cell, Events, Live, Routes, RpcScope};
use outlast::{Command, Observable};

type Read<T> = Observable<T>;
type Rpc = RpcScope;


mod api {
    use super::*;

    #[outlast::service(name = "odd.names")]
    #[allow(clippy::needless_lifetimes)]
    pub(crate) trait Odd: Send + Sync {
        fn r#type(&self, r#fn: u8, this: u8, scope: u8, arguments: u8, args: u8) -> Read<(u8, Vec<u8>)>;
        fn caller(&self, #[key] caller: String, routes: (), handlers: std::borrow::Cow<'static, str>) -> Command;
    }
}

struct Service<T> {
    cell: Cell<(u8, Vec<u8>)>,
    _of: std::marker::PhantomData<T>,
}

#[outlast::handlers(api::Odd)]
impl<T: Send + Sync + 'static> Service<T> {
    fn r#type(&self, _: &Rpc, this: u8, r#fn: u8, scope: u8, arguments: u8, _args: u8) -> Live<(u8, Vec<u8>)> {
        let _ = (this, r#fn, scope, arguments);
        self.cell.live()
    }

    async fn caller<'a>(&'a self, caller: String, (): (), _: std::borrow::Cow<'static, str>) -> Events {
        let _ = caller;
        Events::none()
    }
}

macro_rules! declared {
    ($name:ident, $method:ident, $argument:ident: $ty:ty) => {
        #[outlast::service]
        trait $name {
            fn $method(&self, $argument: $ty) -> Command;
        }
    };
}

declared!(Made, make, it: String);

#[outlast::handlers(Made)]
impl Service<u16> {
    async fn make(&self, it: String) -> Events {
        drop(it);
        Events::none()
    }
}

fn main() {
    use api::Odd;

    let _: Routes = api::OddServer::new(Service::<()> { cell: Cell::new((0, Vec::new())), _of: Default::default() }).into();
    let _: Routes = MadeServer::new(Service::<u16> { cell: Cell::new((0, Vec::new())), _of: Default::default() }).into();
    assert_eq!(<dyn Odd>::TYPE.name(), "odd.names.v1/type");
}
