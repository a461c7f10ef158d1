//! A Unix socket, for the processes that may open its file.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use tokio::net::{UnixListener, UnixStream};

use placement_base::net::{BoxStream, Listener};

/// Address of a client of the socket: this machine's.
const HERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// A socket that only this process's user may open.
struct Local {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Local {
    fn drop(&mut self) {
        // A remaining file is replaced by the next listener.
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens at `path`. A socket without a listener is replaced.
pub(crate) async fn bind(path: &Path) -> io::Result<Box<dyn Listener>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "the path exists and is not a socket",
            ));
        }
        Ok(_) => {
            if UnixStream::connect(path).await.is_ok() {
                return Err(io::Error::new(
                    ErrorKind::AddrInUse,
                    "it is in use by another placementd",
                ));
            }
        }
    }
    // The socket gets its name only after other users can no longer open it.
    let draft = path.with_extension("new");
    let _ = fs::remove_file(&draft);
    let listener = UnixListener::bind(&draft)?;
    fs::set_permissions(&draft, Permissions::from_mode(0o600))?;
    fs::rename(&draft, path)?;
    Ok(Box::new(Local {
        listener,
        path: path.to_owned(),
    }))
}

impl Listener for Local {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>> {
        Box::pin(async move {
            let (stream, _) = self.listener.accept().await?;
            Ok((Box::new(stream) as BoxStream, HERE))
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(HERE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn socket_is_private_and_replaces_a_dead_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let first = bind(&path).await.unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let second = bind(&path).await.err().map(|error| error.kind());
        assert_eq!(second, Some(ErrorKind::AddrInUse));
        drop(first);
        assert!(!path.exists());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let mut third = bind(&path).await.unwrap();
        let (connected, accepted) = tokio::join!(UnixStream::connect(&path), third.accept());
        assert!(connected.is_ok() && accepted.is_ok());
    }

    #[tokio::test]
    async fn file_that_is_not_a_socket_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        fs::write(&path, "mine").unwrap();
        assert!(bind(&path).await.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
