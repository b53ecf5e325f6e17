//! The text of a file.

use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::text::{MOST, Text, room};
use crate::error::Error;

#[derive(Clone, Debug)]
pub(super) struct File {
    path: Arc<Path>,
    /// A read of a path that hangs (a dead network mount, a pipe without a writer) cannot be taken back. The next one waits
    /// for it rather than block one more thread.
    turn: Arc<Semaphore>,
}

impl File {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path: path.into(), turn: Arc::new(Semaphore::new(1)) }
    }

    /// What tells it from others.
    pub(super) fn name(&self) -> String {
        format!("file {:?}", self.path)
    }

    pub(super) async fn bytes(&self) -> Result<Text, Error> {
        let failed = |e: &dyn fmt::Display| Error::unavailable(format!("{self}: {e}"));
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|e| failed(&e))?;
        let path = Arc::clone(&self.path);
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            read(&path)
        });
        let bytes = read.await.map_err(|_| failed(&"the read was abandoned"))?.map_err(|e| failed(&e))?;
        if bytes.len() > MOST {
            return Err(failed(&format_args!("more than {MOST} bytes")));
        }
        Ok(bytes)
    }
}

fn read(path: &Path) -> io::Result<Text> {
    let mut bytes = room();
    std::fs::File::open(path)?.take(MOST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}", self.path.display())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A path that hangs blocks one thread, not one for each ask.
    #[tokio::test]
    async fn a_file_that_hangs_is_opened_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Both ends of the pipe, which waits for nobody to open it. Whoever opens it now hangs in the read until this is
        // gone, which it is if the test fails, too: the end of its runtime waits for a read that hangs.
        let hangs = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let file = File::new(path.clone());
        let mut first = Box::pin(file.bytes());
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        assert_eq!(file.turn.available_permits(), 0, "the read that was left behind has its turn still");
        let mut second = Box::pin(file.bytes());
        assert!(futures::poll!(&mut second).is_pending(), "the next one waits for it");
        std::fs::write(dir.path().join("next"), "two").unwrap();
        std::fs::rename(dir.path().join("next"), &path).unwrap();
        drop(hangs);
        assert_eq!(**second.await.unwrap(), *b"two");
    }
}
