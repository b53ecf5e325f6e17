//! What a pool is built from, and the part of it that files hold.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretSlice, SecretString};

use super::names::{Lookup, system};
use crate::http::exchange::{Failure, FailureKind};

/// What a pool is built from.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) roots: Vec<u8>,
    pub(super) roots_file: Option<PathBuf>,
    pub(super) identity: Identity,
    pub(super) recheck: Duration,
    pub(super) proxies: Proxies,
    pub(super) idle: Duration,
    /// Interval and time-out.
    pub(super) pings: (Duration, Duration),
    pub(super) connect: Duration,
    pub(super) lookup: Lookup,
}

/// The client's certificate.
#[derive(Clone)]
pub(super) enum Identity {
    None,
    Pem { chain: Vec<u8>, key: SecretSlice<u8> },
    Files { chain: PathBuf, key: PathBuf },
}

/// The proxies to use.
#[derive(Clone)]
pub(super) enum Proxies {
    /// Those of the variables.
    Usual,
    None,
    /// This one; its URL may hold a password.
    One(SecretString),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            roots_file: None,
            identity: Identity::None,
            recheck: Duration::from_secs(1),
            proxies: Proxies::Usual,
            idle: Duration::from_secs(50),
            pings: (Duration::from_secs(10), Duration::from_secs(5)),
            connect: Duration::from_secs(15),
            lookup: Arc::new(system),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBuilder")
            .field("root_certificates_file", &self.roots_file)
            .field("recheck", &self.recheck)
            .field("idle_timeout", &self.idle)
            .field("pings", &self.pings)
            .field("connect_timeout", &self.connect)
            .finish_non_exhaustive()
    }
}

/// What TLS is made from.
pub(super) struct Material {
    pub(super) roots: Vec<u8>,
    pub(super) identity: Option<(Vec<u8>, SecretSlice<u8>)>,
}

impl PartialEq for Material {
    fn eq(&self, other: &Self) -> bool {
        let same_identity = match (&self.identity, &other.identity) {
            (None, None) => true,
            (Some((chain, key)), Some((other_chain, other_key))) => {
                chain == other_chain && key.expose_secret() == other_key.expose_secret()
            }
            (None, Some(_)) | (Some(_), None) => false,
        };
        same_identity && self.roots == other.roots
    }
}

impl Settings {
    /// Whether what TLS is made from can change.
    pub(super) fn reads_files(&self) -> bool {
        self.roots_file.is_some() || matches!(self.identity, Identity::Files { .. })
    }

    /// What TLS is made from, now. Reads files.
    pub(super) fn material(&self) -> Result<Material, Failure> {
        let mut roots = self.roots.clone();
        if let Some(path) = &self.roots_file {
            roots.push(b'\n'); // what came before may not end with one
            roots.extend(read("root_certificates_file", path)?);
        }
        let identity = match &self.identity {
            Identity::None => None,
            Identity::Pem { chain, key } => Some((chain.clone(), key.clone())),
            Identity::Files { chain, key } => {
                let chain = read("client_certificate_files", chain)?;
                Some((chain, read("client_certificate_files", key)?.into()))
            }
        };
        Ok(Material { roots, identity })
    }
}

fn read(field: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| Failure::new(FailureKind::Tls, format!("{field} {}: {e}", path.display())))
}
