import Primitives

/// What ``Authenticator/authorize(_:after:)`` found.
public enum AuthenticationResult: Sendable, Equatable {
    /// The request now carries credentials and a higher CSeq number: send it again in a new transaction.
    case retry
    /// The server does not accept what we have, or asks for what we do not have; trying again is of no use.
    case refused(reason: String)
    /// The server asks for a token and none is configured.
    case needsToken(Challenge)
}

/// Answers challenges with the credentials it was given (RFC 3261 section 22, RFC 7616, RFC 8760, RFC 8898).
///
/// - All challenges are read, whatever their order. A bearer token is preferred when the server takes one. Digest is
///   used only when a password was configured.
/// - Of several digest challenges for one realm one with SHA-2 goes before MD5, otherwise the first counts, the server's
///   order being its preference (RFC 8760 section 2.4). `qop=auth` goes before `auth-int`, whose protection of the body
///   breaks at every server that rewrites one.
/// - One request is repeated with credentials at most twice, the second time only after `stale=true`, for another realm,
///   or with another kind of credentials. Whatever the nonces, there is no third time.
/// - A token answers a challenge to REGISTER, and elsewhere only that of a proxy that asked for it when we registered:
///   only such a proxy is known to take the token for itself, and not to hand it on to the peer.
///
/// It answers whatever challenge it is handed. The owner hands it only responses that came over the flow to its own
/// domain, and limits them with ``realms`` where a peer behind that proxy could send one. Printing it shows no secret.
public struct Authenticator: Sendable {
    /// How a digest protects a request (RFC 7616 section 3.4): the request line, also the body, or as RFC 2069 had it.
    enum Quality: Sendable {
        case none, auth, authInt
    }

    /// A digest protection space that has challenged us, and its nonce.
    struct Session: Sendable {
        var realm: String
        var isProxy: Bool
        var nonce: String
        var opaque: String?
        var algorithm: DigestAlgorithm
        var writtenAlgorithm: String?
        var quality: Quality
        var hashesUser: Bool
        var nonceCount: UInt32 = 0
        /// What was being asked when the server itself challenged: its nonce serves the same kind of request only.
        var method: SIPMethod?
        var host: String?
    }

    /// One header to be written.
    enum Answer {
        case bearer(token: String, isProxy: Bool, realm: String)
        case digest(Session)
    }

    /// A request that was repeated with credentials; the next one has a higher CSeq number.
    private struct Attempt: Sendable {
        var callID: String
        var sequence: UInt32
        var tries: Int
    }

    static let maximumSessions = 16
    private static let maximumAttempts = 64
    private static let maximumTries = 2

    private var credentials: [Credential]
    var random: RandomSource
    /// The only protection spaces to answer; nil answers all.
    public var realms: Set<String>?
    /// The protection spaces whose proxies asked for the token when we registered.
    public private(set) var tokenProxies: Set<String> = []
    var sessions: [Session] = []
    private var attempts: [Attempt] = []

    /// Creates an authenticator.
    ///
    /// - Parameter realms: the only protection spaces to answer; nil answers all.
    public init(credentials: [Credential], random: RandomSource = .system, realms: Set<String>? = nil) {
        self.credentials = credentials
        self.random = random
        self.realms = realms
    }

    /// Whether there is anything to answer with.
    public var hasCredentials: Bool { !credentials.isEmpty }

    /// Whether the first thing to answer with is a token, which may have grown too old.
    public var hasToken: Bool { token != nil }

    /// Takes new credentials; nonces of the old ones are forgotten when the password changed.
    public mutating func replaceCredentials(_ credentials: [Credential]) {
        let before = digestCredential
        self.credentials = credentials
        let after = digestCredential
        if before?.username != after?.username || before?.password != after?.password { sessions = [] }
    }

    /// Lets proxies of these protection spaces have the token when they ask for it: they asked when we registered.
    public mutating func trustTokenProxies(_ realms: Set<String>) {
        tokenProxies = realms
    }

    /// Whether the request carries the token that is configured now.
    public func carriesCurrentToken(_ request: SIPMessage) -> Bool {
        guard let token else { return false }
        return [false, true].contains { Challenge.bearerToken(in: request, isProxy: $0) == token }
    }

