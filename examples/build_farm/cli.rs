//! What the command line asks for.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use outlast::profile::duration;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Submits a real build to a build farm, whose only server is killed in mid-build, and ends with the build's own verdict.

Usage: build_poller [--json] [--fail]

It also watches a real service of yours by hand; build_poller --url --help says more of that:

       build_poller --url URL --done EXPR [--ok EXPR] [--timeout D] ...
       build_poller --url URL --profile PROFILE [--timeout D] ...

Options:
  --json   print one JSON object per line instead of the live view
  --fail   make the build's last self-check fail
  --help   print this

Ctrl-C cancels the build; a second one ends everything at once.

Exit codes:
    0  the build succeeded
    1  the build failed
    2  the command line was not understood
    3  there is no verdict: something that the farm needs is missing or broke
    6  the build was canceled
  130  ended by a second Ctrl-C
";

/// What the program is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Print [`HELP`].
    Help,
    /// Play the story and poll the build.
    Poll(Options),
    /// Be one of the farm's processes; never given by people.
    Serve(Role, PathBuf),
}

/// A process of the farm, started by the poller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The single instance that everything depends on.
    Server,
    /// The hop between the poller and the server.
    Relay,
    /// Runs the builds.
    Worker,
}

/// The story's figures. All but the first two are hidden: tests shorten the story with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// One JSON object per line.
    pub(crate) json: bool,
    /// The build's last self-check fails.
    pub(crate) fail: bool,
    /// How long the server is gone.
    pub(crate) outage: Duration,
    /// How many self-checks the build runs.
    pub(crate) checks: u32,
    /// How long each of them takes.
    pub(crate) pace: Duration,
    /// After how many lines of the build the server is killed.
    pub(crate) kill_after: u64,
}

impl Default for Options {
    /// About 16 s of self-checks, and an outage of 12 s in the middle of them: longer than the window
    /// of about ten seconds after which the incident's reconnect logic threw.
    fn default() -> Self {
        Self {
            json: false,
            fail: false,
            outage: Duration::from_secs(12),
            checks: 18,
            pace: Duration::from_millis(900),
            kill_after: 4,
        }
    }
}

/// Why a command line was not understood; names the flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

impl Role {
    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Relay => "relay",
            Self::Worker => "worker",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Server, Self::Relay, Self::Worker].into_iter().find(|role| role.name() == name)
    }
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Request, UsageError> {
    let mut args = args.into_iter();
    let mut options = Options::default();
    let mut role = None;
    let mut directory = None;
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy().into_owned();
        let (flag, inline) = match text.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (&*text, None),
        };
        let mut value = |expected: &str| match inline.clone() {
            Some(value) => Ok(value),
            None => args
                .next()
                .map(|value| value.to_string_lossy().into_owned())
                .ok_or_else(|| UsageError(format!("{flag}: expected {expected}, got nothing"))),
        };
        match flag {
            "--json" | "--fail" | "--help" | "-h" if inline.is_some() => {
                return Err(UsageError(format!("{flag}: takes no value")));
            }
            "--help" | "-h" => return Ok(Request::Help),
            "--json" => options.json = true,
            "--fail" => options.fail = true,
            "--outage" => options.outage = time(flag, &value(DURATION)?)?,
            "--pace" => options.pace = time(flag, &value(DURATION)?)?,
            "--checks" => options.checks = count(flag, &value(COUNT)?)?,
            "--kill-after" => options.kill_after = u64::from(count(flag, &value(COUNT)?)?),
            "--role" => {
                let name = value(ROLE)?;
                role =
                    Some(Role::of(&name).ok_or_else(|| UsageError(format!("{flag}: expected {ROLE}, got `{name}`")))?);
            }
            "--directory" => directory = Some(PathBuf::from(value("a directory")?)),
            _ if flag.starts_with('-') => return Err(UsageError(format!("{flag}: no such option"))),
            _ => return Err(UsageError(format!("{text}: expected an option, there are no other arguments"))),
        }
    }
    match (role, directory) {
        (None, None) => Ok(Request::Poll(options)),
        (Some(role), Some(directory)) => Ok(Request::Serve(role, directory)),
        (Some(_), None) => Err(UsageError("--role: expected --directory beside it".into())),
        (None, Some(_)) => Err(UsageError("--directory: expected --role beside it".into())),
    }
}

const DURATION: &str = "a duration such as 12s or 500ms";
const COUNT: &str = "a number from 1 to 1000";
const ROLE: &str = "server, relay or worker";

/// The longest duration of a story.
const LONGEST: Duration = Duration::from_secs(86_400);

fn time(flag: &str, text: &str) -> Result<Duration, UsageError> {
    let time = duration(flag, text).map_err(|e| UsageError(format!("{e}, got `{text}`")))?;
    if time > LONGEST {
        return Err(UsageError(format!("{flag}: expected at most 1d, got `{text}`")));
    }
    Ok(time)
}

fn count(flag: &str, text: &str) -> Result<u32, UsageError> {
    let parsed = text.parse().ok().filter(|n| (1..=1000).contains(n));
    parsed.ok_or_else(|| UsageError(format!("{flag}: expected {COUNT}, got `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Result<Request, String> {
        parse(args.iter().map(OsString::from)).map_err(|e| e.to_string())
    }

    #[test]
    fn no_arguments_play_the_whole_story() {
        assert_eq!(of(&[]), Ok(Request::Poll(Options::default())));
        let story = Options::default();
        assert!(story.outage > Duration::from_secs(10), "longer than the incident's window");
        let rest = story.pace * (story.checks - u32::try_from(story.kill_after).unwrap());
        assert!(rest >= story.outage, "the build outlives the outage");
    }

    #[test]
    fn flags_are_read_in_both_forms() {
        let Ok(Request::Poll(options)) = of(&["--json", "--fail", "--outage", "3s", "--pace=50ms", "--checks=5"])
        else {
            panic!("a poll")
        };
        assert!(options.json && options.fail);
        assert_eq!((options.outage, options.pace), (Duration::from_secs(3), Duration::from_millis(50)));
        assert_eq!(options.checks, 5);
        assert_eq!(of(&["--json", "--help"]), Ok(Request::Help));
        assert_eq!(of(&["--role=relay", "--directory", "/d"]), Ok(Request::Serve(Role::Relay, "/d".into())));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (args, named) in [
            (&["--jsn"][..], "--jsn: no such option"),
            (&["build"], "build: expected an option"),
            (&["--json=1"], "--json: takes no value"),
            (&["--outage"], "--outage: expected a duration such as 12s or 500ms, got nothing"),
            (
                &["--outage", "soon"],
                "--outage: expected a duration such as \"500ms\", \"90s\", \"10m\", \"2h\" or \"1d\", got `soon`",
            ),
            (&["--pace", "2d"], "--pace: expected at most 1d, got `2d`"),
            (&["--outage", "é"], "--outage: expected a duration"),
            (&["--checks", "0"], "--checks: expected a number from 1 to 1000, got `0`"),
            (&["--role", "king"], "--role: expected server, relay or worker, got `king`"),
            (&["--role", "server"], "--role: expected --directory"),
            (&["--directory", "/d"], "--directory: expected --role"),
        ] {
            let said = of(args).unwrap_err();
            assert!(said.starts_with(named), "{args:?}: {said}");
        }
    }
}
