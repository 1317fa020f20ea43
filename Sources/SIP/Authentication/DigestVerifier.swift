import Crypto
import Primitives

/// A server's side of digest authentication (RFC 7616 and RFC 8760).
///
/// Nonces carry their time and a code made with a key that only this verifier knows, so they need no memory to be
/// recognised, cannot be forged, and expire. The nonce counts seen are remembered, within a bound, so that a request
/// cannot be replayed. Printing it shows no key.
public struct DigestVerifier: Sendable {
    /// What a request's credentials are worth.
    public enum Verdict: Sendable, Equatable {
        /// They are right, and belong to this user.
        case accepted(username: String)
        /// There are none for this realm: challenge.
        case missing
        /// They are right or not, but made with a nonce that has expired or was used up: challenge with `stale`.
        case stale
        /// They are wrong; the reason is for the server's log only.
        case refused(reason: String)
    }

    /// The protection space.
    public let realm: String
    /// The algorithms that are offered, most preferred first.
    public let algorithms: [DigestAlgorithm]
    /// How long a nonce is good for.
    public let nonceLifetime: Duration

    private static let maximumCounts = 4096

    private let key: [UInt8]
    private var random: RandomSource
    /// The highest nonce count of each nonce, and when that nonce expires.
    private var counts: [String: (count: UInt32, expiry: MonotonicTime)] = [:]

    /// Creates a verifier with a random key.
    public init(
        realm: String, algorithms: [DigestAlgorithm] = [.sha256, .md5], nonceLifetime: Duration = .seconds(300),
        random: RandomSource = .system
    ) {
        self.realm = realm
        self.algorithms = algorithms
        self.nonceLifetime = nonceLifetime
        self.random = random
        key = Array(self.random.hexadecimal(bits: 256).utf8)
    }

    /// How many nonces are remembered with their counts: for status and tests.
    public var rememberedNonces: Int { counts.count }

    /// The values of the challenge headers, one for each algorithm in order of preference.
    public mutating func challenges(stale: Bool = false, at now: MonotonicTime) -> [String] {
        let nonce = makeNonce(at: now)
        return algorithms.map { algorithm in
            "Digest realm=\(AuthenticationFields.quoted(realm)), nonce=\"\(nonce)\", algorithm=\(algorithm.rawValue), "
                + "qop=\"auth\"" + (stale ? ", stale=true" : "")
        }
    }

    /// The 401 (or, as a proxy, 407) that challenges a request.
    public mutating func challenge(
        _ request: SIPMessage, isProxy: Bool = false, stale: Bool = false, toTag: String? = nil, at now: MonotonicTime
    ) -> SIPMessage {
        var response = request.response(status: isProxy ? 407 : 401, reason: nil, toTag: toTag)
        for value in challenges(stale: stale, at: now) {
            response.headers.append(isProxy ? "Proxy-Authenticate" : "WWW-Authenticate", value)
        }
        return response
    }

    /// Checks the credentials of a request.
    ///
    /// - Parameter secret: HA1 of a user for an algorithm (``DigestInput/secret(algorithm:username:realm:password:)``);
    ///   nil for an unknown user, who takes as long to refuse as a wrong password.
    public mutating func verify(
        _ request: SIPMessage, isProxy: Bool = false, at now: MonotonicTime,
        secret: (_ username: String, _ algorithm: DigestAlgorithm) -> String?
    ) -> Verdict {
        let lines = request.headers.all(isProxy ? "Proxy-Authorization" : "Authorization")
        let candidates = lines.flatMap(AuthenticationFields.parse).filter {
            $0.isScheme("digest") && $0["realm"] == realm
        }
        guard let fields = candidates.first else { return .missing }
        guard let method = request.method, let username = fields["username"], let nonce = fields["nonce"],
            let uri = fields["uri"], let response = fields["response"], let clientNonce = fields["cnonce"],
            let nonceCount = fields["nc"], let count = UInt32(nonceCount, radix: 16), nonceCount.utf8.count == 8
        else { return .refused(reason: "the Digest credentials are incomplete") }
        guard fields["qop"]?.lowercased() == "auth" else { return .refused(reason: "qop is not auth") }
        guard let algorithm = DigestAlgorithm(name: fields["algorithm"]), algorithms.contains(algorithm) else {
            return .refused(reason: "the algorithm was not offered")
        }
        guard let expiry = expiry(of: nonce), expiry > now else { return .stale }
        guard let target = request.requestURI, let signed = try? SIPURI(parsing: uri),
            signed == target || signed.isEquivalent(to: target)
        else { return .refused(reason: "the Digest uri is not the request URI") }
        let known = secret(username, algorithm)
        let input = DigestInput(
            algorithm: algorithm, realm: realm, nonce: nonce, method: method.rawValue, uri: uri,
            quality: (nonceCount, clientNonce))
        let expected = input.response(secret: known ?? algorithm.hash(username))
        let isRight = constantTimeEqual(Array(expected.utf8), Array(response.lowercased().utf8))
        guard isRight, known != nil else { return .refused(reason: "the user name or password is wrong") }
        guard use(nonce, count: count, expiry: expiry, at: now) else { return .stale }
        return .accepted(username: username)
    }

    /// Counts a use of the nonce; false when that count was used before.
    private mutating func use(_ nonce: String, count: UInt32, expiry: MonotonicTime, at now: MonotonicTime) -> Bool {
        if let last = counts[nonce], count <= last.count { return false }
        if counts.count >= Self.maximumCounts, counts[nonce] == nil {
            counts = counts.filter { $0.value.expiry > now }
            if counts.count >= Self.maximumCounts, let oldest = counts.min(by: { $0.value.expiry < $1.value.expiry }) {
                counts[oldest.key] = nil
            }
        }
        counts[nonce] = (count, expiry)
        return true
    }

    /// Time of making, randomness, and their code: 16 + 16 + 32 hexadecimal digits.
    private mutating func makeNonce(at now: MonotonicTime) -> String {
        let time = String(UInt64(bitPattern: now.nanoseconds), radix: 16)
        let body = String(repeating: "0", count: 16 - time.utf8.count) + time + random.hexadecimal(bits: 64)
        return body + code(for: body)
    }

    /// When a nonce of ours expires; nil for one that is not ours.
    private func expiry(of nonce: String) -> MonotonicTime? {
        let bytes = Array(nonce.utf8)
        guard bytes.count == 64 else { return nil }
        let body = String(decoding: bytes[..<32], as: UTF8.self)
        guard constantTimeEqual(Array(code(for: body).utf8), Array(bytes[32...])),
            let time = UInt64(body.prefix(16), radix: 16)
        else { return nil }
        return MonotonicTime(nanoseconds: Int64(bitPattern: time)) + nonceLifetime
    }

    private func code(for body: String) -> String {
        String(hexadecimal(hmacSHA256(key: key, Array((body + realm).utf8))).prefix(32))
    }
}

extension DigestVerifier: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The realm.
    public var description: String { "DigestVerifier(realm: \(realm))" }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror that shows the realm only.
    public var customMirror: Mirror { Mirror(self, children: ["realm": realm]) }
}
