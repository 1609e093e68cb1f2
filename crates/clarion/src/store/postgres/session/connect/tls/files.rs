//! Certificates and keys from the files that the address names.

use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder};

use super::names::Verification;
use super::verifier::{TrustedCertificates, Verifier};
use crate::config::{PemFiles, PostgresTls, RootCertificates, SslMode, UserFile};

pub(super) fn load(tls: &PostgresTls) -> Result<(ClientConfig, Verification), String> {
    let roots = match tls.mode {
        SslMode::Disable | SslMode::Allow | SslMode::Prefer => Vec::new(),
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => roots(&tls.roots)?,
    };
    let verification = match tls.mode {
        // A file with roots makes `require` verify, too.
        SslMode::Require if !roots.is_empty() => Verification::Chain,
        SslMode::VerifyCa => Verification::Chain,
        SslMode::VerifyFull => Verification::ChainAndName,
        _ => Verification::None,
    };
    if verification != Verification::None && roots.is_empty() {
        return Err(
            "sslrootcert: there is nothing to verify the server's certificate against: name a file, or write sslrootcert=system"
                .to_owned(),
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusted = TrustedCertificates::new(roots)?;
    let verifier = Verifier::new(verification, trusted, &provider);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = with_own_certificate(builder, tls)?;
    config.enable_sni = tls.sends_name;
    Ok((config, verification))
}

fn roots(roots: &RootCertificates) -> Result<Vec<CertificateDer<'static>>, String> {
    match roots {
        RootCertificates::System => {
            let found = rustls_native_certs::load_native_certs();
            match (found.certs.is_empty(), found.errors.first()) {
                (true, Some(error)) => Err(format!("sslrootcert=system: {error}")),
                (true, None) => Err("sslrootcert=system: this system has no certificates".into()),
                (false, _) => Ok(found.certs),
            }
        }
        RootCertificates::File(UserFile::Named(path)) => certificates("sslrootcert", path),
        RootCertificates::File(UserFile::Usual(path)) if path.exists() => {
            certificates("sslrootcert", path)
        }
        RootCertificates::File(UserFile::Usual(_) | UserFile::None) => Ok(Vec::new()),
    }
}

fn with_own_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    tls: &PostgresTls,
) -> Result<ClientConfig, String> {
    let usual = tls.usual_certificate.as_ref();
    let usual = usual.filter(|files| files.certificate.exists());
    let Some(files) = tls.certificate.as_ref().or(usual) else {
        return Ok(builder.with_no_client_auth());
    };
    let PemFiles {
        certificate,
        private_key,
    } = files;
    let chain = certificates("sslcert", certificate)?;
    let wrong = |error: &dyn Display| format!("sslkey {}: {error}", private_key.display());
    let mode = std::fs::metadata(private_key).map_err(|error| wrong(&error))?;
    // As in libpq: its owner alone, or its group to read where it is root's.
    let forbidden = if mode.uid() == 0 { 0o037 } else { 0o077 };
    if mode.mode() & forbidden != 0 {
        return Err(wrong(
            &"others may read it; allow only its owner (chmod 600)",
        ));
    }
    let key = PrivateKeyDer::from_pem_file(private_key).map_err(|error| wrong(&error))?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map_err(|error| wrong(&error))
}

fn certificates(parameter: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn Display| format!("{parameter} {}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(&error))?;
    if found.is_empty() {
        return Err(wrong(&"holds no certificate"));
    }
    Ok(found)
}
