//! The client: one connection, many reads and commands.
