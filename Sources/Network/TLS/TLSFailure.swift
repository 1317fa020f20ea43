/// Which check of TLS failed.
public enum TLSFailure: Hashable, Sendable {
    /// The certificate, or one that it depends on, is past its last day.
    case expired
    /// The certificate, or one that it depends on, is not valid before a day to come.
    case notYetValid
    /// The server vouches for itself, and nobody told us to trust it.
    case selfSigned
    /// The certificate was issued by an authority that is not trusted here.
    case unknownAuthority
    /// The certificate is not for this name; `presented` are the names that it is for, as far as they are fit to print.
    case nameMismatch(expected: String, presented: [String])
    /// The authority has withdrawn the certificate.
    case revoked
    /// The certificate, or one that it depends on, is not for this use: no server certificate, or issued by what is no
    /// authority.
    case wrongUsage
    /// A key or signature in the chain is too weak to be relied on.
    case weakCertificate
    /// The certificate, or one that it depends on, is broken in another way, in OpenSSL's words.
    case invalidCertificate(String)
    /// The peer speaks only versions that are refused here (before TLS 1.2), or none of ours.
    case protocolVersion
    /// The peer wants a certificate from this side, which has none.
    case clientCertificateRequired
    /// What the peer sent is not TLS.
    case notTLS
    /// The handshake did not end in time.
    case timedOut
    /// The peer ended the connection within the handshake.
    case closedInHandshake
    /// The connection ended without TLS's closing message: what was to come may have been cut off.
    case truncated
    /// A file with certificates or a key cannot be used.
    case unusableFile
    /// Another failure, in OpenSSL's words.
    case handshake(String)

    /// What failed and what to do, for people: a clause without a full stop.
    public var explanation: String {
        switch self {
        case .expired:
            "the certificate has expired; the server's operator must renew it, unless this machine's clock is wrong"
        case .notYetValid: "the certificate is not valid yet; check this machine's clock"
        case .selfSigned:
            "the certificate is self-signed; give it as the CA file if this server is meant"
        case .unknownAuthority:
            "the certificate's authority is not trusted; install ca-certificates, or give the authority's certificate "
                + "as the CA file"
        case .nameMismatch(let expected, let presented):
            presented.isEmpty
                ? "the certificate names no domain or address at all, so not \"\(expected)\" (a common name does not "
                    + "count); the server needs one with a subject alternative name"
                : "the certificate is not for \"\(expected)\" but for \(presented.joined(separator: ", ")); check the "
                    + "configured host"
        case .revoked: "the certificate was revoked; the server's operator must replace it"
        case .wrongUsage: "the certificate is not for this use; the server needs a TLS server certificate"
        case .weakCertificate:
            "a key or signature in the certificate chain is too weak; the server needs RSA of 2048 bits or more, or "
                + "ECDSA, signed with SHA-256 or better"
        case .invalidCertificate(let words): "the certificate is not valid (\(words))"
        case .protocolVersion: "the server has no TLS version in common with us; TLS 1.2 or newer is needed"
        case .clientCertificateRequired: "the server wants a client certificate, which is not supported"
        case .notTLS: "what answers does not speak TLS; check port and transport"
        case .timedOut: "the TLS handshake did not end in time; check port and transport"
        case .closedInHandshake:
            "the other side ended the connection within the TLS handshake; check port and transport"
        case .truncated: "the connection ended without TLS's closing message"
        case .unusableFile: "a certificate or key file cannot be used"
        case .handshake(let words): "the TLS handshake failed (\(words))"
        }
    }
}
