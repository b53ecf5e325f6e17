//! A polled read, being set up.
