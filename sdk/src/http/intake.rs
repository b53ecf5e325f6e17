//! Takes bodies from an exchange: whole, their beginning, or what is left of them.

use std::time::Duration;

use bytes::Bytes;

use super::answer::{Body, MAX_BODY};
use super::exchange::{Answer, Progress};
use crate::env::Env;
use crate::error::{Cause, Phase};

/// How much of an error's body is read.
const ERROR_BODY: usize = 16 << 10;

/// For how long it is waited for.
pub(super) const ERROR_PATIENCE: Duration = Duration::from_secs(5);

/// How much of a body that nobody wants is read to keep its connection.
const DRAINED: usize = 64 << 10;

/// For how long it is waited for.
pub(super) const COURTESY: Duration = Duration::from_millis(250);

/// The whole body, decoded.
///
/// # Errors
/// When it cannot be had to its end.
pub(super) async fn whole(answer: &mut Answer, progress: &Progress) -> Result<Bytes, Cause> {
    let mut body = Body::of(&answer.headers, MAX_BODY)?;
    progress.begins(Phase::Idle);
    while let Some(chunk) = answer.chunk().await.map_err(|failure| failure.cause())? {
        progress.begins(Phase::Idle);
        body.push(chunk)?;
    }
    body.finish()
}

/// The beginning of a body, as far as it comes while the patience lasts.
pub(super) async fn beginning(answer: &mut Answer, env: &Env, progress: &Progress, patience: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    progress.begins(Phase::Idle);
    let read = async {
        while body.len() < ERROR_BODY
            && let Ok(Some(chunk)) = answer.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    within(env, patience, read).await;
    body
}

/// Reads the small body of an answer that its head has decided, so that its connection can be used again. A body that does
/// not come costs the connection, and not the answer.
pub(super) async fn drain(answer: &mut Answer, env: &Env, progress: &Progress, patience: Duration) {
    progress.begins(Phase::Idle);
    let rest = async {
        let mut read = 0;
        while read < DRAINED
            && let Ok(Some(chunk)) = answer.chunk().await
        {
            read += chunk.len();
        }
    };
    within(env, COURTESY.min(patience), rest).await;
}

async fn within(env: &Env, patience: Duration, read: impl Future<Output = ()>) {
    let by = env.instant() + patience;
    tokio::select! {
        biased;
        () = read => {}
        () = env.sleep_until(Some(by)) => {}
    }
}
