//! What ties a process of the farm to the one that started it: a pipe in each direction.
//!
//! The child's stdin is a pipe on which the parent says farewell, or nothing. It ends when the parent
//! does, however it dies, so no process of the farm outlives it. The child's stdout carries [`Notice`]s,
//! one a line.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// What the parent says before it ends a child in good order.
pub(crate) const FAREWELL: &[u8] = b"farewell\n";

/// How the name of a farm's directory starts.
pub(crate) const DIRECTORY: &str = "build-farm-";

/// What a process of the farm tells its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It listens there.
    Listening(SocketAddr),
    /// The relay has cut a connection instead of passing on the answer to a submit.
    AnswerSwallowed,
}

/// How the tie to the parent came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// The parent asked the child to end, and will clean up.
    Farewell,
    /// The parent is gone: whoever is left cleans up.
    Lost,
}

/// Tells the parent. A parent that no longer listens is found out by [`parting`].
pub(crate) fn tell(notice: &Notice) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{notice}").and_then(|()| stdout.flush());
}

/// Completes when this process is to end.
pub(crate) async fn parting() -> io::Result<Parting> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    read_parting(pipe::Receiver::from_owned_fd(stdin)?).await
}

async fn read_parting(mut stdin: pipe::Receiver) -> io::Result<Parting> {
    let mut said = Vec::new();
    stdin.read_to_end(&mut said).await?;
    Ok(if said == FAREWELL { Parting::Farewell } else { Parting::Lost })
}

/// Removes the farm's directory after the loss of the parent.
///
/// All processes of the farm do so, each after it has ended its own work there, so a file that another
/// one is still writing is removed by that one. A directory that a stage has not made is left alone.
pub(crate) async fn clean_up(directory: &Path) {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with(DIRECTORY) {
        return;
    }
    for _ in 0..20 {
        match tokio::fs::remove_dir_all(directory).await {
            Err(e) if e.kind() != io::ErrorKind::NotFound => tokio::time::sleep(Duration::from_millis(50)).await,
            Ok(()) | Err(_) => return,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening(address) => write!(f, "listening {address}"),
            Self::AnswerSwallowed => f.write_str("swallowed"),
        }
    }
}

impl FromStr for Notice {
    type Err = UnknownNotice;

    fn from_str(line: &str) -> Result<Self, UnknownNotice> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("listening", address) => address.parse().map(Self::Listening).map_err(|_| UnknownNotice),
            ("swallowed", "") => Ok(Self::AnswerSwallowed),
            _ => Err(UnknownNotice),
        }
    }
}

/// A line on a child's stdout that is no notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownNotice;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[test]
    fn a_notice_is_one_line() {
        for notice in [Notice::Listening("127.0.0.1:80".parse().unwrap()), Notice::AnswerSwallowed] {
            assert_eq!(notice.to_string().parse(), Ok(notice));
        }
        for line in ["", "listening", "listening there", "swallowed it", "hello"] {
            assert_eq!(line.parse::<Notice>(), Err(UnknownNotice));
        }
    }

    #[tokio::test]
    async fn only_a_farms_directory_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (mine, other) = (directory.path().join("build-farm-1"), directory.path().join("home"));
        for path in [&mine, &other] {
            std::fs::create_dir(path).unwrap();
            std::fs::write(path.join("file"), "").unwrap();
            clean_up(path).await;
        }
        assert!(!mine.exists() && other.join("file").exists());
        clean_up(&mine).await;
    }

    #[tokio::test]
    async fn an_end_without_a_farewell_is_a_loss() {
        for (said, expected) in [(FAREWELL, Parting::Farewell), (b"", Parting::Lost), (b"fare", Parting::Lost)] {
            let (mut parent, child) = pipe::pipe().unwrap();
            parent.write_all(said).await.unwrap();
            drop(parent);
            assert_eq!(read_parting(child).await.unwrap(), expected);
        }
    }
}
