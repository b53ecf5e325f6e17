//! What the command line asks for.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use outlast::profile::duration;

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
  --give-up D          stop waiting once an outage has lasted so long (default: never)
  --interval D         look this often (default: from 1s soon after a change to 30s, or as the profile says)
  --heartbeat D        say this often that it still waits (default: 60s)
  --on-parked WHAT     wait (default) or exit when the build waits for a person (with a profile)
  --token-env NAME     the variable that holds the token
  --token-file FILE    the file that holds the token; read anew when it is refused
  --token-cmd COMMAND  a shell command that prints the token; run anew when it is refused
  --token-header NAME  the header that carries the token (default: Authorization: Bearer)
  --user NAME          send the token as that user's password (Authorization: Basic)
  --header 'NAME: V'   a header of each request, once for each; a token goes with --token-env and the like
  --ca-file FILE       trust the certificates in that file (PEM), too
  --proxy URL          go through that proxy (default: what HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say)
  --no-proxy           go through no proxy, whatever the variables say
  --json               print one JSON object per line
  --help               print this

An answer for which EXPR gives null, an error, or anything but one true or false is unreadable, and never ends the wait.
So is one for which it takes more than 5 s of a processor or 1 GiB. It knows neither the environment nor files.

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
  130  interrupted (143: terminated, 129: its terminal was closed)
";

/// The longest duration that is taken: a year is as good as for ever.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

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
    pub(crate) heartbeat: Duration,
    pub(crate) exit_when_parked: bool,
    pub(crate) token: Option<Token>,
    pub(crate) way: Way,
    pub(crate) json: bool,
}

/// What requests carry beside the token, and which way they go.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// Each as it was given.
    pub(crate) headers: Vec<String>,
    pub(crate) ca_file: Option<PathBuf>,
    /// Default: what the variables say.
    pub(crate) proxy: Option<Proxy>,
}

/// A proxy to use, whatever the variables say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    None,
    At(String),
}

/// What tells the verdict.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The expressions of `--done` and `--ok`.
    Expressions {
        /// Whether it is over.
        done: String,
        /// Whether it ended well.
        ok: Option<String>,
    },
    /// The profile of that name or in that file.
    Profile(String),
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

impl Source {
    /// The flag that names it.
    pub(crate) const fn flag(&self) -> &'static str {
        match self {
            Self::Variable(_) => "--token-env",
            Self::File(_) => "--token-file",
            Self::Command(_) => "--token-cmd",
        }
    }
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

