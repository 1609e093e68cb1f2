//! The channel binding `tls-server-end-point` (RFC 5929, section 4.1): a digest of the server's certificate.

use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_parser::parse_x509_certificate;

/// By the hash of the certificate's own signature, or SHA-256 where that is an older one. `None`: the signature names no hash.
pub(super) fn server_end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    let algorithm = parsed.signature_algorithm.algorithm.to_id_string();
    match algorithm.as_str() {
        // MD5, SHA-1 and SHA-256 with RSA; SHA-1 and SHA-256 with ECDSA.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => Some(Sha256::digest(certificate).to_vec()),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => {
            Some(Sha384::digest(certificate).to_vec())
        }
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => {
            Some(Sha512::digest(certificate).to_vec())
        }
        _ => None,
    }
}
