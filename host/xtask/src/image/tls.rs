//! TLS in front of the simulated cloud, with an authority of its own: as the real endpoints are, but for who signed them.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const CHUNK_BYTES: usize = 16 * 1024;
/// Both ways are looked at in turn: a call waits this long at most, and a second has a few hundred looks.
const TURN: Duration = Duration::from_millis(2);

/// Ends with the process; nothing but loopback is behind it.
#[derive(Debug)]
pub(super) struct Gate {
    /// Port that it answers on.
    pub(super) port: u16,
    /// Certificate of the authority.
    pub(super) authority_pem: String,
}

impl Gate {
    /// For `name`, before the cloud at `url`.
    pub(super) fn open(name: &str, url: &str) -> Result<Self> {
        let target = url
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .to_owned();
        let (authority_pem, config) = credentials(name)?;
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let port = listener.local_addr().context("no address")?.port();
        let config = Arc::new(config);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (target, config) = (target.clone(), Arc::clone(&config));
                // A connection that breaks is the client's to try again.
                std::thread::spawn(move || pass(client, &target, config));
            }
        });
        Ok(Self {
            port,
            authority_pem,
        })
    }
}

fn credentials(name: &str) -> Result<(String, ServerConfig)> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::new())?;
    authority
        .distinguished_name
        .push(DnType::CommonName, "kerf image check");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec![name.to_owned()])?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok((authority_pem, config))
}

/// Both ways until one side ends.
fn pass(client: TcpStream, target: &str, config: Arc<ServerConfig>) -> Result<()> {
    let mut server = TcpStream::connect(target)?;
    server.set_read_timeout(Some(TURN))?;
    client.set_read_timeout(Some(TURN))?;
    let mut client = StreamOwned::new(ServerConnection::new(config)?, client);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        if !copy(&mut client, &mut server, &mut chunk)? {
            return Ok(());
        }
        if !copy(&mut server, &mut client, &mut chunk)? {
            return Ok(());
        }
    }
}

/// What there is now; false at the end.
fn copy(from: &mut impl Read, to: &mut impl Write, chunk: &mut [u8]) -> Result<bool> {
    match from.read(chunk) {
        Ok(0) => Ok(false),
        Ok(count) => {
            to.write_all(&chunk[..count])?;
            to.flush()?;
            Ok(true)
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(true)
        }
        Err(error) => Err(error.into()),
    }
}
