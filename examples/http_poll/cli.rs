//! What the command line asks for.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use super::predicate::Predicate;
use super::seen::Conditions;

/// What `--help` prints about watching a service.
pub(crate) const HELP: &str = "\
Watches a build on any HTTP service, and ends with the build's own verdict.

Usage: build_poller --url URL --done EXPR [--ok EXPR] [options]
       build_poller --url URL --profile PROFILE [options]

What is watched:
  --url URL            the JSON of the build, or with a profile also its page in the browser
  --done EXPR          a jq expression: whether the build is over
  --ok EXPR            a jq expression: whether it ended well (default: every end is a good one)
  --profile PROFILE    buildbot, github-actions, gitlab, jenkins, or a file

How:
  --timeout D          stop waiting after that time, such as 90s, 10m or 2h (default: never)
  --give-up D          stop waiting once the service cannot be reached for that long (default: never)
  --interval D         look this often (default: from 1s soon after a change to 30s)
  --on-parked WHAT     wait (default) or exit when the build waits for a person
  --token-env NAME     the variable that holds the token
  --token-file FILE    the file that holds the token; read anew when it is refused
  --token-cmd COMMAND  a shell command that prints the token; run anew when it is refused
  --token-header NAME  the header that carries the token (default: Authorization: Bearer)
  --user NAME          send the token as that user's password (Authorization: Basic)
  --json               print one JSON object per line
  --help               print this

Neither null nor an error nor anything but true or false is an answer to EXPR: it never ends the wait.

Exit codes:
    0  the build succeeded
    1  the build failed
    2  the command line was not understood
    3  still pending: the time is over, and the build goes on
    4  gone: there is no such build, or no more
    5  denied: the service refused the credential
    6  the build was canceled
    8  parked: the build waits for a person (--on-parked exit)
    9  the time is over, and no answer could be read
  130  interrupted (143: terminated)
";

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Request {
    /// Print [`HELP`].
    Help,
    /// Watch.
    Watch(Box<Options>),
}

/// What is watched, and how.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) url: String,
    pub(crate) what: What,
    pub(crate) timeout: Option<Duration>,
    pub(crate) give_up: Option<Duration>,
    pub(crate) interval: Option<Duration>,
    pub(crate) exit_when_parked: bool,
    pub(crate) token: Option<Token>,
    pub(crate) json: bool,
}

/// What tells the verdict.
pub(crate) enum What {
    /// Two expressions.
    Conditions(Box<Conditions>),
    /// The profile of that name or in that file.
    Profile(String),
}

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conditions(_) => f.write_str("Conditions(..)"),
            Self::Profile(name) => f.debug_tuple("Profile").field(name).finish(),
        }
    }
}

/// Where the token is, and how it is sent. The token itself is never an argument.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) source: Source,
    pub(crate) form: Form,
}

/// Where the token is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Variable(String),
    File(String),
    Command(String),
}

/// How the token is sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Bearer,
    Header(String),
    Basic(String),
}

/// Why a command line was not understood; names the flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrong(flag: &str, expected: &str) -> UsageError {
    UsageError(format!("{flag}: {expected}"))
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Request, UsageError> {
    let mut given = Given::default();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let text = arg.into_string().map_err(|_| UsageError("the arguments: expected UTF-8".into()))?;
        if !text.starts_with('-') {
            return Err(wrong(&text, "expected an option, there are no other arguments"));
        }
        let (flag, inline) = match text.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (&*text, None),
        };
        match flag {
            "--help" | "-h" if inline.is_none() => return Ok(Request::Help),
            "--json" if inline.is_none() => given.json = true,
            "--help" | "-h" | "--json" => return Err(wrong(flag, "takes no value")),
            _ => {
                let slot = given.slot(flag).ok_or_else(|| wrong(flag, "no such option"))?;
                let value = match inline {
                    Some(value) => value,
                    None => args
                        .next()
                        .and_then(|value| value.into_string().ok())
                        .ok_or_else(|| wrong(flag, "expected a value, got nothing"))?,
                };
                if slot.replace(value).is_some() {
                    return Err(wrong(flag, "expected once"));
                }
            }
        }
    }
    given.checked().map(|options| Request::Watch(Box::new(options)))
}

/// The options as they were given.
#[derive(Default)]
struct Given {
    url: Option<String>,
    done: Option<String>,
    ok: Option<String>,
    profile: Option<String>,
    timeout: Option<String>,
    give_up: Option<String>,
    interval: Option<String>,
    on_parked: Option<String>,
    token_env: Option<String>,
    token_file: Option<String>,
    token_cmd: Option<String>,
    token_header: Option<String>,
    user: Option<String>,
    json: bool,
}

impl Given {
    fn slot(&mut self, flag: &str) -> Option<&mut Option<String>> {
        Some(match flag {
            "--url" => &mut self.url,
            "--done" => &mut self.done,
            "--ok" => &mut self.ok,
            "--profile" => &mut self.profile,
            "--timeout" => &mut self.timeout,
            "--give-up" => &mut self.give_up,
            "--interval" => &mut self.interval,
            "--on-parked" => &mut self.on_parked,
            "--token-env" => &mut self.token_env,
            "--token-file" => &mut self.token_file,
            "--token-cmd" => &mut self.token_cmd,
            "--token-header" => &mut self.token_header,
            "--user" => &mut self.user,
            _ => return None,
        })
    }

