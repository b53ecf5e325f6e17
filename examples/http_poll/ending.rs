//! How a watch ended, and its exit code. A transport fault is none of these.

/// The exit code of a command line that was not understood.
pub(crate) const USAGE: u8 = 2;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The work ended well.
    Succeeded,
    /// The work ended badly: the verdict of the service, or of `--ok`.
    Failed,
    /// The time is over, or the give-up limit, and the work goes on (R9).
    StillPending,
    /// There is no such work, or no more (R3).
    Gone,
    /// The service refused the credential (R3).
    Denied,
    /// The work was canceled.
    Canceled,
    /// The work waits for a person, and `--on-parked=exit` was given.
    Parked,
    /// The time is over, and there were answers, but none that could be read.
    Unreadable,
    /// Ended by a signal: 128 and its number.
    Signaled(u8),
}

impl Ending {
    /// The program's exit code.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::StillPending => 3,
            Self::Gone => 4,
            Self::Denied => 5,
            Self::Canceled => 6,
            Self::Parked => 8,
            Self::Unreadable => 9,
            Self::Signaled(number) => 128 + number,
        }
    }

    /// In words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::StillPending => "still pending",
            Self::Gone => "gone",
            Self::Denied => "denied",
            Self::Canceled => "canceled",
            Self::Parked => "parked",
            Self::Unreadable => "unreadable",
            Self::Signaled(1) => "hung up",
            Self::Signaled(15) => "terminated",
            Self::Signaled(_) => "interrupted",
        }
    }
}
