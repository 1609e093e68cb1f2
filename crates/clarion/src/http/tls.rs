//! The server's certificate: the operator's own, or one that is made at the first start and kept. A private CA signs the latter; its file
//! is for clients that verify.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use jiff::Zoned;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::HttpConfig;
use crate::private_files;

const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// The files of the certificates in use.
#[derive(Debug)]
pub struct Certificates {
    pub certificate: PathBuf,
    pub private_key: PathBuf,
    /// The file that clients need, if we made the certificate.
    pub ca: Option<PathBuf>,
}

impl Certificates {
    /// Returns the configured certificates, or our own in `folder`. Makes our own if they are missing or do not carry the configured names.
    pub fn find_or_make(config: &HttpConfig, folder: &Path, now: &Zoned) -> anyhow::Result<Self> {
        let expected = Self::expected(config, folder);
        if expected.ca.is_some() {
            make(config, folder, now)
                .with_context(|| format!("cannot make a certificate in {}", folder.display()))?;
        }
        Ok(expected)
    }

    /// Returns where the certificates are or will be.
    pub fn expected(config: &HttpConfig, folder: &Path) -> Self {
        if let Some(files) = &config.certificate {
            return Self {
                certificate: files.certificate.clone(),
                private_key: files.private_key.clone(),
                ca: None,
            };
        }
        Self {
            certificate: folder.join("server.pem"),
            private_key: folder.join("server.key"),
            ca: Some(folder.join("ca.pem")),
        }
    }

    pub fn acceptor(&self) -> anyhow::Result<TlsAcceptor> {
        let chain: Vec<_> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .with_context(|| {
                format!("cannot read the certificate {}", self.certificate.display())
            })?;
        let key = PrivateKeyDer::from_pem_file(&self.private_key).with_context(|| {
            format!("cannot read the private key {}", self.private_key.display())
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .with_context(|| {
                format!(
                    "{} and {} do not fit together",
                    self.certificate.display(),
                    self.private_key.display()
                )
            })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Makes the CA once and keeps it, so that clients that have it need not change. Makes the server's certificate again if the names have
/// changed. Both are valid for twenty years, because nobody would be there to renew them.
fn make(config: &HttpConfig, folder: &Path, now: &Zoned) -> anyhow::Result<()> {
    private_files::folder(folder)?;
    let (ca_file, ca_key_file, names_file) = (
        folder.join("ca.pem"),
        folder.join("ca.key"),
        folder.join("server.names"),
    );
    if !ca_file.exists() {
        let key = KeyPair::generate()?;
        let certificate = ca_params(now)?.self_signed(&key)?;
        write(&ca_key_file, &key.serialize_pem(), PRIVATE)?;
        write(&ca_file, &certificate.pem(), PUBLIC)?;
        // The CA that signed an old server certificate is gone.
        let _ = fs::remove_file(&names_file);
    }
    let names = config.host_names.join("\n");
    if fs::read_to_string(&names_file).is_ok_and(|made_for| made_for == names) {
        return Ok(());
    }
    let ca_key = KeyPair::from_pem(&fs::read_to_string(&ca_key_file)?)?;
    // An issuer consists of its name and its key; both are those of the kept CA.
    let issuer = Issuer::new(ca_params(now)?, ca_key);
    let key = KeyPair::generate()?;
    let certificate = server_params(&config.host_names, now)?.signed_by(&key, &issuer)?;
    write(&folder.join("server.key"), &key.serialize_pem(), PRIVATE)?;
    write(&folder.join("server.pem"), &certificate.pem(), PUBLIC)?;
    write(&names_file, &names, PUBLIC)?;
    Ok(())
}

fn ca_params(now: &Zoned) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    name_and_term(&mut params, "Clarion private CA", now);
    Ok(params)
}

fn server_params(names: &[String], now: &Zoned) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(names)
        .context("http.host_names holds something that is neither a name nor an address")?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    name_and_term(
        &mut params,
        names.first().map_or("clarion", String::as_str),
        now,
    );
    Ok(params)
}

fn name_and_term(params: &mut CertificateParams, name: &str, now: &Zoned) {
    params.distinguished_name.push(DnType::CommonName, name);
    let year = i32::from(now.year());
    // Valid from last year on, because some client's clock is always behind.
    params.not_before = date_time_ymd(year - 1, 1, 1);
    params.not_after = date_time_ymd(year + 20, 1, 1);
}

/// Writes a file aside and renames it, so that a crash leaves no half of a key.
fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let aside = path.with_extension("new");
    let _ = fs::remove_file(&aside);
    let mut file = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(mode)
        .open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(aside, path)
}
