//! Where the server listens at present: a file in the farm's directory, written whole or not at all.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

const FILE: &str = "address";

/// Says where the server listens.
pub(crate) fn publish(directory: &Path, address: SocketAddr) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    write!(file, "{address}")?;
    // A reader sees the old address or the new one, never half of one.
    file.persist(directory.join(FILE))?;
    Ok(())
}

/// Where the server listens, or listened last.
pub(crate) fn current(directory: &Path) -> io::Result<SocketAddr> {
    let text = std::fs::read_to_string(directory.join(FILE))?;
    text.parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_address_replaces_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(current(directory.path()).unwrap_err().kind(), io::ErrorKind::NotFound);
        for address in ["127.0.0.1:1", "127.0.0.1:65535"] {
            let address = address.parse().unwrap();
            publish(directory.path(), address).unwrap();
            assert_eq!(current(directory.path()).unwrap(), address);
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left there");
    }
}