impl UsageError {
    /// What was expected of `flag`.
    pub(crate) fn new(flag: &str, expected: impl fmt::Display) -> Self {
        Self(format!("{flag}: {expected}"))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Whether the arguments have an option of this command line that takes a value.
pub(crate) fn is_meant(args: &[OsString]) -> bool {
    let mut given = Given::default();
    args.iter().any(|arg| given.slot(split(&arg.to_string_lossy()).0).is_some())
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(args: Vec<OsString>) -> Result<Request, UsageError> {
    // Whoever asks for help gets it, also where a value is expected: `--url --help`.
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return Ok(Request::Help);
    }
    let mut given = Given::default();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let text = arg.into_string().map_err(|_| UsageError("the arguments: expected UTF-8".into()))?;
        if !text.starts_with('-') {
            return Err(UsageError::new(&text, "expected an option, there are no other arguments"));
        }
        let (flag, inline) = split(&text);
        match (flag, inline) {
            ("--json", None) => given.json = true,
            ("--no-proxy", None) => given.no_proxy = true,
            ("--help" | "-h" | "--json" | "--no-proxy", Some(_)) => {
                return Err(UsageError::new(flag, "takes no value"));
            }
            (flag, inline) => {
                let slot = given.slot(flag).ok_or_else(|| UsageError::new(flag, "no such option"))?;
                let value = match inline {
                    Some(value) => value.to_owned(),
                    None => {
                        let value =
                            args.next().ok_or_else(|| UsageError::new(flag, "expected a value, got nothing"))?;
                        value.into_string().map_err(|_| UsageError::new(flag, "expected UTF-8"))?
                    }
                };
                if slot.replace(value).is_some() {
                    return Err(UsageError::new(flag, "expected once"));
                }
                // The one option of which there may be several.
                given.headers.extend(given.header.take());
            }
        }
    }
    given.checked().map(|options| Request::Watch(Box::new(options)))
}

/// The two halves of `--flag=value`.
fn split(arg: &str) -> (&str, Option<&str>) {
    match arg.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (arg, None),
    }
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
    heartbeat: Option<String>,
    on_parked: Option<String>,
    token_env: Option<String>,
    token_file: Option<String>,
    token_cmd: Option<String>,
    token_header: Option<String>,
    user: Option<String>,
    header: Option<String>,
    headers: Vec<String>,
    ca_file: Option<String>,
    proxy: Option<String>,
    no_proxy: bool,
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
            "--heartbeat" => &mut self.heartbeat,
            "--on-parked" => &mut self.on_parked,
            "--token-env" => &mut self.token_env,
            "--token-file" => &mut self.token_file,
            "--token-cmd" => &mut self.token_cmd,
            "--token-header" => &mut self.token_header,
            "--user" => &mut self.user,
            "--header" => &mut self.header,
            "--ca-file" => &mut self.ca_file,
            "--proxy" => &mut self.proxy,
            _ => return None,
        })
    }

    fn checked(self) -> Result<Options, UsageError> {
        let wrong = |flag, expected: &str| Err(UsageError::new(flag, expected));
        let Some(url) = self.url else { return wrong("--url", "expected the URL of a build") };
        let what = match (self.profile, self.done, self.ok) {
            (Some(profile), None, None) => What::Profile(profile),
            (Some(_), Some(_), _) => return wrong("--done", "expected either it or --profile, not both"),
            (Some(_), None, Some(_)) => return wrong("--ok", "expected either it or --profile, not both"),
            (None, Some(done), ok) => What::Expressions { done, ok },
            (None, None, Some(_)) => return wrong("--ok", "expected --done beside it"),
            (None, None, None) => return wrong("--done", "expected a jq expression, or --profile"),
        };
        let exit_when_parked = match self.on_parked.as_deref() {
            None | Some("wait") => false,
            Some("exit") => true,
            Some(other) => return wrong("--on-parked", &format!("expected wait or exit, got `{other}`")),
        };
        // Only a profile knows that work waits for a person.
        if exit_when_parked && !matches!(what, What::Profile(_)) {
            return wrong("--on-parked", "expected --profile beside it");
        }
        let sources = [
            self.token_env.map(Source::Variable),
            self.token_file.map(Source::File),
            self.token_cmd.map(Source::Command),
        ];
        let mut sources = sources.into_iter().flatten();
        let (source, another) = (sources.next(), sources.next());
        if let Some(another) = another {
            return wrong(another.flag(), "expected one of --token-env, --token-file and --token-cmd");
        }
        let (flag, form) = match (self.token_header, self.user) {
            (None, None) => ("", Form::Bearer),
            (Some(name), None) => ("--token-header", Form::Header(name)),
            (None, Some(user)) => ("--user", Form::Basic(user)),
            (Some(_), Some(_)) => return wrong("--user", "expected either it or --token-header, not both"),
        };
        let token = match (source, form) {
            (Some(source), form) => Some(Token { source, form }),
            (None, Form::Bearer) => None,
            (None, Form::Header(_) | Form::Basic(_)) => {
                return wrong(flag, "expected --token-env, --token-file or --token-cmd beside it");
            }
        };
        let proxy = match (self.proxy, self.no_proxy) {
            (Some(_), true) => return wrong("--no-proxy", "expected either it or --proxy, not both"),
            (Some(url), false) => Some(Proxy::At(url)),
            (None, no_proxy) => no_proxy.then_some(Proxy::None),
        };
        Ok(Options {
            url,
            what,
            timeout: time("--timeout", self.timeout.as_deref())?,
            give_up: time("--give-up", self.give_up.as_deref())?,
            interval: time("--interval", self.interval.as_deref())?,
            heartbeat: time("--heartbeat", self.heartbeat.as_deref())?.unwrap_or(Duration::from_secs(60)),
            exit_when_parked,
            token,
            way: Way { headers: self.headers, ca_file: self.ca_file.map(PathBuf::from), proxy },
            json: self.json,
        })
    }
}

