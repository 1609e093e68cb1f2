//! How far a server must prove who it is. The handshake's signature is always verified: without that, a password that is bound to the
//! server's certificate would not be bound to the server.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, RootCertStore, SignatureScheme,
};
use x509_parser::parse_x509_certificate;
use x509_parser::time::ASN1Time;

use super::names::{self, Verification};

#[derive(Debug)]
pub(super) struct TrustedCertificates {
    /// As anchors of chains.
    anchors: RootCertStore,
    /// As they are: a certificate that signs itself is trusted where it is in the file, whatever else it may be used for.
    themselves: Vec<CertificateDer<'static>>,
}

impl TrustedCertificates {
    pub fn new(themselves: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let mut anchors = RootCertStore::empty();
        let (taken, _) = anchors.add_parsable_certificates(themselves.iter().cloned());
        if taken == 0 && !themselves.is_empty() {
            return Err("sslrootcert: none of its certificates can be read".to_owned());
        }
        Ok(Self {
            anchors,
            themselves,
        })
    }
}

#[derive(Debug)]
pub(super) struct Verifier {
    verification: Verification,
    trusted: TrustedCertificates,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub fn new(
        verification: Verification,
        trusted: TrustedCertificates,
        provider: &Arc<CryptoProvider>,
    ) -> Self {
        Self {
            verification,
            trusted,
            algorithms: provider.signature_verification_algorithms,
        }
    }

    fn verify_chain(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.trusted.themselves.contains(certificate) {
            return is_valid_at(certificate, now);
        }
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(certificate)?,
            &self.trusted.anchors,
            intermediates,
            now,
            self.algorithms.all,
        )
    }

    /// The library reads certificates of version 3 only. Where nobody asks whose it is, an older one will do, by its key.
    fn is_older(&self, certificate: &CertificateDer<'_>) -> bool {
        self.verification == Verification::None && ParsedCertificate::try_from(certificate).is_err()
    }

    fn verify_by_key(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let unreadable = || Error::InvalidCertificate(CertificateError::BadEncoding);
        let (_, parsed) = parse_x509_certificate(certificate).map_err(|_| unreadable())?;
        let key = &parsed.public_key().subject_public_key.data;
        let known = self.algorithms.mapping.iter();
        let (_, algorithms) = known
            .into_iter()
            .find(|(scheme, _)| *scheme == signed.scheme)
            .ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let is_signed = algorithms.iter().any(|algorithm| {
            algorithm
                .verify_signature(key, message, signed.signature())
                .is_ok()
        });
        if is_signed {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::BadSignature))
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.verification != Verification::None {
            self.verify_chain(certificate, intermediates, now)?;
        }
        if self.verification == Verification::ChainAndName {
            names::has_name(certificate, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.is_older(certificate) {
            return self.verify_by_key(message, certificate, signed);
        }
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.is_older(certificate) {
            return self.verify_by_key(message, certificate, signed);
        }
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn is_valid_at(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let wrong = |reason| Err(Error::InvalidCertificate(reason));
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let parsed = parse_x509_certificate(certificate).ok();
    let now = ASN1Time::from_timestamp(seconds).ok();
    let Some(((_, parsed), now)) = parsed.zip(now) else {
        return wrong(CertificateError::BadEncoding);
    };
    let validity = parsed.validity();
    if now < validity.not_before {
        return wrong(CertificateError::NotValidYet);
    }
    if now > validity.not_after {
        return wrong(CertificateError::Expired);
    }
    Ok(())
}
