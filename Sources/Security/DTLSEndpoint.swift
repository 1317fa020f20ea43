import COpenSSL
import Glibc

/// One DTLS association that gives a call's SRTP its keys (RFC 5763, RFC 5764): a state machine without a socket.
///
/// The owner feeds datagrams, sends what ``takeDatagrams()`` gives after every call, and calls ``timeout()`` when
/// ``timeUntilTimeout`` has passed. DTLS 1.2; lost flights are sent again after 50 ms, 100 ms and so on up to a
/// second. OpenSSL reads the clock for that itself. Confined to one thread.
///
/// What arrives before the role is known is kept: the first flight of an eager peer is not lost. Keys are given out
/// only when the peer's certificate is the one that the signalling announced.
public final class DTLSEndpoint {
    /// Who begins (RFC 5763, section 5: the side that is `active`).
    public enum Role: Sendable {
        /// Sends the first message: `setup:active`.
        case client
        /// Waits for it: `setup:passive`.
        case server
    }

    /// Where the association stands.
    public enum State: Sendable, Equatable {
        /// The role is not known yet.
        case idle
        /// Messages go back and forth.
        case handshaking
        /// Done, but nobody said yet which certificate to expect.
        case unverified
        /// The keys are there.
        case connected
        /// Over.
        case failed(DTLSFailure)
    }

    /// The keys of both directions.
    public struct Keys: Sendable {
        /// What we encrypt with.
        public let local: SRTPKey
        /// What the peer encrypts with.
        public let remote: SRTPKey
    }

    /// Datagrams kept while the role is unknown.
    static let maximumEarlyDatagrams = 16
    /// No DTLS datagram of a handshake is longer.
    static let maximumDatagram = 2_048
    /// How long this side's datagrams are at most, headers included: less than any network's limit.
    static let linkMTU = 1_200

    /// Where the association stands.
    public private(set) var state = State.idle
    /// The keys, when connected.
    public private(set) var keys: Keys?

    private let certificate: DTLSCertificate
    private let profiles: [SRTPProfile]
    private let datagrams = DatagramBIO()
    private var ssl: OpaquePointer?
    private var role = Role.client
    private var expected: CertificateFingerprint?
    private var derived: Keys?

    /// Creates an association that waits for its role.
    public init(certificate: DTLSCertificate, profiles: [SRTPProfile] = SRTPProfile.preferred) {
        self.certificate = certificate
        self.profiles = profiles
    }

    deinit {
        SSL_free(ssl)
    }

    // MARK: Inputs

    /// Begins, or takes up what arrived early. A second call does nothing.
    public func start(as role: Role) {
        guard state == .idle else { return }
        self.role = role
        guard let made = makeSession(role) else {
            state = .failed(.unavailable(lastLibraryError()))
            return
        }
        ssl = made
        state = .handshaking
        advance()
    }

    /// The certificate that the signalling announced; may come before or after the handshake.
    public func expect(_ fingerprint: CertificateFingerprint) {
        expected = fingerprint
        if state == .unverified { verify() }
    }

    /// A datagram of the peer.
    public func receive(_ datagram: [UInt8]) {
        guard !datagram.isEmpty, datagram.count <= Self.maximumDatagram else { return }
        if state == .idle {
            if datagrams.incoming.count < Self.maximumEarlyDatagrams { datagrams.feed(datagram) }
            return
        }
        if case .failed = state { return }
        datagrams.feed(datagram)
        advance()
    }

    /// Sends the last flight again when its time has come.
    public func timeout() {
        guard let ssl, state == .handshaking else { return }
        ERR_clear_error()
        if SSL_ctrl(ssl, DTLS_CTRL_HANDLE_TIMEOUT, 0, nil) < 0 {
            state = .failed(.noAnswer)
            ERR_clear_error()
        }
    }

    /// Tells the peer that the association is over.
    public func close() {
        guard let ssl else { return }
        switch state {
        case .connected, .unverified:
            ERR_clear_error()
            SSL_shutdown(ssl)
            ERR_clear_error()
            state = .failed(.closed)
        case .idle, .handshaking, .failed: return
        }
    }

    // MARK: Outputs

    /// Datagrams for the peer, in order.
    public func takeDatagrams() -> [[UInt8]] {
        datagrams.takeOutgoing()
    }

    /// How long until ``timeout()`` is to be called; nil when nothing is awaited.
    public var timeUntilTimeout: Duration? {
        guard let ssl, state == .handshaking else { return nil }
        var left = timeval()
        guard SSL_ctrl(ssl, DTLS_CTRL_GET_TIMEOUT, 0, &left) == 1 else { return nil }
        return .seconds(left.tv_sec) + .microseconds(Int64(left.tv_usec))
    }

    // MARK: Inside

