//! What requests carry beside the token, and which way they go.

use std::path::Path;

use outlast::Error;
use outlast::http::{self, Agent, Get};
use url::Url;

use super::cli::{Proxy, UsageError};
use super::watch::about;

/// Words in the name of a header whose value proves who asks.
const SECRET: [&str; 12] = [
    "auth",
    "authorization",
    "authentication",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "password",
    "secret",
    "session",
    "token",
];

/// The read of `url`, by an agent of its own where it goes another way than the usual one.
///
/// # Errors
/// Where the certificates or the proxy are not usable. It is known at once, so it is no outage to wait for.
pub(crate) fn get(url: &str, ca_file: Option<&Path>, proxy: Option<Proxy>) -> Result<Get, UsageError> {
    if ca_file.is_none() && proxy.is_none() {
        return Ok(http::get(url));
    }
    let mut agent = Agent::builder();
    if let Some(path) = ca_file {
        agent = agent.root_certificates(certificates(path)?);
    }
    agent = match proxy {
        Some(Proxy::At(proxy)) => agent.proxy(without_password(proxy)?),
        Some(Proxy::None) => agent.no_proxy(),
        None => agent,
    };
    Ok(agent.build().map_err(|e| refused(&e))?.get(url))
}

/// Why there is no read, with the flag that it is about.
pub(crate) fn refused(e: &Error) -> UsageError {
    let said = e.to_string();
    let field = said.split_once(':').map_or("", |(field, _)| field);
    let flag = match field {
        "header.name" | "header.value" => "--header",
        "root_certificates" => "--ca-file",
        "proxy" => "--proxy",
        _ => "--url",
    };
    about(flag, e)
}

/// The name and the value in `Name: value`.
///
/// # Errors
/// Where it is none, or one that looks like a credential: every user of the machine can read it. Its value is not told.
pub(crate) fn header(text: &str) -> Result<(&str, &str), UsageError> {
    let wrong = |expected: &str| Err(UsageError::new("--header", expected));
    let Some((name, value)) = text.split_once(':') else { return wrong("expected `Name: value`") };
    let (name, value) = (name.trim(), value.trim());
    if !is_secret(name, value) {
        return Ok((name, value));
    }
    let secret = "expected none that holds a credential: take --token-env, --token-file or --token-cmd for it";
    if name.eq_ignore_ascii_case("authorization") {
        return wrong(secret);
    }
    wrong(&format!("{secret}, and --token-header {name}"))
}

fn is_secret(name: &str, value: &str) -> bool {
    let scheme = value.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let name = name.to_ascii_lowercase();
    let glued = ["token", "secret", "password", "apikey"].iter().any(|end| name.ends_with(end));
    glued || name.split(['-', '_']).any(|word| SECRET.contains(&word)) || ["bearer", "basic"].contains(&&*scheme)
}

fn certificates(path: &Path) -> Result<Vec<u8>, UsageError> {
    let wrong = |what: &dyn std::fmt::Display| {
        let path = path.display();
        UsageError::new("--ca-file", format_args!("expected a file with certificates in PEM, got `{path}`: {what}"))
    };
    let pem = std::fs::read(path).map_err(|e| wrong(&e))?;
    // To the library, nothing is no certificates to add.
    if pem.is_empty() { Err(wrong(&"it is empty")) } else { Ok(pem) }
}

/// What is no URL is refused elsewhere, without being told.
fn without_password(proxy: String) -> Result<String, UsageError> {
    let with_scheme = if proxy.contains("://") { proxy.clone() } else { format!("http://{proxy}") };
    match Url::parse(&with_scheme) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(UsageError::new("--proxy", "expected no user or password: take the variable ALL_PROXY for those"))
        }
        Ok(_) | Err(_) => Ok(proxy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_giventhat_holds_a_credential_is_refused_without_being_told() {
        for given in [
            "Authorization: Bearer s3cret",
            "authorization:s3cret",
            "Proxy-Authorization: s3cret",
            "PRIVATE-TOKEN: s3cret",
            "X-AccessToken: s3cret",
            "X-Api-Key: s3cret",
            "apikey: s3cret",
            "Cookie: a=s3cret",
            "X-Any: Basic s3cret",
        ] {
            let e = header(given).unwrap_err().to_string();
            assert!(e.starts_with("--header: expected none that holds a credential: take --token-env"), "{e}");
            assert!(!e.contains("s3cret"), "{e}");
        }
        let e = header("PRIVATE-TOKEN: x").unwrap_err().to_string();
        assert!(e.ends_with("--token-header PRIVATE-TOKEN"), "{e}");
        assert_eq!(header("no colon s3cret").unwrap_err().to_string(), "--header: expected `Name: value`");
    }

    #[test]
    fn any_other_givenis_taken() {
        for (text, read) in [
            ("Accept: application/vnd.github+json", ("Accept", "application/vnd.github+json")),
            ("X-Author:a:b", ("X-Author", "a:b")),
            ("X-Keyboard:  de ", ("X-Keyboard", "de")),
            ("X-Empty:", ("X-Empty", "")),
        ] {
            assert_eq!(header(text).unwrap(), read);
        }
    }
}
