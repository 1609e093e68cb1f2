//! TLS to PostgreSQL: the modes that libpq has, against a real server, and what each of them does with certificates and refusals.

mod certificates;
mod direct;
mod modes;
mod passwords;

use std::path::{Path, PathBuf};

use clarion::store::{Database, DatabaseRoute};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::support::cluster::{Cluster, write_private};
use crate::support::eventually;

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

impl Expected {
    fn parse(text: &'static str) -> Self {
        match text {
            "plain" => Self::Plain,
            "encrypted" => Self::Encrypted,
            "verified" => Self::Verified,
            _ => Self::Refused(text.strip_prefix("refused: ").unwrap()),
        }
    }
}

fn judge(what: &str, reached: &Result<DatabaseRoute, String>, expected: Expected) {
    match (reached, expected) {
        (Ok(route), Expected::Plain) => assert_eq!(route.encryption, None, "{what}"),
        (Ok(route), Expected::Encrypted | Expected::Verified) => {
            let version = route.encryption.as_deref();
            assert!(
                version.is_some_and(|version| version.starts_with("TLSv1.")),
                "{what}: {route:?}"
            );
            assert_eq!(
                route.verified,
                matches!(expected, Expected::Verified),
                "{what}"
            );
        }
        (Err(said), Expected::Refused(words)) => assert!(said.contains(words), "{what}: {said}"),
        _ => panic!("{what}: {reached:?}, not {expected:?}"),
    }
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}
