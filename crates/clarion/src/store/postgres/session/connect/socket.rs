//! The socket below a session, with what finds out a peer that has gone away without a word.

use std::io;
use std::net::SocketAddr;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::either::Either;

use super::Place;
use crate::config::PostgresAddress;

pub(super) type Socket = Either<TcpStream, UnixStream>;

/// With our own address, where it has one.
pub(super) async fn open(
    address: &PostgresAddress,
    place: &Place,
) -> io::Result<(Socket, Option<SocketAddr>)> {
    match place {
        Place::Tcp(peer) => {
            let stream = TcpStream::connect(peer).await?;
            stream.set_nodelay(true)?;
            let socket = SockRef::from(&stream);
            socket.set_tcp_user_timeout(Some(address.unacknowledged))?;
            if let Some(keepalive) = address.keepalive {
                let keepalive = TcpKeepalive::new()
                    .with_time(keepalive.idle)
                    .with_interval(keepalive.interval)
                    .with_retries(keepalive.count);
                socket.set_tcp_keepalive(&keepalive)?;
            }
            let own = stream.local_addr()?;
            Ok((Either::Left(stream), Some(own)))
        }
        Place::Unix(path) => Ok((Either::Right(UnixStream::connect(path).await?), None)),
    }
}
