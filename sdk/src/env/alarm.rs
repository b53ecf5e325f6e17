//! One reusable timer for a driver's loop.
#![expect(clippy::disallowed_methods, reason = "the one timer that drivers wait with")]

use std::pin::Pin;

use tokio::time::Sleep;

use super::Env;
use crate::machine::Monotonic;

/// Wakes a driver at its machines' deadline. A deadline that moves back costs nothing until the old one has passed.
#[derive(Debug)]
pub(crate) struct Alarm {
    env: Env,
    armed: Option<(Monotonic, Pin<Box<Sleep>>)>,
}

impl Alarm {
    pub(crate) fn new(env: Env) -> Self {
        Self { env, armed: None }
    }

    /// Completes once `deadline` has passed; never, for `None`.
    ///
    /// Cancel safe: the timer stays armed for the next call.
    pub(crate) async fn wait(&mut self, deadline: Option<Monotonic>) {
        let Some(deadline) = deadline else {
            return std::future::pending().await;
        };
        loop {
            let env = &self.env;
            let (at, sleep) = self
                .armed
                .get_or_insert_with(|| (deadline, Box::pin(tokio::time::sleep_until(env.tokio_instant(deadline)))));
            if deadline < *at || (sleep.is_elapsed() && *at < deadline) {
                *at = deadline;
                sleep.as_mut().reset(env.tokio_instant(deadline));
            }
            sleep.as_mut().await;
            if *at >= deadline {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_moves_both_ways() {
        let env = Env::system();
        let mut alarm = Alarm::new(env.clone());
        let at = |ms| Some(Monotonic::new(Duration::from_millis(ms)));
        let passed = |env: &Env| env.instant().since_start().as_millis();
        tokio::select! {
            biased; // the alarm is polled first so that it is armed
            () = alarm.wait(at(500)) => panic!("too early"),
            () = std::future::ready(()) => {}
        }
        alarm.wait(at(100)).await;
        assert!((100..=101).contains(&passed(&env)));
        alarm.wait(at(300)).await;
        assert!((300..=302).contains(&passed(&env)));
        alarm.wait(at(200)).await;
        assert!((300..=302).contains(&passed(&env)), "what has passed completes at once");
    }
}
