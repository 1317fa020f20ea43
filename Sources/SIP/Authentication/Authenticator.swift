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
/// - A bearer token is preferred when the server takes one. Digest is used only when a password was configured.
/// - Of several digest challenges for one realm the first with a known algorithm is answered, the server's order
///   being its preference (RFC 8760 section 2.4); quality of protection `auth`, never `auth-int`.
/// - One request is tried at most twice with credentials, the second time only after `stale=true` or for another realm.
///
/// It answers whatever challenge it is handed. The owner hands it only responses that came over the flow to its own
/// domain, and limits them with `realms` where a peer behind that proxy could send one. Printing it shows no secret.
public struct Authenticator: Sendable {
    /// A digest protection space that has challenged us, and its nonce.
    private struct Session: Sendable {
        var realm: String
        var isProxy: Bool
        var nonce: String
        var opaque: String?
        var algorithm: DigestAlgorithm
        var writtenAlgorithm: String?
        var usesQuality: Bool
        var nonceCount: UInt32 = 0
        /// What was being asked when the server itself challenged: its nonce serves the same kind of request only.
        var method: SIPMethod?
        var host: String?
    }

    /// One header to be written.
    private enum Answer {
        case bearer(token: String, isProxy: Bool, realm: String)
        case digest(Session)
    }

    private static let maximumSessions = 16
    private static let maximumAttempts = 64
    private static let maximumTries = 2

    private var credentials: [Credential]
    private var random: RandomSource
    private let realms: Set<String>?
    private var sessions: [Session] = []
    /// The tries of requests under way, by the response that each carries.
    private var attempts: [(response: String, tries: Int)] = []
    private var proxyTakesToken = false

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

    /// Takes new credentials; nonces of the old ones are forgotten when the password changed.
    public mutating func replaceCredentials(_ credentials: [Credential]) {
        let before = digestCredential
        self.credentials = credentials
        let after = digestCredential
        if before?.username != after?.username || before?.password != after?.password { sessions = [] }
    }

    /// Whether the request carries the token that is configured now.
    public func carriesCurrentToken(_ request: SIPMessage) -> Bool {
        guard let token else { return false }
        return [false, true].contains { Challenge.bearerToken(in: request, isProxy: $0) == token }
    }

    /// Adds credentials before anybody asked, to save the round trip.
    ///
    /// A token goes into Authorization of a REGISTER only: in other requests that header reaches the peer. Proxies that
    /// asked before get what they asked for, and a registrar that gave us a nonce its digest.
    public mutating func preauthorize(_ request: inout SIPMessage) {
        let isRegister = request.method == .register
        if isRegister, let token {
            request.headers["Authorization"] = "Bearer \(token)"
        }
        if proxyTakesToken, let token {
            request.headers["Proxy-Authorization"] = "Bearer \(token)"
        }
        for index in sessions.indices {
            let session = sessions[index]
            if session.isProxy ? (proxyTakesToken && token != nil) : (isRegister && token != nil) { continue }
            let isSameServer =
                session.isProxy || (session.method == request.method && session.host == request.requestURI?.host)
            if isSameServer, let value = digestHeader(for: index, request) {
                request.headers.append(Self.headerName(isProxy: session.isProxy), value.text)
            }
        }
    }

    /// Answers the challenges of a 401 or 407 to the request, which is as it was handed to the transaction layer.
    ///
    /// After ``AuthenticationResult/retry`` the request carries the credentials and the next CSeq number; within a
    /// dialog tell the dialog (`advanceLocalSequence(to:)`). Otherwise it is unchanged.
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
                : "the challenge is for realm \(all[0].realm.debugDescription), which is not ours"
            return .refused(reason: reason)
        }
        let carried = Carried(request)
        let tries = carried.digests.map { attempt(of: $0) }.max() ?? 0
        guard tries < Self.maximumTries else {
            return .refused(reason: "the server asked for credentials \(tries + 1) times in a row")
        }
        var answers: [Answer] = []
        var objections: [String] = []
        for group in Self.grouped(challenges) {
            answer(group, carried: carried, request, &answers, &objections)
        }
        if answers.isEmpty {
            if objections.isEmpty, let wanted = challenges.first(where: { $0.scheme == .bearer }) {
                return .needsToken(wanted)
            }
            return .refused(reason: objections.first ?? missing(for: challenges))
        }
        write(answers, into: &request, carried: carried, tries: tries + 1)
        if let cseq = request.cseq {
            request.cseq = SIPCSeq(number: min(cseq.number, UInt32(Int32.max) - 1) + 1, method: cseq.method)
        }
        return .retry
    }
}

// MARK: - Choosing

extension Authenticator {
    /// The credentials that a request carried.
    private struct Carried {
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

    private var digestCredential: (username: String, password: String)? {
        for case .digest(let username, let password) in credentials { return (username, password) }
        return nil
    }

