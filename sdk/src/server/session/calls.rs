//! One connection's open calls: from a frame to a request, from an answer to a frame.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::error::Error;
use crate::key::{CommandKey, CommandRef, Fingerprint, KeyLevel, Principal};
use crate::log::Subject;
use crate::machine::Wall;
use crate::server::core::Core;
use crate::server::execution::{Offer, Want};
use crate::server::executions::{Invocation, Request};
use crate::server::flight::submit;
use crate::server::keywatch::{Answer, Reply, Watched};
use crate::server::record::subject_of;
use crate::server::refused;
use crate::server::routes::Route;
use crate::server::scope::RpcScopeBuilder;
use crate::wire::{Call, CallId, CommandReport, Refused, ServerFrame};

pub(super) type Answers = mpsc::UnboundedReceiver<(CallId, u64, Answer)>;

pub(super) struct Calls {
    core: Arc<Core>,
    principal: Principal,
    open: BTreeMap<CallId, Open>,
    tokens: u64,
    /// Requests without an answer yet, those of forgotten calls included.
    unanswered: usize,
    to: mpsc::UnboundedSender<(CallId, u64, Answer)>,
}

struct Open {
    subject: Subject,
    reply: Reply,
    /// The newest report that was sent. Until there is one, the call may turn out to be refused, and
    /// must show nothing of another's command (K1).
    told: Option<CommandReport>,
    /// The newest report that came before the answer.
    early: Option<CommandReport>,
    _watched: Watched,
}

impl Calls {
    pub(super) fn new(core: Arc<Core>, principal: Principal) -> (Self, Answers) {
        let (to, answers) = mpsc::unbounded_channel();
        (Self { core, principal, open: BTreeMap::new(), tokens: 0, unanswered: 0, to }, answers)
    }

    /// A command arrives. The answer comes later, unless it is here.
    pub(super) fn call(&mut self, scope: RpcScopeBuilder, call: Call<'_>) -> Option<ServerFrame<'static>> {
        let id = call.call;
        self.register(id, |calls| {
            let Some(Route::Command(method, handler)) = calls.core.routes.get(&*call.method) else {
                return Err(refused::unknown_method("command", &call.method));
            };
            let received = CommandKey::of_level(&*call.key, call.level);
            received.validate().map_err(|e| invalid(&e))?;
            // K2: the key of a method with key arguments is computed from what was received. A key of another
            // level is ignored, so that attach and cancel stay addressable; only another semantic key is wrong.
            let key = match method.semantic_key(&call.params, call.attempt) {
                None => received,
                Some(computed) => {
                    let computed = computed.map_err(|e| invalid(&e))?;
                    if received.level() == KeyLevel::Semantic && received != computed {
                        return Err(refused::key_conflict());
                    }
                    computed
                }
            };
            let fingerprint = Fingerprint::of(method.name(), &call.params).map_err(|e| invalid(&e))?;
            let want = Want::Call(Offer {
                method: method.name().into(),
                fingerprint,
                level: key.level(),
                minted: Wall::from_millis(call.minted),
                id: call.id,
            });
            let invocation = Invocation {
                handler: Arc::clone(handler),
                params: call.params.into_owned(),
                scope: scope
                    .command(key.as_str(), key.level())
                    .correlation(call.id)
                    .attempt(call.attempt)
                    .metadata(call.metadata.into_owned()),
            };
            calls.submit(id, key.as_str(), want, Some(invocation))
        })
    }

    /// Somebody asks where a command stands.
    pub(super) fn attach(&mut self, id: CallId, key: &str) -> Option<ServerFrame<'static>> {
        self.register(id, |calls| calls.submit(id, key, Want::Attach, None))
    }

