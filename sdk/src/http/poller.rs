//! Performs what the machine of a polled read says.
