//! A small client of our own API, as an application would be one: for `clarion call place`, the demonstration, the tests and the bench.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use jiff::Zoned;
use md5::{Digest, Md5};
use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::domain::account::{AccountSid, AppId, AuthToken};
use crate::outgoing::{add_roots, tls_connector};

/// An account's credentials, and what is made from them for one request.
#[derive(Debug, Clone)]
pub struct ApiCredentials {
    pub sid: AccountSid,
    pub token: AuthToken,
}

/// The two things that authenticate a request.
#[derive(Debug, Clone)]
pub struct Signature {
    pub sig: String,
    pub authorization: String,
}

impl ApiCredentials {
    pub fn sign(&self, now: &Zoned) -> Signature {
        let stamp = now.strftime("%Y%m%d%H%M%S").to_string();
        let mut md5 = Md5::new();
        md5.update(self.sid.as_str());
        md5.update(self.token.reveal());
        md5.update(&stamp);
        Signature {
            sig: hex::encode_upper(md5.finalize()),
            authorization: BASE64_STANDARD.encode(format!("{}:{stamp}", self.sid)),
        }
    }
}

/// The interface version that every server knows, unless its operator says otherwise.
const VERSION: &str = "2013-12-26";

/// Knows where a server is, which name its certificate must have, and which CA to trust.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    name: String,
    /// `None` for a server that speaks plain HTTP.
    tls: Option<TlsConnector>,
    version: String,
}

impl Client {
    pub fn new(address: SocketAddr, ca: &Path) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        add_roots(&mut roots, ca)?;
        Self::named("localhost", address, Some(roots))
    }

    /// A server whose certificate has this name and is signed by one of these authorities; without authorities, a server that speaks plain HTTP.
    pub fn named(
        name: &str,
        address: SocketAddr,
        roots: Option<RootCertStore>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            address,
            name: name.to_owned(),
            tls: roots.map(tls_connector).transpose()?,
            version: VERSION.to_owned(),
        })
    }

    /// The same, by another version of the interface.
    #[must_use]
    pub fn with_version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection on which nothing was said yet.
    pub async fn open(&self) -> anyhow::Result<TlsStream<TcpStream>> {
        let tls = self.tls.as_ref().context("this server speaks no TLS")?;
        let name = ServerName::try_from(self.name.clone())?;
        Ok(tls.connect(name, self.reach().await?).await?)
    }

    async fn reach(&self) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// One kept-alive connection.
    pub async fn connect(&self) -> anyhow::Result<Connection> {
        let sender = if self.tls.is_some() {
            let stream = self.open().await?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            sender
        } else {
            let stream = self.reach().await?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            sender
        };
        let port = self.address.port();
        let host = if self.name.contains(':') {
            format!("[{}]:{port}", self.name)
        } else {
            format!("{}:{port}", self.name)
        };
        Ok(Connection {
            sender,
            host,
            version: self.version.clone(),
        })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    version: String,
}

impl Connection {
    /// An operation below `/{version}/Accounts/{sid}/`, in the format that `media_type` names for both ways. A GET has no body.
    pub async fn operation(
        &mut self,
        credentials: &ApiCredentials,
        signature: &Signature,
        operation: &str,
        media_type: &str,
        body: Option<String>,
    ) -> anyhow::Result<String> {
        let body = body.map(Bytes::from);
        self.send_operation(credentials, signature, operation, media_type, body)
            .await
    }

    /// Adds an audio file to the application.
    pub async fn upload(
        &mut self,
        credentials: &ApiCredentials,
        signature: &Signature,
        app: &AppId,
        name: &str,
        bytes: Bytes,
    ) -> anyhow::Result<String> {
        let operation = format!("Calls/MediaFileUpload?appid={app}&filename={name}");
        self.send_operation(
            credentials,
            signature,
            &operation,
            "application/json",
            Some(bytes),
        )
        .await
    }

    async fn send_operation(
        &mut self,
        credentials: &ApiCredentials,
        signature: &Signature,
        operation: &str,
        media_type: &str,
        body: Option<Bytes>,
    ) -> anyhow::Result<String> {
        let query = if operation.contains('?') { '&' } else { '?' };
        let path = format!(
            "/{}/Accounts/{}/{operation}{query}sig={}",
            self.version, credentials.sid, signature.sig
        );
        let request = Request::builder()
            .method(if body.is_some() {
                Method::POST
            } else {
                Method::GET
            })
            .uri(path)
            .header(HOST, &self.host)
            .header(ACCEPT, media_type)
            .header(CONTENT_TYPE, format!("{media_type};charset=utf-8"))
            .header(AUTHORIZATION, &signature.authorization)
            .body(Full::from(body.unwrap_or_default()))?;
        let (status, answer) = whole(self.send(request).await?).await?;
        if status != 200 {
            bail!("HTTP status {status}: {answer}");
        }
        Ok(answer)
    }

    pub async fn get(&mut self, path: &str) -> anyhow::Result<(u16, String)> {
        whole(self.exchange("GET", path, &[], String::new()).await?).await
    }

    /// Any request, and its answer as it comes.
    pub async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> anyhow::Result<Response<Incoming>> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(HOST, &self.host);
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        self.send(request.body(Full::from(body))?).await
    }

    /// A file that may be long, thrown away as it comes: its status and how many bytes it had.
    pub async fn download(&mut self, path: &str) -> anyhow::Result<(u16, u64)> {
        let response = self.exchange("GET", path, &[], String::new()).await?;
        let status = response.status().as_u16();
        let (mut body, mut bytes) = (response.into_body(), 0);
        while let Some(frame) = body.frame().await {
            bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
        }
        Ok((status, bytes))
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }
}

/// The status of an answer and its whole text.
async fn whole(answer: Response<Incoming>) -> anyhow::Result<(u16, String)> {
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(body.to_vec())?))
}
