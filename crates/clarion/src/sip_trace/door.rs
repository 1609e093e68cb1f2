//! The door to the ring: a socket in the data folder, for the user of the server and for root on the same machine.
//!
//! A client sends one line that says what it wants, and gets one line for each message and one more at the end. Lines are JSON.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use supervisor::{Supervisor, TaskGuard, Watch};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{KeptMessage, TraceFilter, TraceRing};

/// Further clients wait.
const CLIENTS: usize = 4;
const LONGEST_REQUEST: u64 = 4096;
/// Time for the request, and for the whole answer.
const REQUEST_TIME: Duration = Duration::from_secs(5);
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// After an error of the operating system, such as too many open files.
const PAUSE: Duration = Duration::from_secs(1);

/// Where the door of a server with this data folder is.
pub fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("trace.sock")
}

/// What the door knows: the messages, and where trunks are.
#[derive(Clone)]
struct TraceSource {
    ring: Arc<TraceRing>,
    trunks: Arc<dyn Fn() -> Vec<(String, Vec<SocketAddr>)> + Send + Sync>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum TraceLine {
    Message(KeptMessage),
    /// Everything was said. `since` is the time of the oldest message in the ring, wanted or not.
    End {
        since: Option<Timestamp>,
    },
    Refused(String),
}

/// It is open until it is dropped.
pub struct TraceDoor {
    _task: TaskGuard,
    path: PathBuf,
}

impl fmt::Debug for TraceDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceDoor")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl TraceDoor {
    /// `trunks` says which addresses each trunk has now. `supervisor` knows the task as `trace-door`.
    pub fn open(
        path: PathBuf,
        ring: Arc<TraceRing>,
        trunks: impl Fn() -> Vec<(String, Vec<SocketAddr>)> + Send + Sync + 'static,
        supervisor: &Supervisor,
    ) -> io::Result<Self> {
        let listener = Arc::new(listen(&path)?);
        let source = TraceSource {
            ring,
            trunks: Arc::new(trunks),
        };
        let task = supervisor.restart("trace-door", None, move |watch| {
            serve(Arc::clone(&listener), source.clone(), watch)
        });
        Ok(Self { _task: task, path })
    }
}