/// The duration that a flag says, if it is given: at least a millisecond, at most a year.
fn time(flag: &str, text: Option<&str>) -> Result<Option<Duration>, UsageError> {
    let Some(text) = text else { return Ok(None) };
    let time = duration(flag, text).map_err(|e| UsageError(format!("{e}, got `{text}`")))?;
    if time.is_zero() || time > LONGEST {
        return Err(UsageError::new(flag, format_args!("expected a duration from 1ms to 366d, got `{text}`")));
    }
    Ok(Some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Result<Options, String> {
        match parse(args.iter().map(OsString::from).collect()) {
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
        assert_eq!((options.heartbeat, options.way), (Duration::from_secs(60), Way::default()));
        let options =
            of(&["--url=u", "--done=.", "--header=A: b", "--ca-file", "c", "--header", "D: e=f", "--no-proxy"]);
        let (headers, ca_file) = (vec!["A: b".to_owned(), "D: e=f".to_owned()], Some("c".into()));
        assert_eq!(options.unwrap().way, Way { headers, ca_file, proxy: Some(Proxy::None) });
        let options = of(&["--url=u", "--done=.", "--proxy=http://p:3128"]);
        assert_eq!(options.unwrap().way.proxy, Some(Proxy::At("http://p:3128".into())));
    }

    #[test]
    fn help_is_given_wherever_it_is_asked_for() {
        for args in [&["--help"][..], &["--url", "--help"], &["--done", "-h"], &["--nosuch", "--help"]] {
            assert_eq!(of(args).unwrap_err(), "help", "{args:?}");
        }
    }

    #[test]
    fn an_option_with_a_value_is_what_distinguishes_this_command_line() {
        let is_meant = |args: &[&str]| is_meant(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(is_meant(&["--url", "u"]) && is_meant(&["--json", "--timeout=1s"]) && is_meant(&["--url", "--help"]));
        assert!(!is_meant(&[]) && !is_meant(&["--json"]) && !is_meant(&["--help"]) && !is_meant(&["--outage", "3s"]));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (args, said) in [
            (&["--url", "u"][..], "--done: expected a jq expression, or --profile"),
            (&["--done", "true"], "--url: expected the URL of a build"),
            (&["--url", "u", "--ok", "true"], "--ok: expected --done beside it"),
            (&["--url", "u", "--done", "true", "--profile", "p"], "--done: expected either it or --profile"),
            (&["--url", "u", "--url", "v"], "--url: expected once"),
            (&["--url"], "--url: expected a value"),
            (&["--url", "u", "--done", "true", "--timeout", "soon"], "--timeout: expected a duration such as"),
            (&["--url", "u", "--done", "true", "--timeout", "0s"], "--timeout: expected a duration from"),
            (&["--url", "u", "--done", "true", "--on-parked", "x"], "--on-parked: expected wait or exit, got `x`"),
            (&["--url", "u", "--done", "true", "--on-parked", "exit"], "--on-parked: expected --profile beside it"),
            (&["--url", "u", "--profile", "p", "--ok", "true"], "--ok: expected either it or --profile"),
            (&["--url", "u", "--done", "true", "--timeout", "999d"], "--timeout: expected a duration from 1ms to 366d"),
            (&["--url", "u", "--done", "true", "--user", "x"], "--user: expected --token-env, --token-file"),
            (
                &["--url", "u", "--done", "true", "--token-env", "A", "--token-file", "B"],
                "--token-file: expected one of",
            ),
            (&["--url", "u", "--done", "true", "--token", "s3cret"], "--token: no such option"),
            (&["--url", "u", "--done", "true", "--insecure"], "--insecure: no such option"),
            (&["--json=1"], "--json: takes no value"),
            (&["--no-proxy=p"], "--no-proxy: takes no value"),
            (&["--url", "u", "--done", "true", "--proxy", "p", "--no-proxy"], "--no-proxy: expected either it or"),
            (&["--url", "u", "--done", "true", "--ca-file", "a", "--ca-file", "b"], "--ca-file: expected once"),
            (&["build"], "build: expected an option"),
        ] {
            let got = of(args).unwrap_err();
            assert!(got.starts_with(said), "{args:?}: {got}");
        }
    }
}
