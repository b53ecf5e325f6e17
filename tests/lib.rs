//! What crosses modules.
