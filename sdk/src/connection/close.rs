//! What a close code means for the connection.

/// What follows from the close code with which a peer ended a link.
///
/// No code ends the connection: only the caller does, and only a credential refused twice denies it (R3, FC-50).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a supervisor decides on each")]
pub enum CloseMeaning {
    /// Come back, with backoff.
    Recover,
    /// Come back, but not before the time that the service states.
    RecoverLater,
    /// The credential was refused: ask for another, then come back (R3).
    Refused,
}

impl CloseMeaning {
    /// The meaning of a close code (RFC 6455, 7.4, and the IANA registry "WebSocket Close Code Number"). `None` is an end
    /// without a close frame.
    pub const fn of(code: Option<u16>) -> Self {
        match code {
            // 1013: try again later.
            Some(1013) => Self::RecoverLater,
            // 1008: policy violation. 3000 and 3003: unauthorized, forbidden. 4401 and 4403: the HTTP statuses, in the
            // range for private use.
            Some(1008 | 3000 | 3003 | 4401 | 4403) => Self::Refused,
            // 1000 and 1001 from the server are a restart as seen from here, not a wanted end (FC-50).
            Some(_) | None => Self::Recover,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FC-50: the table.
    #[test]
    fn fc50_close_codes() {
        let recover = [1000, 1001, 1002, 1003, 1005, 1006, 1007, 1009, 1010, 1011, 1012, 1014, 1015, 3008, 4000, 4999];
        for code in recover {
            assert_eq!(CloseMeaning::of(Some(code)), CloseMeaning::Recover, "{code}");
        }
        assert_eq!(CloseMeaning::of(None), CloseMeaning::Recover);
        assert_eq!(CloseMeaning::of(Some(1013)), CloseMeaning::RecoverLater);
        for code in [1008, 3000, 3003, 4401, 4403] {
            assert_eq!(CloseMeaning::of(Some(code)), CloseMeaning::Refused, "{code}");
        }
    }
}
