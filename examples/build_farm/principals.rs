//! Who may speak to the server: the poller and the worker, each by a bearer token of its own.

use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use outlast::env::Env;
use tokio::process::Command;

use crate::build_farm::cli::Role;

/// The principal that submits builds.
pub(crate) const POLLER: &str = "poller";

/// The principal that runs them.
pub(crate) const WORKER: &str = "worker";

const POLLER_TOKEN: &str = "BUILD_FARM_POLLER_TOKEN";
const WORKER_TOKEN: &str = "BUILD_FARM_WORKER_TOKEN";

/// The tokens of one farm. They reach its processes through the environment, which other users cannot see.
#[derive(Clone)]
pub(crate) struct Tokens {
    poller: String,
    worker: String,
}

impl Tokens {
    /// Fresh ones.
    pub(crate) fn mint(env: &Env) -> Self {
        let token = || format!("{:016x}{:016x}", env.draw(), env.draw());
        Self { poller: token(), worker: token() }
    }

    /// Those that this process was started with; a process has only those that it needs.
    pub(crate) fn given() -> Self {
        let token = |name| std::env::var(name).unwrap_or_default();
        Self { poller: token(POLLER_TOKEN), worker: token(WORKER_TOKEN) }
    }

    /// Gives a process of the farm those that it needs.
    pub(crate) fn give(&self, role: Role, command: &mut Command) {
        Self::take(command);
        match role {
            Role::Server => command.env(POLLER_TOKEN, &self.poller).env(WORKER_TOKEN, &self.worker),
            Role::Worker => command.env(WORKER_TOKEN, &self.worker),
            Role::Relay => command,
        };
    }

    /// Keeps them from a process: a build has no business with the farm's tokens.
    pub(crate) fn take(command: &mut Command) {
        command.env_remove(POLLER_TOKEN).env_remove(WORKER_TOKEN);
    }

    /// The poller's.
    pub(crate) fn poller(&self) -> &str {
        &self.poller
    }

    /// The worker's.
    pub(crate) fn worker(&self) -> &str {
        &self.worker
    }

    /// Whose token these headers carry.
    pub(crate) fn holder(&self, headers: &HeaderMap) -> Option<&'static str> {
        let given = headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
        [(&self.poller, POLLER), (&self.worker, WORKER)]
            .into_iter()
            .find_map(|(token, name)| equal(token, given).then_some(name))
    }
}

/// Takes as long whichever byte differs, and never holds for an empty token.
fn equal(token: &str, given: &str) -> bool {
    !token.is_empty()
        && token.len() == given.len()
        && token.bytes().zip(given.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

impl fmt::Debug for Tokens {
    /// Without the tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn bearer(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(text).unwrap())])
    }

    #[test]
    fn a_token_names_its_holder() {
        let tokens = Tokens::mint(&Env::system());
        assert_eq!(tokens.holder(&bearer(&format!("Bearer {}", tokens.poller()))), Some(POLLER));
        assert_eq!(tokens.holder(&bearer(&format!("Bearer {}", tokens.worker()))), Some(WORKER));
        for other in ["", "Bearer ", "Bearer x", tokens.worker(), "Basic x"] {
            assert_eq!(tokens.holder(&bearer(other)), None, "{other}");
        }
        assert_eq!(tokens.holder(&HeaderMap::new()), None);
        let none = Tokens { poller: String::new(), worker: String::new() };
        assert_eq!(none.holder(&bearer("Bearer ")), None, "no token is nobody's");
    }
}
