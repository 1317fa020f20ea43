import Crypto
import Primitives

/// What a server's Authentication-Info says about the server itself (RFC 7616 section 3.5).
public enum ServerProof: Sendable, Equatable {
    /// It offers no proof, which most do.
    case none
    /// It knows the password, too.
    case right
    /// It claims to know the password and does not.
    case wrong
}

// MARK: - Writing

extension Authenticator {
    mutating func write(_ answers: [Answer], into request: inout SIPMessage, carried: Carried) {
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
                case .digest(let session) where session.isProxy == isProxy:
                    answered.insert(session.realm)
                    hasToken = true  // a token that was carried has been refused
                    if let line = digestHeader(for: remember(session), request) { lines.append(line) }
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
                if let line = digestHeader(for: session, request) { lines.append(line) }
            }
            request.headers.remove(name)
            for line in lines { request.headers.append(name, line) }
        }
    }

    private mutating func remember(_ session: Session) -> Int {
        if let known = sessions.firstIndex(where: { $0.realm == session.realm && $0.isProxy == session.isProxy }) {
            var renewed = session
            if sessions[known].nonce == session.nonce { renewed.nonceCount = sessions[known].nonceCount }
            sessions[known] = renewed
            return known
        }
        if sessions.count >= Self.maximumSessions { sessions.removeFirst() }
        sessions.append(session)
        return sessions.count - 1
    }

    mutating func digestHeader(for index: Int, _ request: SIPMessage) -> String? {
        guard let (username, password) = digestCredential, let method = request.method,
            let uri = request.requestURI?.description
        else { return nil }
        sessions[index].nonceCount &+= 1
        let session = sessions[index]
        let quality =
            session.quality == .none
            ? nil : (Self.eightDigits(session.nonceCount), random.hexadecimal(bits: 128))
        let input = DigestInput(
            algorithm: session.algorithm, realm: session.realm, nonce: session.nonce, method: method.rawValue,
            uri: uri, quality: quality, protectedBody: session.quality == .authInt ? request.body : nil)
        let secret = DigestInput.secret(
            algorithm: session.algorithm, username: username, realm: session.realm, password: password)
        let shownName =
            session.hashesUser
            ? DigestInput.userHash(algorithm: session.algorithm, username: username, realm: session.realm) : username
        var parts = [
            "username=\(AuthenticationFields.quoted(shownName))",
            "realm=\(AuthenticationFields.quoted(session.realm))",
            "nonce=\(AuthenticationFields.quoted(session.nonce))", "uri=\(AuthenticationFields.quoted(uri))",
            "response=\"\(input.response(secret: secret))\"",
        ]
        if let algorithm = session.writtenAlgorithm { parts.append("algorithm=\(algorithm)") }
        if let opaque = session.opaque { parts.append("opaque=\(AuthenticationFields.quoted(opaque))") }
        if let quality {
            let name = session.quality == .authInt ? "auth-int" : "auth"
            parts.append("qop=\(name), nc=\(quality.0), cnonce=\"\(quality.1)\"")
        }
        if session.hashesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private static func eightDigits(_ number: UInt32) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}

// MARK: - What the server says after a success

extension Authenticator {
    /// Reads Authentication-Info and Proxy-Authentication-Info of a success (RFC 7616 section 3.5, RFC 7615): takes the
    /// nonce for the next request, and checks the server's proof that it knows the password.
    ///
    /// A nonce out of a response whose proof is wrong is not taken.
    public mutating func confirm(_ request: SIPMessage, by response: SIPMessage) -> ServerProof {
        let carried = Carried(request)
        var result = ServerProof.none
        for (name, isProxy) in [("Authentication-Info", false), ("Proxy-Authentication-Info", true)] {
            // The header has no scheme and no realm: it belongs to the one digest that was sent.
            let digests = carried.digests.filter { $0.isProxy == isProxy }
            guard let line = response.headers[name], digests.count == 1, let sent = digests.first?.fields,
                let session = sessions.firstIndex(where: { $0.realm == sent["realm"] && $0.isProxy == isProxy })
            else { continue }
            let info = AuthenticationFields.parameters(line)
            if let claim = info["rspauth"] {
                guard isRight(claim, info, sent, sessions[session], response) else { return .wrong }
                result = .right
            }
            if let next = info["nextnonce"], !next.isEmpty, sessions[session].nonce == sent["nonce"] {
                sessions[session].nonce = next
                sessions[session].nonceCount = 0
            }
        }
        return result
    }

    private func isRight(
        _ claim: String, _ info: AuthenticationFields, _ sent: AuthenticationFields, _ session: Session,
        _ response: SIPMessage
    ) -> Bool {
        guard let (username, password) = digestCredential, let nonce = sent["nonce"], let uri = sent["uri"],
            info["cnonce"] == nil || info["cnonce"] == sent["cnonce"], info["nc"] == nil || info["nc"] == sent["nc"]
        else { return false }
        let quality = sent["nc"].flatMap { count in sent["cnonce"].map { (count, $0) } }
        let input = DigestInput(
            algorithm: session.algorithm, realm: session.realm, nonce: nonce, method: "", uri: uri, quality: quality,
            protectedBody: (info["qop"] ?? sent["qop"]) == "auth-int" ? [] : nil)
        let secret = DigestInput.secret(
            algorithm: session.algorithm, username: username, realm: session.realm, password: password)
        let expected = input.serverResponse(secret: secret, body: response.body)
        return constantTimeEqual(Array(expected.utf8), Array(claim.lowercased().utf8))
    }
}