    /// Adds credentials before anybody asked, to save the round trip.
    ///
    /// A token goes into a REGISTER only: in other requests it could reach the peer. Proxies that asked for a digest
    /// before get one, and a registrar that gave us a nonce its digest.
    public mutating func preauthorize(_ request: inout SIPMessage) {
        let token = request.method == .register ? self.token : nil
        if let token {
            request.headers["Authorization"] = "Bearer \(token)"
            if !tokenProxies.isEmpty { request.headers["Proxy-Authorization"] = "Bearer \(token)" }
        }
        for index in sessions.indices {
            let session = sessions[index]
            if token != nil, !session.isProxy || !tokenProxies.isEmpty { continue }
            let isSameServer =
                session.isProxy || (session.method == request.method && session.host == request.requestURI?.host)
            if isSameServer, let value = digestHeader(for: index, request) {
                request.headers.append(Self.headerName(isProxy: session.isProxy), value)
            }
        }
    }

    /// Answers the challenges of a 401 or 407 to the request, which is as it was handed to the transaction layer.
    ///
    /// After ``AuthenticationResult/retry`` the request carries the credentials and the next CSeq number, which it must
    /// keep; within a dialog tell the dialog (`advanceLocalSequence(to:)`). Otherwise it is unchanged.
    public mutating func authorize(_ request: inout SIPMessage, after response: SIPMessage) -> AuthenticationResult {
        guard response.status == 401 || response.status == 407 else {
            return .refused(reason: "a \(response.status ?? 0) response holds no challenge")
        }
        let all = Challenge.challenges(in: response)
        let challenges = all.filter { realms?.contains($0.realm) ?? true }
        guard !challenges.isEmpty else {
            let reason =
                all.isEmpty
                ? "the server asked for credentials without a challenge"
                : "the challenge is for realm \(Challenge.readable(all[0].realm)), which is not ours"
            return .refused(reason: reason)
        }
        let tries = tries(of: request)
        guard tries < Self.maximumTries else {
            return .refused(reason: "the server asked for credentials \(tries + 1) times in a row")
        }
        if request.method == .register {
            // Known even while there is no token: it will be asked for.
            let asking = challenges.filter { $0.scheme == .bearer && $0.isProxy }.map(\.realm)
            if tokenProxies.count < Self.maximumSessions { tokenProxies.formUnion(asking) }
        }
        let carried = Carried(request)
        var answers: [Answer] = []
        var objections: [String] = []
        for group in Self.grouped(challenges) where answers.count < Self.maximumSessions {
            answer(group, carried: carried, tries: tries, request, &answers, &objections)
        }
        if answers.isEmpty {
            if objections.isEmpty, token == nil, let wanted = challenges.first(where: { $0.scheme == .bearer }) {
                return .needsToken(wanted)
            }
            return .refused(reason: objections.first ?? missing(for: challenges))
        }
        write(answers, into: &request, carried: carried)
        if let cseq = request.cseq {
            let next = min(cseq.number, UInt32(Int32.max) - 1) + 1
            request.cseq = SIPCSeq(number: next, method: cseq.method)
            if attempts.count >= Self.maximumAttempts { attempts.removeFirst() }
            attempts.append(Attempt(callID: request.callID ?? "", sequence: next, tries: tries + 1))
        }
        return .retry
    }

    /// The message without any token: for a flow that anyone on the way could read.
    public static func withoutToken(_ message: SIPMessage) -> SIPMessage {
        guard message.method != nil else { return message }
        var message = message
        for isProxy in [false, true] {
            let name = headerName(isProxy: isProxy)
            let lines = message.headers.all(name)
            let kept = lines.filter { line in
                !AuthenticationFields.parse(line).contains { $0.isScheme("bearer") }
            }
            guard kept.count < lines.count else { continue }
            message.headers.remove(name)
            for line in kept { message.headers.append(name, line) }
        }
        return message
    }

    /// How often credentials were added to this request after a challenge.
    private func tries(of request: SIPMessage) -> Int {
        attempts.last { $0.sequence == request.cseq?.number && $0.callID == request.callID ?? "" }?.tries ?? 0
    }
}

// MARK: - Choosing

extension Authenticator {
    /// The credentials that a request carried.
    struct Carried {
        var tokens: [Bool: String] = [:]
        var digests: [(isProxy: Bool, fields: AuthenticationFields)] = []

