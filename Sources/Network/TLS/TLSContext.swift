/// What TLS connections to servers have in common: the trusted authorities. Servers are always verified.
public final class TLSClientContext: Sendable {
    /// Trusts the system's authorities and those of `caFile` (PEM).
    public init(caFile: String? = nil) throws(NetworkError) {
    }
}

/// The certificate and key of a TLS server.
public final class TLSServerContext: Sendable {
    /// Reads a certificate chain (PEM, the server's own first) and its key (PEM, not encrypted).
    public init(certificateFile: String, keyFile: String) throws(NetworkError) {
    }
}
