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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_peer_that_goes_away_without_a_word_is_found_out() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = Place::Tcp(listener.local_addr().unwrap());
        let text = "postgres://db/x?keepalives_idle=7&keepalives_interval=3&keepalives_count=2&tcp_user_timeout=4000";
        let (socket, own) = open(&PostgresAddress::parse(text).unwrap(), &place)
            .await
            .unwrap();
        let Either::Left(stream) = &socket else {
            panic!("not over TCP");
        };
        assert_eq!(own, stream.local_addr().ok());
        let socket = SockRef::from(stream);
        let limit = socket.tcp_user_timeout().unwrap();
        assert_eq!(limit, Some(Duration::from_secs(4)));
        assert!(socket.keepalive().unwrap() && stream.nodelay().unwrap());
        let time = socket.tcp_keepalive_time().unwrap();
        assert_eq!(time, Duration::from_secs(7));
        let interval = socket.tcp_keepalive_interval().unwrap();
        assert_eq!(interval, Duration::from_secs(3));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 2);
    }
}
