//! Every backend keeps the laws, alone and behind what wraps it.

mod memory {
    use crate::log::MemoryLog;

    crate::log_conformance!(paused: {
        let log = MemoryLog::default();
        move || std::future::ready(log.clone())
    });
}

mod any {
    use crate::log::{AnyLog, MemoryLog};

    crate::log_conformance!(paused: {
        let log = AnyLog::new(MemoryLog::default());
        move || std::future::ready(log.clone())
    });
}

/// A log that fails in every third append keeps the laws for whoever clears up what is ambiguous.
mod faulty {
    use std::time::Duration;

    use crate::env::{Env, SystemClock};
    use crate::log::{Faulty, MemoryLog, Odds};

    crate::log_conformance!(paused: {
        let env = Env::new(SystemClock::default(), 7);
        let delay = Duration::from_millis(1);
        let odds = Odds { before: 0.1, after: 0.1, lost: 0.1, read: 0.1, delay };
        let log = Faulty::new(MemoryLog::new(&env), &env).with_odds(odds);
        move || std::future::ready(log.clone())
    });
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use crate::log::SqliteLog;

    crate::log_conformance!({
        let directory = tempfile::tempdir().expect("a temporary directory");
        move || {
            let path = directory.path().join("log");
            async move { SqliteLog::open(path).await.expect("a log") }
        }
    });

    /// With simulated time, as the simulations of this library use it: nothing waits for a thread outside tokio's sight.
    mod paused {
        use crate::log::{AnyLog, SqliteLog};

        crate::log_conformance!(paused: {
            let directory = tempfile::tempdir().expect("a temporary directory");
            move || {
                let path = directory.path().join("log");
                async move { AnyLog::new(SqliteLog::open(path).await.expect("a log")) }
            }
        });
    }
}
