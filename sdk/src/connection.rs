//! The persistent connection: a pure supervisor, pure liveness, and the driver that does their I/O.
