//! The way to a request that may be sent: its credential, and its place in the budget.

use std::sync::{Arc, Mutex, PoisonError};

use url::{Origin, Url};

use super::Requester;
use crate::credential::{Held, Unheld};
use crate::env::Env;
use crate::http::budgets::{Budget, Granted, Permit, Step};
use crate::http::told::Told;
use crate::machine::Monotonic;

/// A request that may be sent now. Dropping it gives the permission back.
pub(in crate::http) struct Allowed {
    pub(in crate::http) held: Held,
    granted: Granted,
    /// Before what time the heads of the answers on the way ask not to be asked again.
    asked: Mutex<Option<Monotonic>>,
}

impl Allowed {
    fn new(held: Held, granted: Granted) -> Arc<Self> {
        Arc::new(Self { held, granted, asked: Mutex::new(None) })
    }

    /// What permits it.
    pub(in crate::http) fn budget(&self) -> &Budget {
        self.granted.budget()
    }

    /// When the service may be asked again, as the heads say that have come: those of redirects, too, and of answers that
    /// come to nothing afterwards.
    pub(in crate::http) fn asked_until(&self) -> Option<Monotonic> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a head says.
    pub(super) fn heard(&self, env: &Env, told: &Told) {
        if let Some(wait) = told.retry_after.max(told.poll_interval) {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            *asked = asked.max(Some(env.instant() + wait));
        }
    }

    /// The permission of the first step.
    pub(in crate::http) fn granted(&self) -> &Granted {
        &self.granted
    }

    /// Tells the budget what only the body said.
    pub(in crate::http) fn told(&self, told: &Told) {
        self.granted.told(told);
    }
}

/// How a wish stands.
pub(in crate::http) enum Wish {
    /// The request may be sent.
    Allowed(Arc<Allowed>),
    /// Not before that time (R9).
    Held(Monotonic),
    /// There is no credential to send it with.
    Unheld(Unheld),
}

/// The wish to send one request. Dropping it takes it back.
pub(in crate::http) struct Wanted {
    requester: Requester,
    to: To,
    stage: Stage,
}

/// Whose budget the request takes.
enum To {
    /// Probably that one's: it was taken for the same origin before.
    Budget(Budget),
    Origin(Origin),
}

enum Stage {
    Credential,
    Permit { held: Held, permit: Permit },
    Over,
}

impl Wanted {
    /// Of one request to the origin of `url`, by the budget that was used `before` where that is for the same origin.
    pub(super) fn new(requester: Requester, url: &Url, before: Option<Budget>) -> Self {
        let to = match before {
            Some(before) if before.is_at(url) => To::Budget(before),
            Some(_) | None => To::Origin(url.origin()),
        };
        Self { requester, to, stage: Stage::Credential }
    }

    /// What has become of it; after an end, never anything. Cancel safe.
    pub(in crate::http) async fn next(&mut self) -> Wish {
        loop {
            match &mut self.stage {
                Stage::Credential => {
                    let held = match self.requester.keeper().held().await {
                        Ok(held) => held,
                        Err(unheld) => {
                            self.stage = Stage::Over;
                            return Wish::Unheld(unheld);
                        }
                    };
                    match self.budget(&held).want_now() {
                        Ok(granted) => {
                            self.stage = Stage::Over;
                            return Wish::Allowed(Allowed::new(held, granted));
                        }
                        Err(permit) => self.stage = Stage::Permit { held, permit },
                    }
                }
                Stage::Permit { permit, .. } => match permit.next().await {
                    Step::Held(until) => return Wish::Held(until),
                    Step::Granted(granted) => {
                        if let Stage::Permit { held, .. } = std::mem::replace(&mut self.stage, Stage::Over) {
                            return Wish::Allowed(Allowed::new(held, granted));
                        }
                    }
                },
                Stage::Over => return std::future::pending().await,
            }
        }
    }

    fn budget(&self, held: &Held) -> Budget {
        let budgets = &self.requester.0.agent.budgets;
        match &self.to {
            To::Budget(budget) if budget.is_for(held.credential.as_ref()) => budget.clone(),
            To::Budget(before) => budgets.of(before.origin(), held.credential.as_ref(), Some(before)),
            To::Origin(origin) => budgets.of(origin, held.credential.as_ref(), None),
        }
    }
}