    fileprivate static func headerName(isProxy: Bool) -> String {
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
        _ group: [Challenge], carried: Carried, _ request: SIPMessage, _ answers: inout [Answer],
        _ objections: inout [String]
    ) {
        if let token, let challenge = group.first(where: { $0.scheme == .bearer }) {
            if carried.tokens[challenge.isProxy] != token {
                answers.append(.bearer(token: token, isProxy: challenge.isProxy, realm: challenge.realm))
                return
            }
            let detail = challenge.errorDescription ?? challenge.error
            objections.append("the server did not accept the token" + (detail.map { ": \($0)" } ?? ""))
        }
        guard digestCredential != nil, let challenge = group.first(where: Self.isAnswerable),
            let nonce = challenge.nonce, let algorithm = DigestAlgorithm(name: challenge.algorithm)
        else { return }
        let before = carried.digests.filter {
            $0.isProxy == challenge.isProxy && $0.fields["realm"] == challenge.realm
        }
        if !challenge.stale, before.contains(where: { attempt(of: $0) > 0 }) {
            objections.append("the server did not accept the user name and password")
            return
        }
        answers.append(
            .digest(
                Session(
                    realm: challenge.realm, isProxy: challenge.isProxy, nonce: nonce, opaque: challenge.opaque,
                    algorithm: algorithm, writtenAlgorithm: challenge.algorithm,
                    usesQuality: !challenge.qop.isEmpty, method: request.method,
                    host: request.requestURI?.host)))
    }

    private static func isAnswerable(_ challenge: Challenge) -> Bool {
        challenge.scheme == .digest && challenge.nonce != nil
            && DigestAlgorithm(name: challenge.algorithm)?.isAvailable == true
            && (challenge.qop.isEmpty || challenge.qop.contains("auth"))
    }

    private func missing(for challenges: [Challenge]) -> String {
        let names = challenges.map { challenge in
            switch challenge.scheme {
            case .bearer: "Bearer"
            case .digest: "Digest (algorithm \(challenge.algorithm ?? "MD5"))"
            case .other(let name): name
            }
        }
        return "the server asks for \(names.joined(separator: " or ")), which is not configured or not supported"
    }

    private func attempt(of carried: (isProxy: Bool, fields: AuthenticationFields)) -> Int {
        guard let response = carried.fields["response"] else { return 0 }
        return attempts.last { $0.response == response }?.tries ?? 0
    }
}

// MARK: - Writing

extension Authenticator {
    private mutating func write(
        _ answers: [Answer], into request: inout SIPMessage, carried: Carried, tries: Int
    ) {
        for isProxy in [false, true] {
            let name = Self.headerName(isProxy: isProxy)
            var lines: [String] = []
            var answered: Set<String> = []
            var hasToken = false
            for answer in answers {
                switch answer {
                case .bearer(let token, isProxy, let realm):
                    answered.insert(realm)
                    if !hasToken { lines.append("Bearer \(token)") }
                    hasToken = true
                    if isProxy { proxyTakesToken = true }
                case .digest(let session) where session.isProxy == isProxy:
                    answered.insert(session.realm)
                    hasToken = true  // a token that was carried has been refused
                    lines += digestLine(for: remember(session), request, tries: tries)
                default: break
                }
            }
            // What other protection spaces have got stays, with the next nonce count: this is a new request.
            if !hasToken, let token = carried.tokens[isProxy] { lines.append("Bearer \(token)") }
            for old in carried.digests where old.isProxy == isProxy {
                guard let realm = old.fields["realm"], !answered.contains(realm),
                    let session = sessions.firstIndex(where: { $0.realm == realm && $0.isProxy == isProxy })
                else { continue }
                answered.insert(realm)
                lines += digestLine(for: session, request, tries: max(tries, attempt(of: old)))
            }
            request.headers.remove(name)
            for line in lines { request.headers.append(name, line) }
        }
    }

    private mutating func remember(_ session: Session) -> Int {
        if let known = sessions.firstIndex(where: { $0.realm == session.realm && $0.isProxy == session.isProxy }) {
            if sessions[known].nonce == session.nonce {
                var renewed = session
                renewed.nonceCount = sessions[known].nonceCount
                sessions[known] = renewed
            } else {
                sessions[known] = session
            }
            return known
        }
        if sessions.count >= Self.maximumSessions { sessions.removeFirst() }
        sessions.append(session)
        return sessions.count - 1
    }

    private mutating func digestLine(for session: Int, _ request: SIPMessage, tries: Int) -> [String] {
        guard let value = digestHeader(for: session, request) else { return [] }
        if attempts.count >= Self.maximumAttempts { attempts.removeFirst() }
        attempts.append((value.response, tries))
        return [value.text]
    }

    private mutating func digestHeader(
        for index: Int, _ request: SIPMessage
    ) -> (text: String, response: String)? {
        guard let (username, password) = digestCredential, let method = request.method,
            let uri = request.requestURI?.description
        else { return nil }
        sessions[index].nonceCount &+= 1
        let session = sessions[index]
        let quality = session.usesQuality ? (Self.eightDigits(session.nonceCount), random.hexadecimal(bits: 128)) : nil
        let input = DigestInput(
            algorithm: session.algorithm, realm: session.realm, nonce: session.nonce, method: method.rawValue,
            uri: uri, quality: quality)
        let secret = DigestInput.secret(
            algorithm: session.algorithm, username: username, realm: session.realm, password: password)
        let response = input.response(secret: secret)
        var parts = [
            "username=\(AuthenticationFields.quoted(username))", "realm=\(AuthenticationFields.quoted(session.realm))",
            "nonce=\(AuthenticationFields.quoted(session.nonce))", "uri=\(AuthenticationFields.quoted(uri))",
            "response=\"\(response)\"",
        ]
        if let algorithm = session.writtenAlgorithm { parts.append("algorithm=\(algorithm)") }
        if let opaque = session.opaque { parts.append("opaque=\(AuthenticationFields.quoted(opaque))") }
        if let quality { parts.append("qop=auth, nc=\(quality.0), cnonce=\"\(quality.1)\"") }
        return ("Digest " + parts.joined(separator: ", "), response)
    }

    private static func eightDigits(_ number: UInt32) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
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
