//! An S3 interface on loopback over a folder: the server of `s3s`, one process, HTTP/1.1, signed requests.
//!
//! SlateDB needs puts that fail if the object exists: they decide which writer or compactor is the current one. `s3s-fs`
//! checks and writes in two steps, so that two requests at the same time could both succeed. This server executes
//! conditional puts one after another.

#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{IF_MATCH, IF_NONE_MATCH};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

/// The keys of an account on an S3 server.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The name of the account.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
}

/// A bound server, before it serves.
#[derive(Debug)]
pub struct S3Server {
    listener: TcpListener,
    service: S3Service,
}

impl S3Server {
    /// Binds a free port of loopback. Buckets are the folders of `root`.
    ///
    /// # Errors
    /// The operating system's.
    pub async fn bind(root: &Path, credentials: &Credentials) -> io::Result<Self> {
        let files = FileSystem::new(root).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(
            credentials.access_key.as_str(),
            credentials.secret_key.as_str(),
        ));
        Ok(Self { listener: TcpListener::bind(("127.0.0.1", 0)).await?, service: builder.build() })
    }

    /// The address of the server.
    ///
    /// # Errors
    /// The operating system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// The operating system's, if the listener fails.
    pub async fn serve(self) -> io::Result<()> {
        let conditional = Arc::new(Mutex::new(()));
        loop {
            let (socket, _) = self.listener.accept().await?;
            // Small responses must not wait for the acknowledgement of earlier ones.
            socket.set_nodelay(true)?;
            let (service, conditional) = (self.service.clone(), Arc::clone(&conditional));
            let answer = service_fn(move |request: hyper::Request<Incoming>| {
                let (service, conditional) = (service.clone(), Arc::clone(&conditional));
                async move {
                    let headers = request.headers();
                    let is_conditional = request.method() != hyper::Method::GET
                        && (headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MATCH));
                    let _guard = if is_conditional { Some(conditional.lock().await) } else { None };
                    service.call(request.map(s3s::Body::from)).await
                }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(socket), answer);
            // A client that disconnects ends its own connection only.
            tokio::spawn(async move { drop(connection.await) });
        }
    }
}

/// Binds a server, reports its address, and serves until the process ends.
///
/// # Errors
/// The operating system's.
pub async fn serve_s3(
    root: &Path,
    credentials: &Credentials,
    report: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let server = S3Server::bind(root, credentials).await?;
    report(server.address()?);
    server.serve().await
}