    private func makeSession(_ role: Role) -> OpaquePointer? {
        ERR_clear_error()
        guard let context = SSL_CTX_new(DTLS_method()) else { return nil }
        defer { SSL_CTX_free(context) }
        SSL_CTX_set_options(context, copenssl_dtls_options())
        // Any certificate passes the handshake: what it must be, the signalling says, perhaps later.
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT) { _, _ in 1 }
        guard control(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(DTLS1_2_VERSION)),
            control(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(DTLS1_2_VERSION)),
            SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:!SHA1:!PSK") == 1,
            SSL_CTX_use_certificate(context, certificate.certificate) == 1,
            SSL_CTX_use_PrivateKey(context, certificate.key) == 1,
            // This one says 0 for success.
            SSL_CTX_set_tlsext_use_srtp(context, profiles.map(\.dtlsName).joined(separator: ":")) == 0,
            let ssl = SSL_new(context)
        else { return nil }
        guard let input = datagrams.makeBIO() else {
            SSL_free(ssl)
            return nil
        }
        SSL_set_bio(ssl, input, input)
        SSL_ctrl(ssl, DTLS_CTRL_SET_LINK_MTU, Self.linkMTU, nil)
        DTLS_set_timer_cb(ssl) { _, microseconds in
            microseconds == 0 ? 50_000 : min(microseconds * 2, 1_000_000)
        }
        switch role {
        case .client: SSL_set_connect_state(ssl)
        case .server: SSL_set_accept_state(ssl)
        }
        return ssl
    }

    private func control(_ context: OpaquePointer, _ command: Int32, _ value: Int) -> Bool {
        SSL_CTX_ctrl(context, command, value, nil) == 1
    }

    private func advance() {
        guard let ssl else { return }
        if state == .handshaking {
            ERR_clear_error()
            let result = SSL_do_handshake(ssl)
            if result == 1 {
                finish(ssl)
            } else {
                switch SSL_get_error(ssl, result) {
                case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
                default: state = .failed(.handshake(lastLibraryError()))
                }
                return
            }
        }
        readOn(ssl)
    }

    /// After the handshake: the peer may have missed our last flight, which reading sends again, or may end the
    /// association. Data has no meaning here.
    private func readOn(_ ssl: OpaquePointer) {
        var scratch = [UInt8](repeating: 0, count: Self.maximumDatagram)
        while !datagrams.incoming.isEmpty {
            ERR_clear_error()
            let result = SSL_read(ssl, &scratch, Int32(scratch.count))
            guard result <= 0 else { continue }
            switch SSL_get_error(ssl, result) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: continue
            case SSL_ERROR_ZERO_RETURN:
                state = .failed(.closed)
                return
            default:
                // What does not authenticate is dropped by the library before it comes to this.
                state = .failed(.handshake(lastLibraryError()))
                return
            }
        }
    }

    private func finish(_ ssl: OpaquePointer) {
        guard let selected = SSL_get_selected_srtp_profile(ssl)?.pointee,
            let profile = profiles.first(where: { $0.dtlsIdentifier == UInt(selected.id) })
        else {
            state = .failed(.noCommonProfile)
            return
        }
        // RFC 5764, section 4.2: the keys of client and server, then their salts.
        let (key, salt) = (profile.keyLength, profile.saltLength)
        var material = [UInt8](repeating: 0, count: 2 * (key + salt))
        let label = "EXTRACTOR-dtls_srtp"
        guard SSL_export_keying_material(ssl, &material, material.count, label, label.utf8.count, nil, 0, 0) == 1
        else {
            state = .failed(.handshake(lastLibraryError()))
            return
        }
        let client = Array(material[0..<key] + material[(2 * key)..<(2 * key + salt)])
        let server = Array(material[key..<(2 * key)] + material[(2 * key + salt)...])
        let (local, remote) = role == .client ? (client, server) : (server, client)
        guard let localKey = SRTPKey(profile: profile, keyAndSalt: local),
            let remoteKey = SRTPKey(profile: profile, keyAndSalt: remote)
        else { return }
        derived = Keys(local: localKey, remote: remoteKey)
        state = .unverified
        if expected != nil { verify() }
    }

    private func verify() {
        guard let ssl, let expected, let derived else { return }
        let peer = SSL_get1_peer_certificate(ssl)
        defer { X509_free(peer) }
        guard let peer, CertificateFingerprint(of: peer, expected.hash) == expected else {
            state = .failed(.fingerprintMismatch)
            return
        }
        keys = derived
        state = .connected
    }
}

extension SRTPProfile {
    /// The number of the protection profile (RFC 5764, section 4.1.2, and RFC 7714, section 14.2).
    var dtlsIdentifier: UInt {
        switch self {
        case .aes128CounterModeSHA1_80: 1
        case .aeadAES128GCM: 7
        case .aeadAES256GCM: 8
        }
    }
}
