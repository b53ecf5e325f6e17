//! The decisions of a polled read: one pure machine for each.
//!
//! At any time it is in one of five states, and in each but the last something is armed or wanted (R7):
//!
//! | state | armed | left by |
//! |---|---|---|
//! | new | its first tick, at once | `Start`: wanting |
//! | idle | the next look | that look is due, or something urges it: wanting |
//! | wanting: the budget was asked for one request | the budget's timer, the credential's | `Permitted`: sending; `Failed`: idle |
//! | sending: one request under way | the bound of its phase | an answer, a failure, a stall: idle or wanting |
//! | ended | nothing | nothing |
//!
//! What an answer leads to:
//!
//! | answer | shown | next look |
//! |---|---|---|
//! | a value that is not older | fresh (R5) | after the interval |
//! | unchanged, to a request that named the value; the same value | fresh | after the interval; at once if the service held the request |
//! | unchanged otherwise | stale, undecodable | whole, after a backoff step (FC-21) |
//! | nothing, after the service held the request | fresh, if a value is held | at once |
//! | nothing, sooner | fresh, if the request named the value | whole, after a backoff step (FC-07, FC-19) |
//! | a value of a lower attempt, or of a lower version | stale, behind (R4) | after a backoff step |
//! | nothing but values of a lower version for the grace, after the service may have restarted, that reopen nothing | fresh: it counts anew (FC-21) | after the interval |
//! | a value that reopens a terminal of the same attempt | stale, behind (R10, FC-88) | after a backoff step |
//! | the same, where the service reopens or counts no attempts | fresh, once a second answer a second later says so again | a second later |
//! | anything that a pushed value overtook | nothing | after a backoff step (FC-88) |
//! | absent, a value was seen | stale, not yet visible | within a second; once it was absent for the grace it ends as gone |
//! | absent, none was seen | loading, not yet visible | within a second; once the grace is used up it ends as gone (FC-14) |
//! | gone | ended, gone (R3) | |
//! | refused | stale, unauthorized | in one to two seconds; `Denied` ends it (R3) |
//! | no head of an answer, or no credential to ask with | stale (R1) | after max(`Retry-After`, backoff) (R8, FC-55) |
//! | unserved, or a body that is cut, stalls or is none | stale (R1) | after max(`Retry-After`, backoff step) (R8, FC-55) |
//! | failed and worth another connection, once in a look | nothing | at once on a fresh one (FC-90), unless a head asked to wait |
//!
//! A stream of events beside it:
//!
//! | event | does |
//! |---|---|
//! | attached | looks at once; the interval is then the slow one; what is pushed counts once a look that started later has confirmed (R5, FC-17) |
//! | hint | one look, however many hints (at most one for each shortest interval) |
//! | pushed, counting and by its marks later | fresh at once; an answer under way counts no more (FC-88) |
//! | pushed otherwise | as a hint |
//! | detached | looks again soon, and at the whole value if its connection ended: the service may have restarted (FC-21); fresh stays fresh, and the interval is again that of the pace |
//! | woke | looks at once on a fresh connection, one under way is abandoned; a `Retry-After` is kept (R7) |
//!
//! A backoff step is the delay that the outage so far calls for, and no less than a quarter of the time for which the service
//! has answered and no answer was of use, less up to a quarter of that, until it is the interval. So a service that fails is
//! asked soon at first, and in the long run no more often than one that is well (R8). One that was away is asked soon again:
//! no answer, not even the head of one, starts that time anew.
//!
//! What a head asks for with `Retry-After` or `X-Poll-Interval` (`Told`, `Answered`) is a floor for every look (R8).
//!
//! # For a driver
//!
//! - `Start` once; then every event as it happens, and `Tick` at the machine's deadline.
//! - After `Want` the credential and the budget are asked for. That ends with one `Permitted`, with one `Failed` or `Denied`
//!   if there is no credential to be had, or with `Withdraw`. `Held` comes before if there is a time to wait for.
//! - After `Send` the first phase is taken to be [`Phase::FirstByte`](crate::error::Phase::FirstByte); `Began` says when another
//!   begins, `Began(Idle)` at the head and at each piece of the body, `Told` what each head on the way asks for. It ends with one `Answered` or `Failed`, or with
//!   `Abort`, after which neither may come.
//! - With `validate` the request names the validator that came with the value *that is shown*. Without a validator at hand
//!   the request names none, and a 304 to it is [`Answer::Unserved`]. Without `validate` no validator is sent, so that the
//!   service answers at once and with the whole value, also where `validate` would make a long poll.

mod machine;
mod settings;
mod vocabulary;

pub use machine::Machine;
pub use settings::{Bounds, Pace, Settings};
pub use vocabulary::{Action, Answer, Event, Generation, Marks};
