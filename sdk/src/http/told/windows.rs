//! The windows that a service counts requests in, as the headers in use state them.

use std::time::Duration;

use ::http::HeaderMap;

use super::Window;
use super::when::{self, Clock};
use crate::http::fields::{self, Member};

/// No more windows are read from one answer.
const MOST: usize = 16;
/// The longest name kept of a window, in characters.
const LONGEST_NAME: usize = 64;
/// What a window is called whose service gives it no name.
const UNNAMED: &str = "default";
/// When a window starts anew that does not say so.
const UNSTATED: Duration = Duration::from_secs(60);

/// All windows, each name once: the IETF draft's list first, then `RateLimit-*`, then `X-RateLimit-*`.
pub(super) fn of(headers: &HeaderMap, clock: Clock<'_>) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    // Most services send none of these.
    if !headers.keys().any(|name| is_of_rate(name.as_str())) {
        return windows;
    }
    let policies = policies(headers);
    for window in listed(headers, &policies).into_iter().chain(counted(headers, &policies, clock)) {
        if windows.len() < MOST && windows.iter().all(|known| known.name != window.name) {
            windows.push(window);
        }
    }
    windows
}

/// Whether it is one of the headers that are read here.
pub(super) fn is_of_rate(name: &str) -> bool {
    let bare = name.strip_prefix("x-").unwrap_or(name);
    bare.starts_with("ratelimit") || bare.starts_with("rate-limit")
}

/// What `RateLimit-Policy` says of a window.
struct Policy {
    name: String,
    quota: Option<u64>,
    window: Option<Duration>,
}

/// `"name";q=100;w=60`, and `100;w=60` of the drafts before.
fn policies(headers: &HeaderMap) -> Vec<Policy> {
    fields::members(headers, "ratelimit-policy")
        .take(MOST)
        .map(|member| Policy {
            name: name(member.head),
            quota: count_of(&member, "q").or_else(|| when::count(member.head)),
            window: seconds_of(&member, "w"),
        })
        .collect()
}

/// The field `RateLimit` of draft-ietf-httpapi-ratelimit-headers: `"name";r=50;t=30` of the later ones, and
/// `limit=100, remaining=50, reset=30` of the earlier.
fn listed(headers: &HeaderMap, policies: &[Policy]) -> Vec<Window> {
    let members: Vec<_> = fields::members(headers, "ratelimit").take(MOST).collect();
    let keyed = |key: &str| {
        members.iter().find_map(|member| {
            let (name, value) = member.head.split_once('=')?;
            name.trim().eq_ignore_ascii_case(key).then_some(value)
        })
    };
    if let Some(remaining) = keyed("remaining").and_then(when::count) {
        let limit = keyed("limit").and_then(when::count);
        let policy = policy_of(policies, UNNAMED, limit);
        let reset = keyed("reset").and_then(when::seconds).or(policy.and_then(|policy| policy.window));
        return vec![Window::new(UNNAMED, limit, remaining, reset.unwrap_or(UNSTATED))];
    }
    members
        .iter()
        .filter_map(|member| {
            let name = name(member.head);
            let policy = policies.iter().find(|policy| policy.name == name);
            let reset = seconds_of(member, "t").or(policy.and_then(|policy| policy.window)).unwrap_or(UNSTATED);
            let limit = policy.and_then(|policy| policy.quota);
            Some(Window::new(name, limit, count_of(member, "r")?, reset))
        })
        .collect()
}

/// The three headers, in all the spellings of their names: `RateLimit-Remaining`, `X-RateLimit-Remaining`,
/// `X-Rate-Limit-Remaining`, `RateLimit-User-Remaining`.
fn counted(headers: &HeaderMap, policies: &[Policy], clock: Clock<'_>) -> Vec<Window> {
    let mut families: Vec<_> = headers.keys().filter_map(|name| Family::of(name.as_str())).collect();
    // The order of a header map says nothing; the names without `x-` come first.
    families.sort_unstable();
    families.iter().take(MOST).flat_map(|family| family.windows(headers, policies, clock)).collect()
}

