//! A service behind a [`Fetch`], which answers by a closure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::unfold;

use crate::env::Env;
use crate::error::Phase;
use crate::http::answer::{Asked as Is, Judgement, judge};
use crate::http::exchange::{Answer, Failure, FailureKind};
use crate::http::feed::reader::Ask;
use crate::http::feed::{FeedAsk, Fetch, FetchError, Fetched};
use crate::http::poll::{Answer as Answered, Generation};
use crate::http::told::Told;
use crate::machine::Monotonic;
use crate::testing::env;

/// A request that was sent.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) at: Monotonic,
    pub(super) n: usize,
    pub(super) ask: Ask,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.ask.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn query(&self, name: &str) -> Option<String> {
        self.ask.url.query_pairs().find(|(n, _)| n == name).map(|(_, value)| value.into_owned())
    }

    /// The first byte of `Range`.
    pub(super) fn first(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Piece(Bytes),
    Wait(Duration),
    Hang,
    Cut,
}

/// What the service does with a request.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    before: Vec<Step>,
    phases: Vec<Phase>,
    head: Result<(StatusCode, HeaderMap, Told), FetchError>,
    body: Vec<Step>,
}

impl Reply {
    pub(super) fn status(status: u16) -> Self {
        let head = (StatusCode::from_u16(status).unwrap(), HeaderMap::new(), Told::default());
        Self { before: Vec::new(), phases: vec![Phase::FirstByte], head: Ok(head), body: Vec::new() }
    }

    pub(super) fn error(error: FetchError) -> Self {
        Self { head: Err(error), ..Self::status(200) }
    }

    pub(super) fn bytes(body: impl AsRef<[u8]>) -> Self {
        Self::status(200).piece(body)
    }

    pub(super) fn json(value: serde_json::Value) -> Self {
        Self::bytes(value.to_string()).header("content-type", "application/json")
    }

    pub(super) fn events(body: impl AsRef<[u8]>) -> Self {
        Self::bytes(body).header("content-type", "text/event-stream")
    }

    pub(super) fn header(mut self, name: &str, value: impl ToString) -> Self {
        if let Ok((_, headers, _)) = &mut self.head {
            let name: HeaderName = name.parse().unwrap();
            headers.insert(name, HeaderValue::from_str(&value.to_string()).unwrap());
        }
        self
    }

    pub(super) fn told(mut self, told: Told) -> Self {
        if let Ok((_, _, is)) = &mut self.head {
            *is = told;
        }
        self
    }

    pub(super) fn piece(mut self, piece: impl AsRef<[u8]>) -> Self {
        self.body.push(Step::Piece(Bytes::copy_from_slice(piece.as_ref())));
        self
    }

    pub(super) fn waits(mut self, time: Duration) -> Self {
        self.body.push(Step::Wait(time));
        self
    }

    /// Says no more, and does not end.
    pub(super) fn hangs(mut self) -> Self {
        self.body.push(Step::Hang);
        self
    }

    /// The head comes so late.
    pub(super) fn after(mut self, time: Duration) -> Self {
        self.before.push(Step::Wait(time));
        self
    }

    /// The exchange tells of these phases only, and nothing after the last.
    pub(super) fn stuck_in(mut self, phases: &[Phase]) -> Self {
        self.phases = phases.to_vec();
        self.before.push(Step::Hang);
        self
    }

    /// Only the first `n` bytes of the body, then the connection ends, if there were more.
    pub(super) fn cut(mut self, n: usize) -> Self {
        let (mut left, mut body) = (n, Vec::new());
        for step in self.body {
            match step {
                Step::Piece(piece) if piece.len() > left => {
                    body.push(Step::Piece(piece.slice(..left)));
                    body.push(Step::Cut);
                    break;
                }
                Step::Piece(piece) => {
                    left -= piece.len();
                    body.push(Step::Piece(piece));
                }
                other @ (Step::Wait(_) | Step::Hang | Step::Cut) => body.push(other),
            }
        }
        self.body = body;
        self
    }

    /// The body in pieces of `n` bytes.
    pub(super) fn in_pieces(mut self, n: usize) -> Self {
        let mut body = Vec::new();
        for step in self.body {
            match step {
                Step::Piece(piece) => body.extend(piece.chunks(n).map(|part| Step::Piece(piece.slice_ref(part)))),
                other @ (Step::Wait(_) | Step::Hang | Step::Cut) => body.push(other),
            }
        }
        self.body = body;
        self
    }
}

type Service = dyn FnMut(&Asked) -> Reply + Send;

#[derive(Clone)]
pub(super) struct Fake {
    env: Env,
    service: Arc<Mutex<Service>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
pub(super) struct Open {
    now: usize,
    most: usize,
    pieces: usize,
}

/// One request that is under way.
struct Guard(Arc<Mutex<Open>>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.lock().unwrap().now -= 1;
    }
}

impl Fake {
    pub(super) fn new(service: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        let asked = Arc::default();
        Self { env: env(1), service: Arc::new(Mutex::new(service)), asked, open: Arc::default() }
    }

    /// One after the other; the last one repeats.
    pub(super) fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        Self::new(move |asked| replies[asked.n.min(replies.len() - 1)].clone())
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The most requests that were under way at once.
    pub(super) fn most_open(&self) -> usize {
        self.open.lock().unwrap().most
    }

    /// How many pieces of bodies were read.
    pub(super) fn pieces(&self) -> usize {
        self.open.lock().unwrap().pieces
    }
}

async fn step(env: &Env, step: &Step) {
    match step {
        Step::Wait(time) => env.sleep_until(Some(env.instant() + *time)).await,
        Step::Hang => std::future::pending().await,
        Step::Piece(_) | Step::Cut => {}
    }
}

impl Fetch for Fake {
    fn fetch(&self, FeedAsk { ask, progress }: FeedAsk) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        let asked = {
            let mut all = self.asked.lock().unwrap();
            let n = all.len();
            all.push(Asked { at: self.env.instant(), n, ask });
            all[all.len() - 1].clone()
        };
        let reply = (self.service.lock().unwrap())(&asked);
        let (env, open) = (self.env.clone(), Arc::clone(&self.open));
        {
            let mut open = open.lock().unwrap();
            open.now += 1;
            open.most = open.most.max(open.now);
        }
        let guard = Guard(Arc::clone(&open));
        async move {
            for phase in &reply.phases {
                progress.begins(*phase);
                tokio::task::yield_now().await;
            }
            for before in &reply.before {
                step(&env, before).await;
            }
            let (status, headers, told) = reply.head?;
            if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
                let is = Is { ranged: true, ..Is::new(asked.ask.expected, Generation::default()) };
                if let Judgement::Given(Answered::Unserved(cause)) = judge(status, &headers, &told, is) {
                    return Err(FetchError::new(cause));
                }
            }
            let body = unfold((reply.body.into_iter(), env, guard), |(mut steps, env, guard)| async move {
                loop {
                    let next = steps.next()?;
                    step(&env, &next).await;
                    let item = match next {
                        Step::Piece(piece) => {
                            guard.0.lock().unwrap().pieces += 1;
                            Ok(piece)
                        }
                        Step::Cut => Err(Failure::new(FailureKind::Incomplete, "cut")),
                        Step::Wait(_) | Step::Hang => continue,
                    };
                    return Some((item, (steps, env, guard)));
                }
            });
            Ok(Fetched { answer: Answer::new(status, Version::HTTP_11, headers, body), told })
        }
        .boxed()
    }
}
