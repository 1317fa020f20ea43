import Crypto

/// A digest algorithm (RFC 7616 section 3.3, RFC 8760).
public enum DigestAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// SHA-512/256.
    case sha512256 = "SHA-512-256"
    /// SHA-512/256 with a session key.
    case sha512256Session = "SHA-512-256-sess"
    /// SHA-256.
    case sha256 = "SHA-256"
    /// SHA-256 with a session key.
    case sha256Session = "SHA-256-sess"
    /// MD5: broken as a hash, still what many registrars speak.
    case md5 = "MD5"
    /// MD5 with a session key.
    case md5Session = "MD5-sess"

    /// The algorithm of that name, without regard to case; a missing name means MD5. Nil for unknown ones.
    public init?(name: String?) {
        let wanted = (name ?? "MD5").lowercased()
        guard let known = Self.allCases.first(where: { $0.rawValue.lowercased() == wanted }) else { return nil }
        self = known
    }

    /// Whether the machine computes it: a policy may forbid MD5.
    var isAvailable: Bool {
        switch self {
        case .sha512256, .sha512256Session: sha512256IsAvailable
        case .sha256, .sha256Session: sha256IsAvailable
        case .md5, .md5Session: md5IsAvailable
        }
    }

    /// Whether HA1 depends on the nonces.
    var isSession: Bool { self == .sha512256Session || self == .sha256Session || self == .md5Session }

    /// Whether the hash is broken: anything else is preferred, wherever the server puts it.
    var isWeak: Bool { self == .md5 || self == .md5Session }

    /// The hash in lower-case hexadecimal.
    func hash(_ text: String) -> String { hash(Array(text.utf8)) }

    /// The hash in lower-case hexadecimal.
    func hash(_ bytes: [UInt8]) -> String {
        switch self {
        case .sha512256, .sha512256Session: hexadecimal(Crypto.sha512256(bytes))
        case .sha256, .sha256Session: hexadecimal(Crypto.sha256(bytes))
        case .md5, .md5Session: hexadecimal(Crypto.md5(bytes))
        }
    }
}

/// The numbers that go into a digest response.
public struct DigestInput: Sendable {
    /// The algorithm.
    public var algorithm: DigestAlgorithm
    /// The protection space.
    public var realm: String
    /// The server's nonce.
    public var nonce: String
    /// The request's method.
    public var method: String
    /// The `uri` parameter, as written.
    public var uri: String
    /// Nonce count and client nonce when quality of protection is used; nil is RFC 2069.
    public var quality: (nonceCount: String, clientNonce: String)?
    /// The body that `qop=auth-int` protects; nil is `qop=auth`.
    public var protectedBody: [UInt8]?

    /// Creates the input.
    public init(
        algorithm: DigestAlgorithm, realm: String, nonce: String, method: String, uri: String,
        quality: (nonceCount: String, clientNonce: String)?, protectedBody: [UInt8]? = nil
    ) {
        self.algorithm = algorithm
        self.realm = realm
        self.nonce = nonce
        self.method = method
        self.uri = uri
        self.quality = quality
        self.protectedBody = protectedBody
    }

    /// HA1 without the session part: what a server may store instead of the password.
    public static func secret(
        algorithm: DigestAlgorithm, username: String, realm: String, password: String
    ) -> String {
        algorithm.hash("\(username):\(realm):\(password)")
    }

    /// What stands for the user name when the server asks for `userhash` (RFC 7616 section 3.4.4).
    public static func userHash(algorithm: DigestAlgorithm, username: String, realm: String) -> String {
        algorithm.hash("\(username):\(realm)")
    }

    /// The response (RFC 7616 section 3.4.1) for a secret made by ``secret(algorithm:username:realm:password:)``.
    public func response(secret: String) -> String {
        response(secret: secret, method: method, body: protectedBody)
    }

    /// The `rspauth` by which a server shows that it knows the secret, too (RFC 7616 section 3.5): like the response,
    /// without a method, and with the response's body for `auth-int`.
    public func serverResponse(secret: String, body: [UInt8] = []) -> String {
        response(secret: secret, method: "", body: protectedBody == nil ? nil : body)
    }

    private func response(secret: String, method: String, body: [UInt8]?) -> String {
        var first = secret
        if algorithm.isSession {
            first = algorithm.hash("\(secret):\(nonce):\(quality?.clientNonce ?? "")")
        }
        let second = algorithm.hash("\(method):\(uri)" + (body.map { ":\(algorithm.hash($0))" } ?? ""))
        guard let quality else { return algorithm.hash("\(first):\(nonce):\(second)") }
        let name = body == nil ? "auth" : "auth-int"
        return algorithm.hash("\(first):\(nonce):\(quality.nonceCount):\(quality.clientNonce):\(name):\(second)")
    }
}
