//! Streams that say when something changes: server-sent events and WebSockets of foreign services.