    fn checked(self) -> Result<Options, UsageError> {
        let url = self.url.ok_or_else(|| wrong("--url", "expected the URL of a build"))?;
        let what = match (self.profile, self.done, self.ok) {
            (Some(profile), None, None) => What::Profile(profile),
            (Some(_), Some(_), _) => return Err(wrong("--done", "expected either it or --profile, not both")),
            (_, None, Some(_)) => return Err(wrong("--ok", "expected --done beside it")),
            (None, Some(done), ok) => {
                let compile = |flag, text: &str| Predicate::compile(text).map_err(|e| wrong(flag, &e));
                let ok = ok.map(|ok| compile("--ok", &ok)).transpose()?;
                What::Conditions(Box::new(Conditions { done: compile("--done", &done)?, ok }))
            }
            (None, None, None) => return Err(wrong("--done", "expected a jq expression, or --profile")),
        };
        let duration = |flag, text: Option<String>| text.map(|text| duration(flag, &text)).transpose();
        let exit_when_parked = match self.on_parked.as_deref() {
            None | Some("wait") => false,
            Some("exit") => true,
            Some(other) => return Err(wrong("--on-parked", &format!("expected wait or exit, got `{other}`"))),
        };
        let sources = [
            self.token_env.map(Source::Variable),
            self.token_file.map(Source::File),
            self.token_cmd.map(Source::Command),
        ];
        let mut sources = sources.into_iter().flatten();
        let source = sources.next();
        if sources.next().is_some() {
            return Err(wrong("--token-env", "expected one of --token-env, --token-file and --token-cmd"));
        }
        let form = match (self.token_header, self.user) {
            (None, None) => Form::Bearer,
            (Some(name), None) => Form::Header(name),
            (None, Some(user)) => Form::Basic(user),
            (Some(_), Some(_)) => return Err(wrong("--user", "expected either it or --token-header, not both")),
        };
        let token = match (source, form) {
            (Some(source), form) => Some(Token { source, form }),
            (None, Form::Bearer) => None,
            (None, Form::Header(_)) => return Err(wrong("--token-header", "expected the source of a token beside it")),
            (None, Form::Basic(_)) => return Err(wrong("--user", "expected the source of a token beside it")),
        };
        Ok(Options {
            url,
            what,
            timeout: duration("--timeout", self.timeout)?,
            give_up: duration("--give-up", self.give_up)?,
            interval: duration("--interval", self.interval)?,
            exit_when_parked,
            token,
            json: self.json,
        })
    }
}

fn duration(flag: &str, text: &str) -> Result<Duration, UsageError> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let parsed = match (digits.parse::<u32>().map(u64::from), unit) {
        (Ok(n), "ms") => Some(Duration::from_millis(n)),
        (Ok(n), "s") => Some(Duration::from_secs(n)),
        (Ok(n), "m") => Some(Duration::from_secs(n * 60)),
        (Ok(n), "h") => Some(Duration::from_secs(n * 3600)),
        _ => None,
    };
    let parsed = parsed.filter(|d| !d.is_zero());
    parsed.ok_or_else(|| wrong(flag, &format!("expected a duration such as 500ms, 90s, 10m or 2h, got `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Result<Options, String> {
        match parse(args.iter().map(OsString::from)) {
            Ok(Request::Watch(options)) => Ok(*options),
            Ok(Request::Help) => Err("help".into()),
            Err(e) => Err(e.to_string()),
        }
    }

    #[test]
    fn options_are_read_in_both_forms() {
        let options =
            of(&["--url", "http://h/x", "--done=.a == 1", "--timeout", "10m", "--token-env=T", "--user", "ci"]);
        let options = options.unwrap();
        assert_eq!(options.url, "http://h/x");
        assert_eq!(options.timeout, Some(Duration::from_secs(600)));
        let token = options.token.unwrap();
        assert_eq!((token.source, token.form), (Source::Variable("T".into()), Form::Basic("ci".into())));
        let options = of(&["--url=u", "--profile=jenkins", "--on-parked=exit", "--give-up=90s", "--interval=500ms"]);
        let options = options.unwrap();
        assert!(options.exit_when_parked && matches!(options.what, What::Profile(name) if name == "jenkins"));
        assert_eq!(of(&["--help"]).unwrap_err(), "help");
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (args, said) in [
            (&["--url", "u"][..], "--done: expected a jq expression, or --profile"),
            (&["--done", "true"], "--url: expected the URL of a build"),
            (&["--url", "u", "--done", "]"], "--done: expected a jq expression"),
            (&["--url", "u", "--done", "true", "--ok", "nosuch"], "--ok: expected a known filter, got `nosuch`"),
            (&["--url", "u", "--ok", "true"], "--ok: expected --done beside it"),
            (&["--url", "u", "--done", "true", "--profile", "p"], "--done: expected either it or --profile"),
            (&["--url", "u", "--url", "v"], "--url: expected once"),
            (&["--url"], "--url: expected a value"),
            (&["--url", "u", "--done", "true", "--timeout", "soon"], "--timeout: expected a duration such as"),
            (&["--url", "u", "--done", "true", "--timeout", "0s"], "--timeout: expected a duration such as"),
            (&["--url", "u", "--done", "true", "--on-parked", "x"], "--on-parked: expected wait or exit, got `x`"),
            (&["--url", "u", "--done", "true", "--user", "x"], "--user: expected the source of a token"),
            (
                &["--url", "u", "--done", "true", "--token-env", "A", "--token-file", "B"],
                "--token-env: expected one of",
            ),
            (&["--url", "u", "--done", "true", "--token", "s3cret"], "--token: no such option"),
            (&["--json=1"], "--json: takes no value"),
            (&["build"], "build: expected an option"),
        ] {
            let got = of(args).unwrap_err();
            assert!(got.starts_with(said), "{args:?}: {got}");
        }
    }
}
