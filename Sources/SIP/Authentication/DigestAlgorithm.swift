import Crypto

/// A digest algorithm (RFC 7616 section 3.3, RFC 8760).
public enum DigestAlgorithm: String, Sendable, Hashable, CaseIterable {
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
    var isAvailable: Bool { self == .md5 || self == .md5Session ? md5IsAvailable : sha256IsAvailable }

    /// Whether HA1 depends on the nonces.
    var isSession: Bool { self == .sha256Session || self == .md5Session }

    /// The hash in lower-case hexadecimal.
    func hash(_ text: String) -> String {
        let bytes = Array(text.utf8)
        return switch self {
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
    /// Nonce count and client nonce when `qop=auth` is used; nil is RFC 2069.
    public var quality: (nonceCount: String, clientNonce: String)?

    /// Creates the input.
    public init(
        algorithm: DigestAlgorithm, realm: String, nonce: String, method: String, uri: String,
        quality: (nonceCount: String, clientNonce: String)?
    ) {
        self.algorithm = algorithm
        self.realm = realm
        self.nonce = nonce
        self.method = method
        self.uri = uri
        self.quality = quality
    }

    /// HA1 without the session part: what a server may store instead of the password.
    public static func secret(
        algorithm: DigestAlgorithm, username: String, realm: String, password: String
    ) -> String {
        algorithm.hash("\(username):\(realm):\(password)")
    }

    /// The response (RFC 7616 section 3.4.1) for a secret made by ``secret(algorithm:username:realm:password:)``.
    public func response(secret: String) -> String {
        var first = secret
        if algorithm.isSession {
            first = algorithm.hash("\(secret):\(nonce):\(quality?.clientNonce ?? "")")
        }
        let second = algorithm.hash("\(method):\(uri)")
        guard let quality else { return algorithm.hash("\(first):\(nonce):\(second)") }
        return algorithm.hash(
            "\(first):\(nonce):\(quality.nonceCount):\(quality.clientNonce):auth:\(second)")
    }
}
