//! Addresses in answers, with a real nginx in front of the server: they lead back to it, whatever the nginx is told to pass on.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::support::document::documented;
use crate::support::{APP, TestServer, eventually, free_port};

/// An nginx of the test's own, on loopback.
struct Nginx {
    port: u16,
    _process: Child,
    _folder: tempfile::TempDir,
}

impl Nginx {
    /// `server` is what stands in its `server` block beside the port; `{backend}` is where Clarion listens.
    async fn start(server: &str, folder: tempfile::TempDir, port: u16) -> Self {
        let path = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {};\nerror_log {} warn;\nevents {{}}\nhttp {{\naccess_log off;\n\
             client_body_temp_path {};\nproxy_temp_path {};\nfastcgi_temp_path {};\nuwsgi_temp_path {};\nscgi_temp_path {};\n{server}\n}}\n",
            path("pid"),
            path("error.log"),
            path("body"),
            path("proxy"),
            path("fastcgi"),
            path("uwsgi"),
            path("scgi"),
        );
        std::fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let process = Command::new(program())
            .arg("-c")
            .arg(folder.path().join("nginx.conf"))
            .arg("-p")
            .arg(folder.path())
            .arg("-e")
            .arg(folder.path().join("start.log"))
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("nginx is missing: run `make setup`");
        eventually("nginx listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_ok()
        })
        .await;
        Self {
            port,
            _process: process,
            _folder: folder,
        }
    }

    /// What curl gets from a client's address of this nginx.
    async fn curl(&self, arguments: &[&str], path: &str) -> String {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--insecure"])
            .args(["--resolve", &format!("api.example:{}:127.0.0.1", self.port)])
            .args(arguments)
            .arg(format!("https://api.example:{}{path}", self.port))
            .output()
            .await
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }
}

fn program() -> PathBuf {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nginx/nginx");
    let places = [unpacked, PathBuf::from("/usr/sbin/nginx")];
    let found = places.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| PathBuf::from("nginx"))
}

/// A certificate that nobody verifies here.
fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (folder.join("nginx.pem"), folder.join("nginx.key"));
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "3650",
            "-subj",
            "/CN=api.example",
            "-keyout",
        ])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    (certificate, key)
}

/// Clarion without TLS, behind a proxy that it trusts.
const PLAIN: &str = "[http]\nplain = true\ntrusted_proxies = [\"127.0.0.1\"]\n";

/// An nginx with TLS and these lines in its location.
async fn nginx(server: &TestServer, location: &str, port: u16) -> Nginx {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let block = format!(
        "server {{\nlisten 127.0.0.1:{port} ssl;\nssl_certificate {};\nssl_certificate_key {};\nlocation / {{\nproxy_pass http://{};\n{location}\n}}\n}}",
        certificate.display(),
        key.display(),
        server.address,
    );
    Nginx::start(&block, folder, port).await
}

/// The address at which the answer offers a bill, and its token.
async fn offered(server: &TestServer, nginx: &Nginx, arguments: &[&str]) -> (String, String) {
    let signature = server.sign();
    let path = format!(
        "/2013-12-26/Accounts/{}/BillRecords?sig={}",
        crate::support::SID,
        signature.sig
    );
    let authorization = format!("Authorization: {}", signature.authorization);
    let body = format!("{{\"appId\":\"{APP}\",\"date\":\"day\"}}");
    let mut all = vec![
        "--header",
        &authorization,
        "--header",
        "Accept: application/json",
        "--header",
        "Content-Type: application/json",
        "--data",
        &body,
    ];
    all.extend(arguments);
    let answer = nginx.curl(&all, &path).await;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["statusCode"], "000000", "{answer}");
    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
    (text("downurl"), text("token"))
}

/// The address that a bill can be fetched at, as the answer has it, and what comes of fetching it.
async fn is_right(server: &TestServer, nginx: &Nginx, arguments: &[&str]) {
    let (url, token) = offered(server, nginx, arguments).await;
    let base = format!("https://api.example:{}", nginx.port);
    let path = url
        .strip_prefix(&base)
        .unwrap_or_else(|| panic!("{url} does not lead to {base}"));
    let bill = nginx
        .curl(&["--fail"], &format!("{path}?token={token}"))
        .await;
    assert!(bill.starts_with("orderid,"), "{bill}");
}