    /// A cancel arrives, perhaps before its command (W5), perhaps on the command's own call id.
    pub(super) fn cancel(&mut self, id: CallId, key: &str, minted: u64) -> Option<ServerFrame<'static>> {
        let want = Want::Cancel { minted: Wall::from_millis(minted) };
        match self.open.get(&id) {
            None => self.register(id, |calls| calls.submit(id, key, want, None)),
            Some(open) => {
                let command = CommandRef::new(self.principal.clone(), key);
                if subject_of(&command).ok().as_ref() != Some(&open.subject) {
                    return Some(fault(id));
                }
                if let Err(refused) = self.room() {
                    return Some(ServerFrame::Refused { call: id, refused });
                }
                self.unanswered += 1;
                submit(&self.core, open.subject.clone(), Request { want, reply: open.reply.clone(), invocation: None });
                None
            }
        }
    }

    /// Nobody wants further reports.
    pub(super) fn forget(&mut self, id: CallId) {
        self.open.remove(&id);
    }

    /// The frame for an answer, if it says anything new.
    pub(super) fn answered(&mut self, (id, token, answer): (CallId, u64, Answer)) -> Option<ServerFrame<'static>> {
        match &answer {
            Answer::Report(_) | Answer::Refused(_) => self.unanswered = self.unanswered.saturating_sub(1),
            Answer::News(_) => {}
        }
        let open = self.open.get_mut(&id).filter(|open| open.reply.token == token)?;
        let report = match answer {
            Answer::Refused(refused) => {
                self.open.remove(&id);
                return Some(ServerFrame::Refused { call: id, refused });
            }
            Answer::News(report) => match &open.told {
                None => {
                    open.early = Some(newest(open.early.take(), report));
                    return None;
                }
                Some(told) if told.at >= report.at => return None, // forward only (W3)
                Some(_) => report,
            },
            // Every request is answered, a repeated one too, with the newest that is known.
            Answer::Report(report) => newest(open.told.take(), newest(open.early.take(), report)),
        };
        if report.status.is_terminal() {
            self.open.remove(&id);
        } else {
            open.told = Some(report.clone());
        }
        Some(ServerFrame::Report { call: id, report })
    }

    fn register(
        &mut self,
        id: CallId,
        submit: impl FnOnce(&mut Self) -> Result<(), Refused>,
    ) -> Option<ServerFrame<'static>> {
        if self.open.contains_key(&id) {
            return Some(fault(id));
        }
        let submitted = self.room().and_then(|()| submit(self));
        submitted.err().map(|refused| ServerFrame::Refused { call: id, refused })
    }

    /// Whether one more request may be made: a client that forgets its calls at once has no more of them than another.
    fn room(&self) -> Result<(), Refused> {
        let limit = self.core.settings.calls;
        let used = self.open.len().max(self.unanswered);
        if used < limit { Ok(()) } else { Err(refused::over_limit("calls", limit)) }
    }

    /// Watches the key, then asks for it.
    fn submit(&mut self, id: CallId, key: &str, want: Want, invocation: Option<Invocation>) -> Result<(), Refused> {
        CommandKey::explicit(key).validate().map_err(|e| invalid(&e))?;
        let subject = subject_of(&CommandRef::new(self.principal.clone(), key)).map_err(|e| invalid(&e))?;
        self.tokens += 1;
        let reply = Reply { call: id, token: self.tokens, to: self.to.clone() };
        let watched = self.core.keys.watch(subject.clone(), reply.clone());
        let open = Open { subject: subject.clone(), reply: reply.clone(), told: None, early: None, _watched: watched };
        self.open.insert(id, open);
        self.unanswered += 1;
        submit(&self.core, subject, Request { want, reply, invocation });
        Ok(())
    }
}

fn newest(known: Option<CommandReport>, report: CommandReport) -> CommandReport {
    match known {
        Some(known) if known.at > report.at => known,
        Some(_) | None => report,
    }
}

fn invalid(e: &Error) -> Refused {
    refused::invalid(e.to_string())
}

fn fault(id: CallId) -> ServerFrame<'static> {
    ServerFrame::Fault { detail: format!("call: expected an unused id, or a cancel of its own key, got {id}").into() }
}
