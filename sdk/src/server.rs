//! The server half: the promises kept on a durable log.
