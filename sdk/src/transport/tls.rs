//! TLS with one provider, given explicitly, and the platform's verifier.

use std::sync::Arc;

use rustls::ClientConfig;
#[cfg(feature = "http")]
use rustls::RootCertStore;
use rustls::client::WantsClientCert;
use rustls::crypto::CryptoProvider;
#[cfg(feature = "http")]
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ConfigBuilder, WantsVerifier};
use rustls_platform_verifier::Verifier;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::network::Io;
use crate::error::{Error, ErrorKind};

/// The shipped tree's one provider of cryptography for TLS.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Makes TLS connections. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Trusts what the platform trusts, and the certificates in `extra_roots` (PEM).
    pub(crate) fn new(extra_roots: &[u8]) -> Result<Self, Error> {
        Ok(Self::of(verified(extra_roots)?.with_no_client_auth()))
    }

    /// The same, and says who the client is.
    #[cfg(feature = "http")]
    pub(crate) fn identified(extra_roots: &[u8], identity: Option<Identity<'_>>) -> Result<Self, Error> {
        Ok(Self::of(identified(extra_roots, identity)?))
    }

    fn of(mut config: ClientConfig) -> Self {
        config.alpn_protocols = vec![b"http/1.1".to_vec()]; // the upgrade of RFC 6455 is HTTP/1.1's
        Self { config: Arc::new(config) }
    }

    /// A session with `host`, over `io`; an IPv6 address with brackets or without.
    pub(crate) async fn connect(&self, host: &str, io: Box<dyn Io>) -> std::io::Result<TlsStream<Box<dyn Io>>> {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(std::io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.config)).connect(name, io).await
    }
}

/// Who a client says that it is.
#[cfg(feature = "http")]
#[derive(Clone, Copy)]
pub(crate) struct Identity<'a> {
    /// Its certificate and those between it and a root, in PEM, its own first.
    pub(crate) chain: &'a [u8],
    /// The certificate's private key in PEM.
    pub(crate) key: &'a [u8],
}

#[cfg(feature = "http")]
impl Identity<'_> {
    /// Shows it to whoever asks for it.
    fn shown_by(self, config: ConfigBuilder<ClientConfig, WantsClientCert>) -> Result<ClientConfig, Error> {
        let chain = certificates("client_certificate", self.chain)?;
        if chain.is_empty() {
            return Err(Error::invalid("client_certificate", "at least one certificate in PEM"));
        }
        // Without the source: it may quote what it read.
        let key = PrivateKeyDer::from_pem_slice(self.key)
            .map_err(|_| Error::invalid("client_certificate key", "a private key in PEM"))?;
        config
            .with_client_auth_cert(chain, key)
            .map_err(|e| Error::invalid("client_certificate key", "the private key of the certificate").with_source(e))
    }

    /// Whether it is usable.
    pub(crate) fn check(self) -> Result<(), Error> {
        self.shown_by(versions()?.with_root_certificates(RootCertStore::empty())).map(drop)
    }
}

/// TLS for HTTP requests: trusts what the platform trusts and `extra_roots` (PEM), and offers HTTP/2 before HTTP/1.1.
#[cfg(feature = "http")]
pub(crate) fn for_requests(extra_roots: &[u8], identity: Option<Identity<'_>>) -> Result<ClientConfig, Error> {
    Ok(offering(identified(extra_roots, identity)?))
}

#[cfg(feature = "http")]
fn identified(extra_roots: &[u8], identity: Option<Identity<'_>>) -> Result<ClientConfig, Error> {
    let config = verified(extra_roots)?;
    match identity {
        None => Ok(config.with_no_client_auth()),
        Some(identity) => identity.shown_by(config),
    }
}

/// TLS that trusts nobody: for requests that need none, where there is no usable set of roots.
#[cfg(feature = "http")]
pub(crate) fn distrustful() -> Result<ClientConfig, Error> {
    let config = versions()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    Ok(offering(config))
}

#[cfg(feature = "http")]
fn offering(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// Verifies as the platform does, with `extra_roots` (PEM) beside its own.
fn verified(extra_roots: &[u8]) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let verifier = Verifier::new_with_extra_roots(roots(extra_roots)?, provider()).map_err(unusable)?;
    Ok(versions()?
        .dangerous() // its name for "a verifier of our own"; this one is the platform's
        .with_custom_certificate_verifier(Arc::new(verifier)))
}

fn versions() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(unusable)
}

/// The root certificates in `pem`: none only for nothing.
pub(crate) fn roots(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let roots = certificates("root_certificates", pem)?;
    if roots.is_empty() && !pem.is_empty() {
        return Err(Error::invalid("root_certificates", "at least one certificate in PEM"));
    }
    Ok(roots)
}

fn certificates(field: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|e| Error::invalid(field, "certificates in PEM").with_source(e))
}

fn unusable(e: rustls::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "TLS is not usable").with_source(e)
}
