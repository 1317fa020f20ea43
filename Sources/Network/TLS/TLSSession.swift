import COpenSSL

/// One `SSL` with memory on both sides: bytes of the connection go in and come out by calls, so no socket is touched.
///
/// Bounded: what is fed is at most one read of the connection and is taken up at once; OpenSSL itself limits records
/// (16 KiB) and handshakes (100 KiB of certificates). On one thread.
final class TLSSession {
    /// How the handshake stands.
    enum Progress {
        case done, waiting
        case failed(TLSFailure, detail: String?)
    }

    /// What reading came to.
    enum ReadResult {
        /// So many bytes were put into the buffer.
        case bytes(Int)
        /// Nothing more until more is fed.
        case waiting
        /// The peer said that it sends no more.
        case ended
        case failed(TLSFailure)
    }

    private let ssl: OpaquePointer
    // Freed with `ssl`.
    private let input: OpaquePointer
    private let output: OpaquePointer
    private let verification: PeerVerification?

    /// Nil when memory ran out.
    private init?(_ context: TLSContextHandle, verification: PeerVerification?) {
        ERR_clear_error()
        guard let ssl = SSL_new(context.pointer) else { return nil }
        guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
            SSL_free(ssl)
            return nil
        }
        // An empty input means "not yet", never the end.
        BIO_ctrl(input, BIO_C_SET_BUF_MEM_EOF_RETURN, -1, nil)
        SSL_set_bio(ssl, input, output)
        (self.ssl, self.input, self.output, self.verification) = (ssl, input, output, verification)
    }

    /// A client's session, for a server of that name.
    convenience init?(client context: TLSClientContext, expecting name: ExpectedServerName) {
        let verification = PeerVerification(name)
        self.init(context.handle, verification: verification)
        // Borrowed: this object holds it for as long as OpenSSL can call back.
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(verification).toOpaque())
        if let domain = name.domain {
            let isSet = domain.withCString {
                SSL_ctrl(
                    ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                    UnsafeMutableRawPointer(mutating: $0))
            }
            guard isSet == 1 else { return nil }
        }
        SSL_set_connect_state(ssl)
    }

    /// A server's session.
    convenience init?(server context: TLSServerContext) {
        self.init(context.handle, verification: nil)
        SSL_set_accept_state(ssl)
    }

    deinit {
        SSL_free(ssl)
    }

    /// Such as "TLSv1.3 TLS_AES_256_GCM_SHA384".
    var cipher: String {
        let version = String(cString: SSL_get_version(ssl))
        guard let name = SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)) else { return version }
        return "\(version) \(String(cString: name))"
    }

    /// Takes bytes of the connection.
    func feed(_ bytes: [UInt8]) {
        guard let count = Int32(exactly: bytes.count), count > 0 else { return }
        BIO_write(input, bytes, count)
    }

    /// Bytes for the connection, empty when there are none.
    func takeOutput() -> [UInt8] {
        let count = BIO_ctrl_pending(output)
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = max(0, Int(BIO_read(output, buffer.baseAddress, Int32(clamping: buffer.count))))
        }
    }

    /// Goes on with the handshake as far as what was fed allows.
    func handshake() -> Progress {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        if result == 1 { return .done }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .waiting
        default:
            let code = ERR_peek_error()
            ERR_clear_error()
            if let failure = verification?.failure { return .failed(failure, detail: verification?.detail) }
            // Before TLS 1.3 there is no alert for it.
            if verification?.wantsOurCertificate == true, ERR_GET_REASON(code) == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE {
                return .failed(.clientCertificateRequired, detail: nil)
            }
            return .failed(TLSFailure(libraryError: code), detail: nil)
        }
    }

    /// Decrypts into a buffer.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
        ERR_clear_error()
        var count = 0
        let result = SSL_read_ex(ssl, buffer.baseAddress, buffer.count, &count)
        if result == 1 { return .bytes(count) }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .waiting
        case SSL_ERROR_ZERO_RETURN: return .ended
        default:
            let code = ERR_peek_error()
            ERR_clear_error()
            return .failed(TLSFailure(libraryError: code))
        }
    }

    /// Encrypts; the result is in the output. Nil for success.
    func write(_ bytes: UnsafeRawBufferPointer) -> TLSFailure? {
        ERR_clear_error()
        var count = 0
        // The output grows as needed, so all is taken or the session is broken.
        if SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &count) == 1, count == bytes.count { return nil }
        let code = ERR_peek_error()
        ERR_clear_error()
        return TLSFailure(libraryError: code)
    }

    /// Puts the closing message into the output.
    func shutDown() {
        ERR_clear_error()
        SSL_shutdown(ssl)
        ERR_clear_error()
    }
}
