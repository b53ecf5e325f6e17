//! What a connection asks: where the service is. Asked anew, so what moves is found (R8).

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::error::Error;

/// Tells where the service is. Asked before every round of dials, with a bound of 5 s.
///
/// A list is given as `"wss://a.example"`, or as a `Vec` of such texts; anything else as a closure that
/// returns a future of a `Vec<String>`. An error or an empty list is a failed round, never an end.
pub trait Discover: Send + Sync + 'static {
    /// The endpoints, best first, as `ws://` or `wss://` URLs.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>>;
}

impl Discover for &'static str {
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        std::future::ready(Ok(vec![(*self).to_owned()])).boxed()
    }
}

impl Discover for String {
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        std::future::ready(Ok(vec![self.clone()])).boxed()
    }
}

impl Discover for Vec<String> {
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        std::future::ready(Ok(self.clone())).boxed()
    }
}

impl<F, Fut> Discover for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<String>, Error>> + Send + 'static,
{
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        self().boxed()
    }
}
