//! TLS with one provider, given explicitly, and the platform's verifier.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
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
        let roots: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(extra_roots)
            .collect::<Result<_, _>>()
            .map_err(|e| Error::invalid("root_certificates", "certificates in PEM").with_source(e))?;
        if roots.is_empty() && !extra_roots.is_empty() {
            return Err(Error::invalid("root_certificates", "at least one certificate in PEM"));
        }
        let unusable = |e: rustls::Error| Error::new(ErrorKind::Unavailable, "TLS is not usable").with_source(e);
        let verifier = Verifier::new_with_extra_roots(roots, provider()).map_err(unusable)?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous() // its name for "a verifier of our own"; this one is the platform's
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()]; // the upgrade of RFC 6455 is HTTP/1.1's
        Ok(Self { config: Arc::new(config) })
    }

    pub(crate) async fn connect(&self, host: &str, io: Box<dyn Io>) -> std::io::Result<TlsStream<Box<dyn Io>>> {
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.config)).connect(name, io).await
    }
}
