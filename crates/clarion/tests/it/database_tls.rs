//! TLS to PostgreSQL: the modes that libpq has, against a real server, and what each of them does with certificates and refusals.

use std::path::{Path, PathBuf};

use clarion::store::{Database, DatabaseRoute};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use crate::support::child::Installation;
use crate::support::cluster::{Cluster, write_private};
use crate::support::{eventually, postgres};

/// Who comes in how: `anyone` either way, and two users only one way.
const ACCESS: &str = "\
host all clarion 127.0.0.1/32 trust
host all anyone 127.0.0.1/32 trust
hostssl all encrypted 127.0.0.1/32 trust
hostnossl all plain 127.0.0.1/32 trust
hostssl all certified 127.0.0.1/32 cert
host all secret 127.0.0.1/32 scram-sha-256
";
const USERS: &str = "CREATE ROLE anyone LOGIN; CREATE ROLE encrypted LOGIN; CREATE ROLE plain LOGIN; CREATE ROLE certified LOGIN; \
     CREATE ROLE secret LOGIN PASSWORD 'open:sesame'";

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = named(name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn named(name: &str, alternative: &[&str]) -> CertificateParams {
    let names = alternative.iter().map(|name| (*name).to_owned());
    let mut params = CertificateParams::new(names.collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Certificate and key, as PEM.
fn issued(params: &CertificateParams, issuer: &Issuer) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// A server with TLS, its authority, and a folder for the files of a client.
struct Secured {
    cluster: Cluster,
    ours: Issuer,
    folder: tempfile::TempDir,
}

impl Secured {
    async fn start() -> Self {
        let ours = authority("ours");
        let (certificate, key) = issued(&named("db", &["localhost"]), &ours);
        let ours_pem = ours.pem();
        let files = [
            ("server.crt", certificate.as_str()),
            ("server.key", key.as_str()),
            ("root.crt", ours_pem.as_str()),
        ];
        let settings = "ssl = on\nssl_ca_file = 'root.crt'";
        let cluster = Cluster::start(settings, ACCESS, &files).await;
        cluster.execute(USERS).await;
        let folder = tempfile::tempdir().unwrap();
        write_private(&folder.path().join("ours.pem"), &ours.pem());
        write_private(
            &folder.path().join("foreign.pem"),
            &authority("foreign").pem(),
        );
        let (certificate, key) = issued(&named("certified", &[]), &ours);
        write_private(&folder.path().join("client.pem"), &certificate);
        write_private(&folder.path().join("client.key"), &key);
        Self {
            cluster,
            ours,
            folder,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `$` in the parameters is the client's folder.
    fn url(&self, user: &str, host: &str, parameters: &str) -> String {
        let folder = self.folder.path().display().to_string();
        let parameters = parameters.replace('$', &folder);
        let port = self.cluster.0.port;
        format!("postgres://{user}@{host}:{port}/postgres?{parameters}")
    }

    async fn reach(
        &self,
        user: &str,
        host: &str,
        parameters: &str,
    ) -> Result<DatabaseRoute, String> {
        reach(&self.url(user, host, parameters)).await
    }

    /// The server shows this certificate from now on.
    async fn show(&self, (certificate, key): (String, String), root: &str) {
        self.cluster.replace("server.crt", &certificate);
        self.cluster.replace("server.key", &key);
        write_private(&self.file("shown.pem"), root);
        eventually("the server shows it", async || {
            let shown = self.reach(
                "anyone",
                "localhost",
                "sslmode=verify-ca&sslrootcert=$/shown.pem",
            );
            shown.await.is_ok()
        })
        .await;
    }
}

async fn reach(url: &str) -> Result<DatabaseRoute, String> {
    let database = Database::parse(url).unwrap();
    let found = database.inspect().await;
    let found = found.map_err(|error| format!("{error:#}"));
    found.map(|found| found.route.unwrap())
}

/// What comes of a way to the server.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Plain,
    Encrypted,
    Verified,
    /// With these words.
    Refused(&'static str),
}
use Expected::{Encrypted, Plain, Refused, Verified};

fn judge(what: &str, reached: &Result<DatabaseRoute, String>, expected: Expected) {
    match (reached, expected) {
        (Ok(route), Plain) => assert_eq!(route.encryption, None, "{what}"),
        (Ok(route), Encrypted | Verified) => {
            let version = route.encryption.as_deref();
            assert!(
                version.is_some_and(|version| version.starts_with("TLSv1.")),
                "{what}: {route:?}"
            );
            assert_eq!(route.verified, matches!(expected, Verified), "{what}");
        }
        (Err(said), Refused(words)) => assert!(said.contains(words), "{what}: {said}"),
        _ => panic!("{what}: {reached:?}, not {expected:?}"),
    }
}

#[tokio::test]
async fn every_mode_does_what_libpq_says() {
    let secured = Secured::start().await;
    let cases = [
        // Whether there is TLS at all.
        ("anyone", "localhost", "sslmode=disable", Plain),
        ("anyone", "localhost", "sslmode=allow", Plain),
        ("anyone", "localhost", "sslmode=prefer", Encrypted),
        ("anyone", "localhost", "", Encrypted),
        ("anyone", "localhost", "sslmode=require", Encrypted),
        // The other way, where the server wants that.
        ("encrypted", "localhost", "sslmode=allow", Encrypted),
        (
            "encrypted",
            "localhost",
            "sslmode=disable",
            Refused("no encryption"),
        ),
        ("plain", "localhost", "sslmode=prefer", Plain),
        (
            "plain",
            "localhost",
            "sslmode=require",
            Refused("SSL encryption"),
        ),
        // Whom the server must be vouched for by, and as whom.
        (
            "anyone",
            "localhost",
            "sslmode=verify-ca&sslrootcert=$/ours.pem",
            Verified,
        ),
        (
            "anyone",
            "127.0.0.1",
            "sslmode=verify-ca&sslrootcert=$/ours.pem",
            Verified,
        ),
        (
            "anyone",
            "localhost",
            "sslmode=verify-full&sslrootcert=$/ours.pem",
            Verified,
        ),
        (
            "anyone",
            "127.0.0.1",
            "sslmode=verify-full&sslrootcert=$/ours.pem",
            Refused("not valid for name"),
        ),
        (
            "anyone",
            "db.example",
            "hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=$/ours.pem",
            Refused("not valid for name"),
        ),
        (
            "anyone",
            "localhost",
            "hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=$/ours.pem",
            Verified,
        ),
        (
            "anyone",
            "localhost",
            "sslmode=verify-ca&sslrootcert=$/foreign.pem",
            Refused("UnknownIssuer"),
        ),
        (
            "anyone",
            "localhost",
            "sslmode=verify-full&sslrootcert=$/foreign.pem",
            Refused("UnknownIssuer"),
        ),
        // A file with roots makes `require` verify; the weaker modes do not look at it.
        (
            "anyone",
            "127.0.0.1",
            "sslmode=require&sslrootcert=$/ours.pem",
            Verified,
        ),
        (
            "anyone",
            "localhost",
            "sslmode=require&sslrootcert=$/foreign.pem",
            Refused("UnknownIssuer"),
        ),
        (
            "anyone",
            "localhost",
            "sslmode=prefer&sslrootcert=$/foreign.pem",
            Encrypted,
        ),
        // Files that are not there, or are nothing.
        (
            "anyone",
            "localhost",
            "sslmode=require&sslrootcert=$/nowhere.pem",
            Refused("sslrootcert"),
        ),
        (
            "anyone",
            "localhost",
            "sslmode=verify-full&sslrootcert=$/client.key",
            Refused("sslrootcert"),
        ),
        // Our own certificate.
        (
            "certified",
            "localhost",
            "sslmode=require&sslcert=$/client.pem&sslkey=$/client.key",
            Encrypted,
        ),
        (
            "certified",
            "localhost",
            "sslmode=require",
            Refused("certificate"),
        ),
        (
            "certified",
            "localhost",
            "sslmode=require&sslcert=$/client.pem&sslkey=$/nowhere.key",
            Refused("sslkey"),
        ),
        // The password is bound to the certificate; without TLS there is nothing to bind it to.
        (
            "secret:open%3Asesame",
            "localhost",
            "sslmode=require&channel_binding=require",
            Encrypted,
        ),
        (
            "secret:open%3Asesame",
            "localhost",
            "sslmode=disable&channel_binding=require",
            Refused("channel binding"),
        ),
        (
            "secret:open%3Asesame",
            "localhost",
            "sslmode=disable",
            Plain,
        ),
        // A wrong password is not tried again without TLS.
        (
            "secret:wrong",
            "localhost",
            "sslmode=prefer",
            Refused("28P01"),
        ),
    ];
    for (user, host, parameters, expected) in cases {
        let what = format!("{user} {host} {parameters}");
        let reached = secured.reach(user, host, parameters).await;
        judge(&what, &reached, expected);
        if let Err(said) = reached {
            assert!(
                !said.contains("sesame") && !said.contains("wrong"),
                "{said}"
            );
        }
    }
    let readable = secured.file("readable.key");
    std::fs::copy(secured.file("client.key"), &readable).unwrap();
    open_to_all(&readable);
    let parameters = "sslmode=require&sslcert=$/client.pem&sslkey=$/readable.key";
    let reached = secured.reach("certified", "localhost", parameters).await;
    judge("a key that others may read", &reached, Refused("chmod 600"));
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}

#[tokio::test]
async fn a_server_without_tls_is_refused_only_by_those_who_insist() {
    let url = postgres::empty_database().await;
    for (mode, expected) in [
        ("disable", Plain),
        ("allow", Plain),
        ("prefer", Plain),
        ("require", Refused("does not support TLS")),
        (
            "verify-full&sslrootcert=system",
            Refused("does not support TLS"),
        ),
    ] {
        let reached = reach(&format!("{url}?sslmode={mode}")).await;
        judge(mode, &reached, expected);
    }
}

/// Certificates as people make them for PostgreSQL: the server's own as root, a common name instead of alternative ones.
#[tokio::test]
async fn certificates_that_sign_themselves_or_have_only_a_common_name_are_verified() {
    let secured = Secured::start().await;
    let full = "sslmode=verify-full&sslrootcert=$/shown.pem";
    let common = issued(&named("localhost", &[]), &secured.ours);
    secured.show(common, &secured.ours.pem()).await;
    let reached = secured.reach("anyone", "localhost", full).await;
    judge("a common name", &reached, Verified);
    let reached = secured.reach("anyone", "127.0.0.1", full).await;
    judge("another one", &reached, Refused("not valid for"));

    let own = authority("localhost");
    let pair = (own.pem(), own.key().serialize_pem());
    secured.show(pair, &own.pem()).await;
    let reached = secured.reach("anyone", "localhost", full).await;
    judge("its own root", &reached, Verified);
    let with_ours = "sslmode=verify-ca&sslrootcert=$/ours.pem";
    let reached = secured.reach("anyone", "localhost", with_ours).await;
    judge(
        "somebody's own root",
        &reached,
        Refused("invalid peer certificate"),
    );

    let mut params = named("localhost", &["localhost"]);
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let key = KeyPair::generate().unwrap();
    let expired = params.self_signed(&key).unwrap();
    secured.cluster.replace("server.crt", &expired.pem());
    secured.cluster.replace("server.key", &key.serialize_pem());
    write_private(&secured.file("shown.pem"), &expired.pem());
    eventually(
        "an expired one is refused, though it is its own root",
        async || {
            let reached = secured.reach("anyone", "localhost", full).await;
            reached.is_err_and(|said| said.contains("Expired"))
        },
    )
    .await;
}

/// PostgreSQL's own documentation makes certificates of version 1. Nobody can verify them here, and whoever does not want to may use them.
#[tokio::test]
async fn a_certificate_of_version_1_serves_where_it_is_not_verified() {
    let secured = Secured::start().await;
    let made = std::process::Command::new("sh")
        .current_dir(secured.folder.path())
        .arg("-c")
        .arg(
            "openssl req -new -nodes -newkey rsa:2048 -keyout old.key -subj /CN=localhost -out old.csr && \
             openssl req -x509 -new -nodes -newkey rsa:2048 -keyout ca.key -subj /CN=ca -out shown.pem && \
             openssl x509 -req -in old.csr -days 9 -CA shown.pem -CAkey ca.key -CAcreateserial -out old.pem",
        )
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let read = |name: &str| std::fs::read_to_string(secured.file(name)).unwrap();
    secured.cluster.replace("server.crt", &read("old.pem"));
    secured.cluster.replace("server.key", &read("old.key"));
    eventually("the server shows it", async || {
        let verified = secured.reach(
            "anyone",
            "localhost",
            "sslmode=verify-ca&sslrootcert=$/ours.pem",
        );
        verified.await.is_err()
    })
    .await;
    for mode in ["sslmode=prefer", "sslmode=require"] {
        let reached = secured.reach("anyone", "localhost", mode).await;
        judge(mode, &reached, Encrypted);
    }
    let bound = "sslmode=require&channel_binding=require";
    let reached = secured
        .reach("secret:open%3Asesame", "localhost", bound)
        .await;
    judge(bound, &reached, Encrypted);
    let verified = "sslmode=verify-ca&sslrootcert=$/shown.pem";
    let reached = secured.reach("anyone", "localhost", verified).await;
    judge(verified, &reached, Refused("UnsupportedCertVersion"));
}

#[tokio::test]
async fn passwords_come_out_of_a_file_that_others_cannot_read() {
    let secured = Secured::start().await;
    let port = secured.cluster.0.port;
    let file = secured.file("pass");
    write_private(
        &file,
        &format!("# ours\nelsewhere:*:*:*:wrong\n*:{port}:postgres:secret:open\\:sesame\n"),
    );
    let named = "passfile=$/pass";
    judge(
        named,
        &secured.reach("secret", "localhost", named).await,
        Encrypted,
    );
    let nobody = secured
        .reach("secret", "localhost", "passfile=$/nowhere")
        .await;
    judge("no file", &nobody, Refused("the password file"));
    open_to_all(&file);
    let open = secured.reach("secret", "localhost", named).await;
    judge("an open file", &open, Refused("chmod 600"));
    // By the variable, as in libpq, and with the roots of the system.
    write_private(&file, "*:*:*:*:open\\:sesame\n");
    let url = secured.url("secret", "localhost", "sslrootcert=system");
    let installation = Installation::empty(&url);
    let check = async |roots: &str| {
        let said = installation
            .clarion_with(
                &["check"],
                &[
                    ("PGPASSFILE", &file),
                    ("SSL_CERT_FILE", &secured.file(roots)),
                ],
            )
            .await;
        String::from_utf8(said.stdout).unwrap()
    };
    let said = check("ours.pem").await;
    assert!(said.contains("; its certificate is verified"), "{said}");
    let said = check("foreign.pem").await;
    assert!(said.contains("UnknownIssuer"), "{said}");
}

/// A server that begins with TLS, without being asked for it first.
#[tokio::test]
async fn tls_begins_at_once_where_that_is_agreed() {
    let ours = authority("ours");
    let (certificate, key) = issued(&named("db", &["localhost"]), &ours);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("ours.pem");
    write_private(&root, &ours.pem());
    let mut direct = url::Url::parse(&postgres::empty_database().await).unwrap();
    let upstream = format!("127.0.0.1:{}", direct.port().unwrap());
    let front = direct_front(&certificate, &key, upstream, b"postgresql").await;
    let other = direct_front(&certificate, &key, String::new(), b"http/1.1").await;
    let query = format!(
        "sslmode=verify-full&sslnegotiation=direct&sslrootcert={}",
        root.display()
    );
    direct.set_host(Some("localhost")).unwrap();
    direct.set_query(Some(&query));
    direct.set_port(Some(front)).unwrap();
    judge("PostgreSQL", &reach(direct.as_str()).await, Verified);
    direct.set_port(Some(other)).unwrap();
    let reached = reach(direct.as_str()).await;
    judge("something else", &reached, Refused("TLS"));
}

/// Speaks TLS at its port, and hands on what is inside.
async fn direct_front(certificate: &str, key: &str, upstream: String, protocol: &[u8]) -> u16 {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else {
                    return;
                };
                let mut server = tokio::net::TcpStream::connect(upstream).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                let _ = client.shutdown().await;
            });
        }
    });
    port
}