/// The headers that belong to one window, or to several whose values stand side by side.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Family<'a> {
    /// What the names begin with, such as `x-ratelimit`.
    prefix: &'a str,
    /// What stands between that and `-remaining`, such as `user`.
    infix: &'a str,
}

impl<'a> Family<'a> {
    fn of(name: &'a str) -> Option<Self> {
        let stem = name.strip_suffix("-remaining")?;
        let bare = stem.strip_prefix("x-").unwrap_or(stem);
        let rest = bare.strip_prefix("ratelimit").or_else(|| bare.strip_prefix("rate-limit"))?;
        let infix = if rest.is_empty() { rest } else { rest.strip_prefix('-')? };
        Some(Self { prefix: stem, infix })
    }

    fn windows(&self, headers: &HeaderMap, policies: &[Policy], clock: Clock<'_>) -> Vec<Window> {
        let members = |of: &str| fields::members(headers, format!("{}-{of}", self.prefix)).collect::<Vec<_>>();
        let (limits, remaining) = (members("limit"), members("remaining"));
        let resets = self.resets(headers, clock);
        let several = remaining.len();
        let first = self.name(headers);
        let mut windows = Vec::new();
        for (at, member) in remaining.iter().take(MOST).enumerate() {
            let Some(left) = when::count(member.head) else { continue };
            let limit_member = pick(&limits, at, several);
            let limit = limit_member.and_then(|limit| when::count(limit.head));
            // Some state the length of the window beside the number, `100;w=21600`, and no reset.
            let length = seconds_of(member, "w").or_else(|| limit_member.and_then(|limit| seconds_of(limit, "w")));
            let reset = pick(&resets, at, several).copied().flatten().or(length);
            let reset = reset.or_else(|| policy_of(policies, &first, limit).and_then(|policy| policy.window));
            let name = if at == 0 { first.clone() } else { format!("{first}-{}", at + 1) };
            windows.push(Window::new(name, limit, left, reset.unwrap_or(UNSTATED)));
        }
        windows
    }

    /// When each of the windows starts anew. Seconds from now, where there are some, need no clock.
    fn resets(&self, headers: &HeaderMap, clock: Clock<'_>) -> Vec<Option<Duration>> {
        let of = |name: &str| {
            let name = format!("{}-{name}", self.prefix);
            let line = |line| match when::date(line) {
                // A date has a comma inside.
                Some(date) => vec![Some(clock.until(date))],
                None => fields::split(line, b',').into_iter().map(|text| when::reset(text, clock)).collect(),
            };
            fields::lines(headers, name).flat_map(line).collect::<Vec<_>>()
        };
        let after = of("reset-after");
        if after.is_empty() { of("reset") } else { after }
    }

    fn name(&self, headers: &HeaderMap) -> String {
        let stated = ["resource", "name", "scope"]
            .iter()
            .find_map(|of| fields::lines(headers, format!("{}-{of}", self.prefix)).map(name).find(|n| !n.is_empty()));
        stated.unwrap_or_else(|| if self.infix.is_empty() { UNNAMED.to_owned() } else { name(self.infix) })
    }
}

/// The value that belongs to number `at` of `several`; a single one belongs to all, and more than are needed begin with
/// the one that counts (`RateLimit-Limit: 10, 10;w=1, 50;w=60`).
fn pick<T>(values: &[T], at: usize, several: usize) -> Option<&T> {
    if values.len() == several { values.get(at) } else { values.first() }
}

/// The policy of that name, else the one of that quota.
fn policy_of<'a>(policies: &'a [Policy], name: &str, quota: Option<u64>) -> Option<&'a Policy> {
    let named = policies.iter().find(|policy| policy.name == name);
    named.or_else(|| policies.iter().find(|policy| quota.is_some() && policy.quota == quota))
}

fn name(text: &str) -> String {
    fields::shown(&fields::unquoted(text), LONGEST_NAME)
}

fn count_of(member: &Member<'_>, parameter: &str) -> Option<u64> {
    member.parameter(parameter).as_deref().and_then(when::count)
}

fn seconds_of(member: &Member<'_>, parameter: &str) -> Option<Duration> {
    member.parameter(parameter).as_deref().and_then(when::seconds)
}
