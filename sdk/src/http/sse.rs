//! The event stream format (WHATWG HTML, 9.2): bytes in, events out. Pure.