/// The address at which an upload can be fetched again, and what comes of fetching it.
async fn an_upload_is_right(server: &TestServer, nginx: &Nginx) {
    let folder = tempfile::tempdir().unwrap();
    let (file, fetched) = (folder.path().join("a.wav"), folder.path().join("fetched"));
    let bytes = crate::audio_files::wav(1000);
    std::fs::write(&file, &bytes).unwrap();
    let signature = server.sign();
    let operation = format!(
        "/2013-12-26/Accounts/{}/Calls/MediaFileUpload",
        crate::support::SID
    );
    let path = format!(
        "{operation}?sig={}&appid={APP}&filename=a.wav",
        signature.sig
    );
    let authorization = format!("Authorization: {}", signature.authorization);
    let data = format!("@{}", file.display());
    let arguments = [
        "--header",
        &authorization,
        "--header",
        "Accept: application/xml",
        "--data-binary",
        &data,
    ];
    let answer = nginx.curl(&arguments, &path).await;
    let wanted = format!("<downloadUrl>https://api.example:{}", nginx.port);
    let path = answer
        .split(&wanted)
        .nth(1)
        .unwrap_or_else(|| panic!("{answer}"));
    let path = path.split("</downloadUrl>").next().unwrap();
    let path = format!("{}&sig={}", path.replace("&amp;", "&"), signature.sig);
    let out = fetched.display().to_string();
    let arguments = ["--fail", "--header", &authorization, "--output", &out];
    nginx.curl(&arguments, &path).await;
    assert!(std::fs::read(fetched).unwrap() == bytes, "{path}");
}

const BILLS: &str = "[bills]\ngrace_seconds = 0\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_block_of_the_document_makes_addresses_right() {
    let server = TestServer::start_with(&format!("{PLAIN}{BILLS}")).await;
    server.permit_bills().await;
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let (certificate, key) = certificate(folder.path());
    let places = [
        ("listen 8883 ssl;", format!("listen 127.0.0.1:{port} ssl;")),
        (
            "/etc/ssl/voice.example.pem",
            certificate.display().to_string(),
        ),
        ("/etc/ssl/voice.example.key", key.display().to_string()),
        (
            "http://127.0.0.1:8080",
            format!("http://{}", server.address),
        ),
    ];
    let block = documented(
        "nginx",
        &places.each_ref().map(|(theirs, ours)| (*theirs, &**ours)),
    );
    let nginx = Nginx::start(&block, folder, port).await;
    is_right(&server, &nginx, &[]).await;
    is_right(&server, &nginx, &["--http1.0"]).await;
    // What a client says about itself is not passed on.
    is_right(
        &server,
        &nginx,
        &[
            "--header",
            "Forwarded: host=evil.example;proto=http",
            "--header",
            "X-Forwarded-Port: 1",
        ],
    )
    .await;
    let (url, _) = offered(
        &server,
        &nginx,
        &[
            "--header",
            "Host: a.example",
            "--header",
            "X-Forwarded-Port: 1",
        ],
    )
    .await;
    assert!(url.starts_with("https://a.example/bills/"), "{url}");
    an_upload_is_right(&server, &nginx).await;
    // Clients come to another port, which is mapped to this one.
    for (host, wanted) in [
        ("voice.example:9443", "https://voice.example:9443/bills/"),
        ("voice.example", "https://voice.example/bills/"),
    ] {
        let header = format!("Host: {host}");
        let (url, _) = offered(&server, &nginx, &["--header", &header]).await;
        assert!(url.starts_with(wanted), "{url}");
    }
    // An old stack of TLS, as Java 7 and .NET 4.0 have it.
    is_right(
        &server,
        &nginx,
        &[
            "--tlsv1.0",
            "--tls-max",
            "1.0",
            "--ciphers",
            "ECDHE-RSA-AES128-SHA:AES128-SHA:@SECLEVEL=0",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_with_its_port_is_enough() {
    let server = TestServer::start_with(&format!("{PLAIN}{BILLS}")).await;
    server.permit_bills().await;
    let nginx = nginx(&server, "proxy_set_header Host $http_host;", free_port()).await;
    is_right(&server, &nginx, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_port_or_all_of_it_may_come_in_headers_of_their_own() {
    let server = TestServer::start_with(&format!("{PLAIN}{BILLS}")).await;
    server.permit_bills().await;
    for headers in [
        "proxy_set_header Host $host; proxy_set_header X-Forwarded-Port $server_port;",
        "proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Proto $scheme;",
        "proxy_set_header Forwarded \"for=$remote_addr;host=\\\"$http_host\\\";proto=$scheme\";",
    ] {
        let nginx = nginx(&server, headers, free_port()).await;
        is_right(&server, &nginx, &[]).await;
    }
}

/// A bare `proxy_pass`, and a `Host` without its port, do not say where the client came to: the setting does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_setting_makes_addresses_right_whatever_is_passed_on() {
    let port = free_port();
    let public = PLAIN.replace(
        "plain = true",
        &format!("plain = true\npublic_url = \"https://api.example:{port}\""),
    );
    let server = TestServer::start_with(&format!("{public}{BILLS}")).await;
    server.permit_bills().await;
    for headers in [
        "",
        "proxy_set_header Host $host;",
        "proxy_set_header Host $http_host;",
    ] {
        let nginx = nginx(&server, headers, port).await;
        is_right(&server, &nginx, &[]).await;
        an_upload_is_right(&server, &nginx).await;
    }
}
