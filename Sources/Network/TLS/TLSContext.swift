import COpenSSL
import Glibc

/// What TLS connections to servers have in common: the trusted authorities. Servers are always verified; there is no
/// switch for it. TLS 1.2 is the oldest version spoken, 112 bits the least strength of keys and signatures accepted.
///
/// May be used by streams on several loops at once.
public final class TLSClientContext: Sendable {
    let handle: TLSContextHandle

    /// Trusts the system's authorities (on Debian the package ca-certificates; `SSL_CERT_FILE` and `SSL_CERT_DIR` point
    /// elsewhere), and those in `caFile` beside them.
    ///
    /// - Parameter caFile: a PEM file of certificates. An authority's own, an intermediate one's or, for a server that
    ///   is known by itself, a self-signed server certificate. Revocation lists in it are honoured.
    ///
    /// Throws `.tls(.unusableFile)` with the file's name.
    public init(caFile: String? = nil) throws(NetworkError) {
        handle = try TLSContextHandle(TLS_client_method())
        let context = handle.pointer
        guard SSL_CTX_set_default_verify_paths(context) == 1 else {
            throw NetworkError(
                .tls(.unusableFile), "cannot use the system's certificate authorities: \(lastTLSError())")
        }
        let store = SSL_CTX_get_cert_store(context)
        // A trusted certificate needs no further one above it: what a user names in the file is enough.
        X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        if let caFile {
            ERR_clear_error()
            guard SSL_CTX_load_verify_locations(context, caFile, nil) == 1 else {
                throw NetworkError(.tls(.unusableFile), unusableFile("CA file", caFile))
            }
        }
        if PeerVerification.containsRevocationList(store) {
            X509_STORE_set_flags(store, UInt(X509_V_FLAG_CRL_CHECK))
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER) { PeerVerification.accept($0, $1) }
        SSL_CTX_set_client_cert_cb(context) { ssl, _, _ in PeerVerification.noteCertificateRequest(ssl) }
        SSL_CTX_set_cert_verify_callback(context, { store, _ in PeerVerification.verify(store) }, nil)
    }
}

/// The certificate and key of a TLS server. It asks clients for no certificate.
///
/// May be used by streams on several loops at once.
public final class TLSServerContext: Sendable {
    let handle: TLSContextHandle

    /// Reads the files once; a renewed certificate needs a new context.
    ///
    /// - Parameters:
    ///   - certificateFile: a PEM file, the server's own certificate first, then the intermediate ones.
    ///   - keyFile: the key as PEM, not encrypted.
    ///
    /// Throws `.tls(.unusableFile)` with the file's name, also when key and certificate do not belong together.
    public init(certificateFile: String, keyFile: String) throws(NetworkError) {
        handle = try TLSContextHandle(TLS_server_method())
        let context = handle.pointer
        ERR_clear_error()
        // Without this, OpenSSL would ask the terminal for the password of an encrypted key.
        SSL_CTX_set_default_passwd_cb(context) { _, _, _, _ in 0 }
        guard SSL_CTX_use_certificate_chain_file(context, certificateFile) == 1 else {
            throw NetworkError(.tls(.unusableFile), unusableFile("certificate file", certificateFile))
        }
        guard SSL_CTX_use_PrivateKey_file(context, keyFile, SSL_FILETYPE_PEM) == 1 else {
            throw NetworkError(.tls(.unusableFile), unusableFile("key file", keyFile))
        }
    }
}

/// One `SSL_CTX`, set up with what clients and servers share. OpenSSL counts its references and locks it.
final class TLSContextHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ method: OpaquePointer?) throws(NetworkError) {
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(method) else {
            throw NetworkError(.tls(.handshake("no context")), "cannot set TLS up: \(lastTLSError())")
        }
        self.pointer = pointer
        // Set here and not left to the machine's openssl.cnf, which may allow less or more.
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        SSL_CTX_set_security_level(pointer, 2)
        SSL_CTX_set_options(pointer, copenssl_safe_options())
        SSL_CTX_ctrl(pointer, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    }

    deinit {
        SSL_CTX_free(pointer)
    }
}

/// OpenSSL's latest words, for messages. Empties the thread's error queue.
func lastTLSError() -> String {
    let code = ERR_peek_last_error()
    ERR_clear_error()
    guard code != 0 else { return "no reason given" }
    if let reason = ERR_reason_error_string(code) { return String(cString: reason) }
    return "OpenSSL error \(code)"
}

/// Why OpenSSL could not use a file: a system error, or its content.
private func unusableFile(_ kind: String, _ path: String) -> String {
    var words = ""
    // The first error in the queue is the cause, what follows are its consequences.
    let first = ERR_peek_error()
    let last = ERR_peek_last_error()
    ERR_clear_error()
    let description = errno
    if access(path, R_OK) != 0 {
        words = NetworkError.text(errno)
    } else if ERR_GET_REASON(first) == X509_R_KEY_VALUES_MISMATCH || ERR_GET_REASON(last) == X509_R_KEY_VALUES_MISMATCH
    {
        words = "it does not belong to the certificate"
    } else {
        words = ERR_reason_error_string(first).map { String(cString: $0) } ?? NetworkError.text(description)
    }
    return "cannot use the \(kind) \(path): \(words)"
}
