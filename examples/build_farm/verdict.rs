//! How it ended: what is printed last, and the exit code.

use serde::Serialize;

/// The exit code when there is no verdict.
pub(crate) const NO_VERDICT: u8 = 3;

/// The exit code of a command line that was not understood.
pub(crate) const USAGE: u8 = 2;

/// The exit code after a second Ctrl-C: 128 + SIGINT, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// What became of the build, by its own handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
    /// It was stopped, or never started.
    Canceled,
}

impl Verdict {
    /// The program's exit code.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::Canceled => 6,
        }
    }
}

/// The story in figures: the last line of `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Summary {
    /// The build's own verdict.
    pub(crate) verdict: Verdict,
    /// How often the build was started, by the traces that it left on disk.
    pub(crate) executions: usize,
    /// How many reads ended without an authority (R3).
    pub(crate) read_errors: u64,
    /// How often the server came back.
    pub(crate) server_restarts: u64,
    /// Whether the read of the build was stale at some time.
    pub(crate) went_stale: bool,
    /// How long after the server listened again that read was fresh.
    pub(crate) fresh_again_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_one_object_in_this_order() {
        let summary = Summary {
            verdict: Verdict::Succeeded,
            executions: 1,
            read_errors: 0,
            server_restarts: 1,
            went_stale: true,
            fresh_again_ms: Some(147),
        };
        assert_eq!(
            serde_json::to_string(&summary).unwrap(),
            r#"{"verdict":"succeeded","executions":1,"read_errors":0,"server_restarts":1,"went_stale":true,"fresh_again_ms":147}"#
        );
    }
}