        init(_ request: SIPMessage) {
            for isProxy in [false, true] {
                for line in request.headers.all(Authenticator.headerName(isProxy: isProxy)) {
                    for fields in AuthenticationFields.parse(line) {
                        if fields.isScheme("bearer") { tokens[isProxy] = fields.token }
                        if fields.isScheme("digest") { digests.append((isProxy, fields)) }
                    }
                }
            }
        }
    }

    private var token: String? {
        for case .bearer(let token) in credentials { return token }
        return nil
    }

    var digestCredential: (username: String, password: String)? {
        for case .digest(let username, let password) in credentials { return (username, password) }
        return nil
    }

    static func headerName(isProxy: Bool) -> String {
        isProxy ? "Proxy-Authorization" : "Authorization"
    }

    /// The challenges of each protection space, in order.
    private static func grouped(_ challenges: [Challenge]) -> [[Challenge]] {
        var groups: [[Challenge]] = []
        for challenge in challenges {
            let known = groups.firstIndex {
                $0.first?.realm == challenge.realm && $0.first?.isProxy == challenge.isProxy
            }
            if let known {
                groups[known].append(challenge)
            } else {
                groups.append([challenge])
            }
        }
        return groups
    }

    private func answer(
        _ group: [Challenge], carried: Carried, tries: Int, _ request: SIPMessage, _ answers: inout [Answer],
        _ objections: inout [String]
    ) {
        if let token, let challenge = group.first(where: { $0.scheme == .bearer }) {
            if request.method != .register, !(challenge.isProxy && tokenProxies.contains(challenge.realm)) {
                objections.append("a token is asked for by somebody who did not ask for it when we registered")
            } else if carried.tokens[challenge.isProxy] != token {
                answers.append(.bearer(token: token, isProxy: challenge.isProxy, realm: challenge.realm))
                return
            } else {
                let detail = challenge.errorDescription ?? challenge.error
                objections.append("the server did not accept the token" + (detail.map { ": \($0)" } ?? ""))
            }
        }
        guard digestCredential != nil, let challenge = Self.strongest(group), let nonce = challenge.nonce,
            let algorithm = DigestAlgorithm(name: challenge.algorithm)
        else { return }
        let wasAnswered = carried.digests.contains {
            $0.isProxy == challenge.isProxy && $0.fields["realm"] == challenge.realm
        }
        if !challenge.stale, wasAnswered, tries > 0 {
            objections.append("the server did not accept the user name and password")
            return
        }
        answers.append(
            .digest(
                Session(
                    realm: challenge.realm, isProxy: challenge.isProxy, nonce: nonce, opaque: challenge.opaque,
                    algorithm: algorithm, writtenAlgorithm: challenge.algorithm,
                    quality: challenge.qop.isEmpty ? .none : challenge.qop.contains("auth") ? .auth : .authInt,
                    hashesUser: challenge.userHash, method: request.method, host: request.requestURI?.host)))
    }

    /// The digest challenge to answer: the first that can be and is not weak, else the first that can be.
    private static func strongest(_ challenges: [Challenge]) -> Challenge? {
        let answerable = challenges.filter { challenge in
            challenge.scheme == .digest && challenge.nonce != nil
                && DigestAlgorithm(name: challenge.algorithm)?.isAvailable == true
                && (challenge.qop.isEmpty || challenge.qop.contains { $0 == "auth" || $0 == "auth-int" })
        }
        return answerable.first { DigestAlgorithm(name: $0.algorithm)?.isWeak == false } ?? answerable.first
    }

    private func missing(for challenges: [Challenge]) -> String {
        let names = challenges.prefix(8).map { challenge in
            switch challenge.scheme {
            case .bearer: "Bearer"
            case .digest: "Digest (algorithm \(Challenge.readable(challenge.algorithm ?? "MD5")))"
            case .other(let name): Challenge.readable(name)
            }
        }
        return "the server asks for \(names.joined(separator: " or ")), which is not configured or not supported"
    }
}

extension Authenticator: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How many credentials there are.
    public var description: String { "Authenticator(\(credentials.count) credentials)" }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror that shows the description only.
    public var customMirror: Mirror { Mirror(self, children: ["authenticator": description]) }
}
