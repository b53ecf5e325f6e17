//! Whom this library trusts and who it says that it is, from bytes and from files that others replace.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretSlice};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::exchange::{Failure, FailureKind};
use crate::credential::{MOST, room};
use crate::error::Error;
use crate::transport::tls;

/// What TLS is set up from, as it was given.
#[derive(Clone)]
pub(super) struct Trust {
    /// Certificates to trust beside what the platform trusts, in PEM.
    pub(super) roots: Vec<u8>,
    pub(super) roots_file: Option<PathBuf>,
    pub(super) identity: Identity,
    /// How often files are read again, at most.
    pub(super) recheck: Duration,
}

/// The client's certificate.
#[derive(Clone)]
pub(super) enum Identity {
    None,
    Pem { chain: Vec<u8>, key: SecretSlice<u8> },
    Files { chain: PathBuf, key: PathBuf },
}

impl Default for Trust {
    fn default() -> Self {
        Self { roots: Vec::new(), roots_file: None, identity: Identity::None, recheck: Duration::from_secs(1) }
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust")
            .field("root_certificates_file", &self.roots_file)
            .field("recheck", &self.recheck)
            .finish_non_exhaustive()
    }
}

impl Trust {
    /// Whether what TLS is made from can change.
    pub(super) fn reads_files(&self) -> bool {
        self.roots_file.is_some() || matches!(self.identity, Identity::Files { .. })
    }

    /// Whether what was given as bytes is usable, whatever files will say.
    pub(super) fn check(&self) -> Result<(), Error> {
        tls::roots(&self.roots)?;
        match &self.identity {
            Identity::Pem { chain, key } => tls::Identity { chain, key: key.expose_secret() }.check(),
            Identity::None | Identity::Files { .. } => Ok(()),
        }
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
                Some((chain, read_key("client_certificate_files", key)?))
            }
        };
        Ok(Material { roots, identity })
    }
}

fn read(field: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| unreadable(field, path, &e))
}

/// A private key: no copy of it stays behind.
fn read_key(field: &str, path: &Path) -> Result<SecretSlice<u8>, Failure> {
    let mut bytes = room();
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|e| unreadable(field, path, &e))?;
    if bytes.len() > MOST {
        return Err(unreadable(field, path, &format_args!("more than {MOST} bytes")));
    }
    // Exactly as long as it is: what is cut to size later is moved.
    Ok(bytes.to_vec().into())
}

fn unreadable(field: &str, path: &Path, why: &dyn fmt::Display) -> Failure {
    Failure::new(FailureKind::Tls, format!("{field} {}: {why}", path.display()))
}

/// What TLS is made from.
pub(super) struct Material {
    pub(super) roots: Vec<u8>,
    identity: Option<(Vec<u8>, SecretSlice<u8>)>,
}

impl Material {
    /// Who the client says that it is.
    pub(super) fn identity(&self) -> Option<tls::Identity<'_>> {
        let identity = self.identity.as_ref();
        identity.map(|(chain, key)| tls::Identity { chain, key: key.expose_secret() })
    }
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

/// What is made from a [`Trust`], and made anew when its files have changed.
pub(super) struct Remade<T> {
    trust: Arc<Trust>,
    make: Arc<Make<T>>,
    held: Mutex<Held<T>>,
    /// A read of a path that hangs (a dead network mount) cannot be taken back. The next one waits for it rather than block
    /// one more thread.
    turn: Arc<Semaphore>,
}

type Read = Result<Material, Failure>;
type Make<T> = dyn Fn(&Read) -> Result<T, Failure> + Send + Sync;

struct Held<T> {
    checked: Option<Instant>,
    made: Option<Made<T>>,
}

#[derive(Clone)]
struct Made<T> {
    from: Arc<Read>,
    it: T,
}

impl<T: Clone + Send + 'static> Remade<T> {
    pub(super) fn new(trust: Arc<Trust>, make: impl Fn(&Read) -> Result<T, Failure> + Send + Sync + 'static) -> Self {
        let held = Mutex::new(Held { checked: None, made: None });
        Self { trust, make: Arc::new(make), held, turn: Arc::new(Semaphore::new(1)) }
    }

    /// By what the files say now, or said a moment ago. Before they are read, `reads` is called.
    pub(super) async fn newest(&self, reads: impl FnOnce()) -> Result<T, Failure> {
        self.read(true, reads).await
    }

    /// By what the files have said at any time.
    pub(super) async fn any(&self, reads: impl FnOnce()) -> Result<T, Failure> {
        self.read(false, reads).await
    }

    async fn read(&self, newest: bool, reads: impl FnOnce()) -> Result<T, Failure> {
        let mut held = self.held.lock().await;
        #[expect(clippy::disallowed_methods, reason = "how often a file is read decides on no read of a service")]
        let now = Instant::now();
        let due = held.checked.is_none_or(|at| now.duration_since(at) >= self.trust.recheck);
        if let Some(made) = &held.made
            && !(newest && due && self.trust.reads_files())
        {
            return Ok(made.it.clone());
        }
        reads();
        let failed = |e: &dyn fmt::Display| Failure::new(FailureKind::Tls, e.to_string());
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|e| failed(&e))?;
        let (trust, make, before) = (Arc::clone(&self.trust), Arc::clone(&self.make), held.made.clone());
        let made = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            remade(&trust, &*make, before)
        });
        let made = made.await.map_err(|e| failed(&e))??;
        held.checked = Some(now);
        let it = made.it.clone();
        held.made = Some(made);
        Ok(it)
    }
}

/// Reads the files, and makes another one where that gives anything else than `before`.
fn remade<T>(trust: &Trust, make: &Make<T>, before: Option<Made<T>>) -> Result<Made<T>, Failure> {
    let read = trust.material();
    if let Some(before) = before
        && *before.from == read
    {
        return Ok(before);
    }
    let it = make(&read)?;
    Ok(Made { from: Arc::new(read), it })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A key is read into one place that is wiped, and has no more room than that: one that is longer is none.
    #[test]
    fn a_key_is_read_into_one_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for (length, fits) in [(0, true), (MOST, true), (MOST + 1, false), (MOST * 3, false)] {
            std::fs::write(&path, vec![b'k'; length]).unwrap();
            let identity = Identity::Files { chain: path.clone(), key: path.clone() };
            let material = Trust { identity, ..Trust::default() }.material();
            match material {
                Ok(material) => {
                    assert!(fits, "{length}");
                    assert_eq!(material.identity().unwrap().key.len(), length);
                }
                Err(failure) => assert!(!fits && failure.to_string().contains("more than 65536 bytes"), "{failure}"),
            }
        }
    }

    /// A file that hangs blocks one thread, not one for each attempt that is given up.
    #[tokio::test]
    async fn a_file_that_hangs_is_opened_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("roots");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Both ends of the pipe, which waits for nobody to open it: whoever opens it now hangs in the read until this is gone.
        let hangs = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let trust = Trust { roots_file: Some(path.clone()), ..Trust::default() };
        let remade = Remade::new(Arc::new(trust), |read| Ok(read.as_ref().unwrap().roots.clone()));
        let mut first = Box::pin(remade.newest(|| {}));
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        assert_eq!(remade.turn.available_permits(), 0, "the read that was left behind has its turn still");
        let mut second = Box::pin(remade.newest(|| {}));
        assert!(futures::poll!(&mut second).is_pending(), "the next one waits for it");
        std::fs::write(dir.path().join("next"), "two").unwrap();
        std::fs::rename(dir.path().join("next"), &path).unwrap();
        drop(hangs);
        assert_eq!(second.await.unwrap(), b"\ntwo");
    }
}
