//! Where a command's key comes from: the ladder of K2, and the L3 key that surrounds a call.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use super::{Command, CommandFailure, FailureReason, Retry};
use crate::key::{CommandKey, Fingerprint};

thread_local! {
    static AMBIENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// Calls `f`, and the command that it calls has this L3 key.
///
/// The key names **one** command: the same command called again within `f` attaches to the first, and
/// any other fails before anything is sent. Name further steps with [`CommandKey::step`]. A method that
/// makes an L2 key of its arguments uses that; the handle tells so ([`Command::overridden`]).
///
/// The key is read while `f` runs, when a method is called: it crosses neither a spawn nor an `await` that
/// happens later, nor the process. An inner scope replaces an outer one until it is left. A client's own
/// `with_key` comes before any scope.
///
/// ```no_run
/// # fn restart() -> outlast::command::Command { unimplemented!() }
/// # async fn example() -> Result<(), outlast::command::CommandError> {
/// outlast::command::with_command_key("release:42", || restart()).await?;
/// # Ok(()) }
/// ```
pub fn with_command_key(key: impl Into<CommandKey>, f: impl FnOnce() -> Command) -> Command {
    let _entered = Entered::new(Scope::new(key.into()));
    f()
}

/// An L3 key and the one command that it names. Clones name the same.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    key: CommandKey,
    names: Arc<OnceLock<Fingerprint>>,
}

impl Scope {
    pub(crate) fn new(key: CommandKey) -> Self {
        Self { key, names: Arc::default() }
    }

    pub(crate) fn key(&self) -> &CommandKey {
        &self.key
    }

    /// The scope around this call, if there is one.
    pub(crate) fn ambient() -> Option<Self> {
        AMBIENT.with(|ambient| ambient.borrow().clone())
    }

    /// The key for this command, if it is the one that the scope names.
    fn claim(&self, fingerprint: Fingerprint) -> Result<CommandKey, CommandFailure> {
        if *self.names.get_or_init(|| fingerprint) == fingerprint {
            return Ok(self.key.clone());
        }
        let message = format!("the key {} names another command; name this step with `key.step(..)`", self.key);
        Err(CommandFailure::new(FailureReason::KeyConflict, Retry::NewKey, message))
    }
}

/// The scope that was replaced comes back when this is dropped, also by a panic.
struct Entered {
    outer: Option<Scope>,
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Entered {
    fn new(scope: Scope) -> Self {
        let outer = AMBIENT.with(|ambient| ambient.borrow_mut().replace(scope));
        Self { outer, _thread: PhantomData }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let outer = self.outer.take();
        AMBIENT.with(|ambient| *ambient.borrow_mut() = outer);
    }
}

/// The rung of the ladder that a command stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    /// The key to send.
    pub(crate) key: CommandKey,
    /// The L3 key that gave way to an L2 key: shown in the handle, with a warning.
    pub(crate) overridden: Option<CommandKey>,
}

/// K2: a semantic key wins over an explicit one, an explicit one over a minted one.
///
/// # Errors
/// When the explicit key names another command already, or the key cannot be used.
pub(crate) fn resolve(
    semantic: Option<CommandKey>,
    explicit: Option<&Scope>,
    minted: CommandKey,
    fingerprint: Fingerprint,
) -> Result<Rung, CommandFailure> {
    let rung = match (semantic, explicit) {
        (Some(key), scope) => Rung { key, overridden: scope.map(|scope| scope.key.clone()) },
        (None, Some(scope)) => Rung { key: scope.claim(fingerprint)?, overridden: None },
        (None, None) => Rung { key: minted, overridden: None },
    };
    rung.key.validate().map_err(|e| CommandFailure::invalid(&e))?;
    Ok(rung)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde_json::value::RawValue;
    use ulid::Ulid;

    use super::*;
    use crate::key::KeyLevel;

    fn fingerprint(method: &str) -> Fingerprint {
        let params: Box<RawValue> = serde_json::from_str("{}").unwrap();
        Fingerprint::of(method, &params).unwrap()
    }

    fn minted() -> CommandKey {
        CommandKey::minted(Ulid(7))
    }

    fn ambient_key() -> Option<String> {
        Scope::ambient().map(|scope| scope.key.as_str().to_owned())
    }

    fn command() -> Command {
        Command::failed(minted(), CommandFailure::rejected(Retry::Never, "a handle to return"))
    }

    /// K2: L2 wins over L3, which the handle shows; L3 wins over L1.
    #[test]
    fn k2_the_ladder() {
        let semantic = CommandKey::of_level("5e", KeyLevel::Semantic);
        let scope = Scope::new("release:42".into());
        let f = fingerprint("restart");
        let rung = resolve(None, None, minted(), f).unwrap();
        assert_eq!((rung.key.level(), rung.overridden), (KeyLevel::Minted, None));
        let rung = resolve(None, Some(&scope), minted(), f).unwrap();
        assert_eq!((rung.key, rung.overridden), ("release:42".into(), None));
        let rung = resolve(Some(semantic.clone()), Some(&scope), minted(), f).unwrap();
        assert_eq!((rung.key, rung.overridden), (semantic, Some("release:42".into())));
    }

    /// K2: a scope names one command; the same one attaches, any other fails here.
    #[test]
    fn k2_a_scope_names_one_command() {
        let scope = Scope::new("release:42".into());
        let again = scope.clone();
        let key = |scope, method| resolve(None, Some(scope), minted(), fingerprint(method)).map(|rung| rung.key);
        assert_eq!(key(&scope, "restart"), Ok("release:42".into()));
        assert_eq!(key(&again, "restart"), Ok("release:42".into()));
        let failure = key(&again, "promote").unwrap_err();
        assert_eq!((failure.reason, failure.retry), (FailureReason::KeyConflict, Retry::NewKey));
        let step = Scope::new(CommandKey::explicit("release:42").step("promote"));
        assert_eq!(key(&step, "promote"), Ok("release:42/promote".into()));
    }

    /// A key that cannot be used fails before anything is sent.
    #[test]
    fn an_invalid_key_fails_here() {
        let scope = Scope::new("".into());
        let failure = resolve(None, Some(&scope), minted(), fingerprint("restart")).unwrap_err();
        assert_eq!((failure.reason, failure.retry), (FailureReason::Invalid, Retry::Never));
    }

    /// K2: the ambient key is there during the call, on that thread, and nowhere else.
    #[test]
    fn k2_the_ambient_key_is_read_at_call_time() {
        assert_eq!(ambient_key(), None);
        drop(with_command_key("a", || {
            assert_eq!(ambient_key().as_deref(), Some("a"));
            drop(with_command_key("b", || {
                assert_eq!(ambient_key().as_deref(), Some("b"));
                command()
            }));
            assert_eq!(ambient_key().as_deref(), Some("a"));
            std::thread::scope(|threads| {
                threads.spawn(|| assert_eq!(ambient_key(), None, "another thread"));
            });
            command()
        }));
        assert_eq!(ambient_key(), None);
    }

    /// K2: a panic leaves no key behind for the next call.
    #[test]
    fn k2_the_ambient_key_is_restored_on_unwind() {
        let panicked = catch_unwind(AssertUnwindSafe(|| with_command_key("a", || panic!("in the call"))));
        assert!(panicked.is_err());
        assert_eq!(ambient_key(), None);
    }
}
