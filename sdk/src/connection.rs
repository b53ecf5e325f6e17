//! The persistent connection: a pure supervisor, pure liveness, and the driver that does their I/O.

mod discovery;

pub use discovery::{Credential, Credentials, Discover};
