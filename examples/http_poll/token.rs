//! Where the token comes from. It is never an argument, and never printed.

use outlast::credential;

use super::cli::{Form, Source, Token, UsageError};
use super::watch::about;

/// The source that the command line names.
pub(crate) fn source(token: Token) -> Result<credential::Source, UsageError> {
    let flag = token.source.flag();
    let source = match token.source {
        Source::Variable(name) => {
            // It will not change any more, so there is nothing to wait for. A secret that a runner does not have is empty.
            if std::env::var_os(&name).is_none_or(|value| value.is_empty()) {
                return Err(UsageError::new(flag, format_args!("expected a variable that is set, `{name}` is not")));
            }
            credential::variable(name)
        }
        Source::File(path) => credential::file(path),
        Source::Command(line) => credential::command("sh", ["-c", &line]),
    };
    match token.form {
        Form::Bearer => Ok(source.as_bearer()),
        Form::Header(name) => source.as_header(&name).map_err(|e| about("--token-header", &e)),
        Form::Basic(user) => source.as_basic(&user).map_err(|e| about("--user", &e)),
    }
}
