//! A visitor of the console: keeps cookies and sends forms as a browser does, and whatever a browser would not send when a test wants that.

use std::collections::BTreeMap;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use url::form_urlencoded;

use super::PASSWORD;
use crate::support::TestServer;
use crate::support::raw::Door;

pub struct Visitor {
    door: Door,
    pub cookies: BTreeMap<String, String>,
    pub language: &'static str,
}

pub struct Answer {
    pub status: u16,
    pub headers: hyper::HeaderMap,
    pub body: String,
    pub bytes: Bytes,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// Whether it leads to this address.
    pub fn leads_to(&self, address: &str) -> bool {
        self.status == 303 && self.header("location") == address
    }

    /// Whether it leads to the page where one signs in.
    pub fn leads_to_sign_in(&self) -> bool {
        self.status == 303 && self.header("location").starts_with("/sign-in")
    }
}

impl Visitor {
    pub fn new(server: &TestServer) -> Self {
        Self::at(Door {
            address: server.console,
            ca: server.ca.clone(),
        })
    }

    /// A visitor of a console in another process.
    pub fn at(door: Door) -> Self {
        Self {
            door,
            cookies: BTreeMap::new(),
            language: "en",
        }
    }

    /// A visitor who has signed in.
    pub async fn signed_in(server: &TestServer, name: &str) -> Self {
        let mut visitor = Self::new(server);
        let answer = visitor.sign_in(name, PASSWORD).await;
        assert!(answer.leads_to("/"), "{}", answer.body);
        visitor
    }

    pub async fn sign_in(&mut self, name: &str, password: &str) -> Answer {
        let fields = [("name", name), ("password", password)];
        self.post("/sign-in", &fields).await
    }

    /// The address of the console, as its pages know it.
    pub fn origin(&self) -> String {
        format!("https://localhost:{}", self.door.address.port())
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    /// Sends a form, as a page of the console does.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = self.origin();
        self.post_with(path, fields, &[("origin", &origin)]).await
    }

    pub async fn post_with(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut form = form_urlencoded::Serializer::new(String::new());
        let body = form.extend_pairs(fields).finish();
        let mut headers = headers.to_vec();
        headers.push(("content-type", "application/x-www-form-urlencoded"));
        self.ask("POST", path, &headers, &body).await
    }

    /// The token that the forms of this visitor carry.
    pub async fn token(&mut self) -> String {
        let page = self.get("/audit").await.body;
        let value = page.split("name=\"token\" value=\"").nth(1).unwrap();
        value.split('"').next().unwrap().to_owned()
    }

    /// Sends a form with a file.
    pub async fn upload(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        name: &str,
        bytes: &[u8],
    ) -> Answer {
        let mut body = Vec::new();
        for (name, value) in fields {
            let part = format!(
                "--edge\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
            body.extend_from_slice(part.as_bytes());
        }
        let file = format!(
            "--edge\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\ncontent-type: audio/wav\r\n\r\n"
        );
        body.extend_from_slice(file.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n--edge--\r\n");
        let origin = self.origin();
        let headers = [
            ("origin", origin.as_str()),
            ("content-type", "multipart/form-data; boundary=edge"),
        ];
        self.ask_bytes("POST", path, &headers, body.into()).await
    }

    pub async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let body = Bytes::from(body.to_owned());
        self.ask_bytes(method, path, headers, body).await
    }

    async fn ask_bytes(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        let response = self.send_bytes(method, path, headers, body).await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        for cookie in headers.get_all("set-cookie") {
            let (pair, rest) = cookie.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if rest.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Answer {
            status,
            headers,
            body: String::from_utf8_lossy(&body).into_owned(),
            bytes: body,
        }
    }

    /// Sends a request on a connection of its own. The body of the answer may never end.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let body = Bytes::from(body.to_owned());
        self.send_bytes(method, path, headers, body).await
    }

    async fn send_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Response<Incoming> {
        let stream = self.door.tls(&[]).await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", format!("localhost:{}", self.door.address.port()))
            .header("accept-language", self.language);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        for (name, value) in &self.cookies {
            request = request.header("cookie", format!("{name}={value}"));
        }
        let body = Full::new(body);
        sender
            .send_request(request.body(body).unwrap())
            .await
            .unwrap()
    }
}
