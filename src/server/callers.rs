//! Identity of callers, and whether they are accepted.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use interlock_core::api::cidr::Cidr;
use rustls::pki_types::UnixTime;

use super::client_auth::{ClientAuthority, ClientCertificate, Untrusted};
use super::open_connections::OpenConnection;

/// The identity of a caller, from its connection.
#[derive(Debug)]
pub struct Caller {
    pub address: IpAddr,
    pub certificate: Option<ClientCertificate>,
    pub connection: Arc<OpenConnection>,
}

/// Which callers are accepted, and which are API servers.
#[derive(Clone, Default)]
pub struct Callers {
    /// Addresses of API servers; empty: not known.
    pub api_servers: Vec<Cidr>,
    /// The CA whose certificates are required.
    pub authority: Option<Arc<ClientAuthority>>,
}

/// Whether a caller is known to be an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerTrust {
    /// By its certificate or its address.
    Known,
    /// The configuration identifies no API server.
    Unknown,
}

/// Why a review is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CallerRefused {
    /// Its caller has no valid certificate.
    #[error("{0}; the API server shows one where its --admission-control-config-file says so")]
    Untrusted(#[from] Untrusted),
    /// From another address.
    #[error("reviews are answered only to the addresses in --api-server-cidr, which do not include {0}")]
    Address(IpAddr),
}

impl CallerRefused {
    /// Status code of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Untrusted(Untrusted::NoCertificate | Untrusted::NotVerified(_)) => StatusCode::UNAUTHORIZED,
            Self::Untrusted(Untrusted::OtherName) | Self::Address(_) => StatusCode::FORBIDDEN,
        }
    }
}

impl Callers {
    /// Whether an address is known to be an API server's.
    pub fn is_api_server(&self, address: IpAddr) -> bool {
        self.api_servers.iter().any(|range| range.contains(address))
    }

    /// Whether a certificate identifies an API server.
    pub fn is_certified(&self, certificate: Option<&ClientCertificate>) -> bool {
        let checked = |authority: &Arc<ClientAuthority>| authority.check(certificate, UnixTime::now());
        self.authority.as_ref().is_some_and(|authority| checked(authority).is_ok())
    }

    /// Whether a review of this caller is accepted. Where certificates are required, a known address does
    /// not replace one.
    pub fn check(
        &self,
        address: Option<IpAddr>,
        certificate: Option<&ClientCertificate>,
    ) -> Result<CallerTrust, CallerRefused> {
        if let Some(authority) = &self.authority {
            authority.check(certificate, UnixTime::now())?;
            return Ok(CallerTrust::Known);
        }
        match address {
            _ if self.api_servers.is_empty() => Ok(CallerTrust::Unknown),
            Some(address) if !self.is_api_server(address) => {
                Err(CallerRefused::Address(address.to_canonical()))
            }
            _ => Ok(CallerTrust::Known),
        }
    }
}