impl Drop for TraceDoor {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => return Err(io::Error::from(ErrorKind::AddrInUse)),
        // A server that was killed has left it.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
        Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

async fn serve(listener: Arc<UnixListener>, source: TraceSource, watch: Watch) {
    let places = Arc::new(Semaphore::new(CLIENTS));
    let mut clients = JoinSet::new();
    loop {
        watch.heartbeat();
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        while clients.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) => {
                let source = source.clone();
                clients.spawn(async move {
                    let _place = place;
                    if let Err(error) = source.answer(client).await {
                        tracing::debug!(%error, "a trace could not be handed out");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "nobody can ask for a trace now");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl TraceSource {
    async fn answer(&self, mut client: UnixStream) -> anyhow::Result<()> {
        // For the moment between making the socket and making it private.
        let asking = client.peer_cred()?.uid();
        let own = rustix::process::geteuid().as_raw();
        ensure!(asking == own || asking == 0, "user {asking} may not ask");
        let (reading, writing) = client.split();
        let mut request = String::new();
        let mut reading = BufReader::new(reading.take(LONGEST_REQUEST));
        timeout(REQUEST_TIME, reading.read_line(&mut request)).await??;
        let mut writing = BufWriter::new(writing);
        let answer = async {
            match serde_json::from_str(&request) {
                Ok(filter) => self.say(&mut writing, &filter).await?,
                Err(error) => {
                    let refused = TraceLine::Refused(format!("not a request: {error}"));
                    write(&mut writing, &refused).await?;
                }
            }
            writing.flush().await
        };
        timeout(ANSWER_TIME, answer).await??;
        Ok(())
    }

    async fn say(
        &self,
        writing: &mut (impl AsyncWriteExt + Unpin),
        filter: &TraceFilter,
    ) -> io::Result<()> {
        let addresses = match filter {
            TraceFilter::Trunk(name) => match self.addresses(name) {
                Ok(addresses) => addresses,
                Err(unknown) => return write(writing, &TraceLine::Refused(unknown)).await,
            },
            TraceFilter::CallSid(_) | TraceFilter::Number(_) => Vec::new(),
        };
        let all = self.ring.messages();
        let since = all.first().map(|oldest| oldest.at);
        for message in filter.select(all, &addresses) {
            write(writing, &TraceLine::Message(message.as_ref().clone())).await?;
        }
        write(writing, &TraceLine::End { since }).await
    }

    fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, String> {
        let trunks = (self.trunks)();
        let known = trunks.iter().map(|(name, _)| name.as_str());
        let known = known.collect::<Vec<_>>().join(", ");
        let found = trunks.into_iter().find(|(trunk, _)| trunk == name);
        let (_, addresses) =
            found.ok_or_else(|| format!("there is no trunk {name}; the server has: {known}"))?;
        Ok(addresses)
    }
}

async fn write(writing: &mut (impl AsyncWriteExt + Unpin), line: &TraceLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    writing.write_all(&text).await
}

/// What a server has said.
#[derive(Debug)]
pub struct TraceAnswer {
    pub messages: Vec<KeptMessage>,
    /// The time of the oldest message that the server still has.
    pub since: Option<Timestamp>,
}

/// Asks the server with the door at `path`. `None` if none is there.
pub async fn ask(path: &Path, filter: &TraceFilter) -> anyhow::Result<Option<TraceAnswer>> {
    let mut server = match UnixStream::connect(path).await {
        Ok(server) => server,
        Err(error)
            if [ErrorKind::NotFound, ErrorKind::ConnectionRefused].contains(&error.kind()) =>
        {
            return Ok(None);
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot reach {}", path.display()));
        }
    };
    let mut request = serde_json::to_vec(filter)?;
    request.push(b'\n');
    server.write_all(&request).await?;
    let answer = timeout(ANSWER_TIME, read_answer(server)).await;
    answer.context("the server takes too long")?.map(Some)
}

async fn read_answer(server: UnixStream) -> anyhow::Result<TraceAnswer> {
    let mut lines = BufReader::new(server).lines();
    let mut messages = Vec::new();
    while let Some(line) = lines.next_line().await? {
        match serde_json::from_str(&line)? {
            TraceLine::Message(message) => messages.push(message),
            TraceLine::End { since } => return Ok(TraceAnswer { messages, since }),
            TraceLine::Refused(reason) => bail!(reason),
        }
    }
    bail!("the server broke off: it may have stopped, or you may not be its user")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn said(path: &Path, request: &[u8]) -> String {
        let mut client = UnixStream::connect(path).await.unwrap();
        // The server may close before it has read everything.
        let _ = client.write_all(request).await;
        let mut said = String::new();
        let _ = client.read_to_string(&mut said).await;
        said
    }

    fn open(path: &Path) -> io::Result<TraceDoor> {
        let ring = Arc::new(TraceRing::new(1000));
        TraceDoor::open(path.to_owned(), ring, Vec::new, &Supervisor::new())
    }

    #[tokio::test]
    async fn nonsense_is_refused_and_a_request_without_end_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_in(folder.path());
        let _door = open(&path).unwrap();
        assert!(said(&path, b"hello\n").await.contains("not a request"));
        let long = said(&path, &vec![b'x'; 100_000]).await;
        assert!(long.is_empty() || long.contains("not a request"), "{long}");
        let trunk = TraceFilter::Trunk("a".to_owned());
        let unknown = ask(&path, &trunk).await.unwrap_err().to_string();
        assert!(unknown.contains("there is no trunk a"), "{unknown}");
        let call = TraceFilter::CallSid("x".to_owned());
        let answer = ask(&path, &call).await.unwrap().unwrap();
        assert!(answer.messages.is_empty() && answer.since.is_none());
    }

    #[tokio::test]
    async fn clients_that_say_nothing_keep_no_place_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_in(folder.path());
        let _door = open(&path).unwrap();
        let mut silent = Vec::new();
        for _ in 0..3 * CLIENTS {
            silent.push(UnixStream::connect(&path).await.unwrap());
        }
        tokio::time::pause();
        let call = TraceFilter::CallSid("x".to_owned());
        assert!(ask(&path, &call).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn the_door_is_private_and_goes_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_in(folder.path());
        let door = open(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = open(&path).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        drop(door);
        assert!(!path.exists());
        let call = TraceFilter::CallSid("x".to_owned());
        assert!(ask(&path, &call).await.unwrap().is_none());
        // As a killed server leaves it.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(ask(&path, &call).await.unwrap().is_none());
        let _door = open(&path).unwrap();
        assert!(ask(&path, &call).await.unwrap().is_some());
    }
}
