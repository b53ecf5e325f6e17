//! Logs and event streams: each item once and in order, or one explicit gap (R6).
