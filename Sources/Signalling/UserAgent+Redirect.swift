import Primitives
import SIP

/// Where an outgoing call was redirected to (RFC 3261, sections 8.1.3.4 and 19.1.4).
struct Redirection: Sendable {
    /// As many addresses of one response are kept.
    static let maximumTargets = 8

    /// Every address that was called, so that none is called twice.
    var tried: Set<String> = []
    /// Addresses to call next, the best first.
    var waiting: [SIPURI] = []
    /// How often the call was redirected.
    var count = 0
}

/// Redirects (3xx): the call goes on to another address, within limits.
extension UserAgent {
    /// Calls the next address that a redirect named.
    ///
    /// - Returns: false when there is none, or the limit is reached: the response ends the call.
    mutating func redirect(
        _ response: SIPMessage, status: Int, of handle: CallHandle, at now: MonotonicTime
    ) -> Bool {
        guard var call = calls[handle], call.phase == .early, call.direction == .outgoing, path != nil,
            let current = call.invite.requestURI
        else { return false }
        call.redirection.tried.insert(Self.key(current))
        // 305 and 380 name proxies and other services, not addresses of the callee.
        if [300, 301, 302].contains(status) {
            call.redirection.waiting = targets(of: response, insteadOf: current, call.redirection)
        } else if !(400..<600).contains(status) {
            return false
        }
        guard call.redirection.count < min(configuration.maximumRedirects, 5), !call.redirection.waiting.isEmpty else {
            return false
        }
        call.redirection.count += 1
        let target = call.redirection.waiting.removeFirst()
        call.redirection.tried.insert(Self.key(target))
        var invite = call.invite
        invite.requestURI = target
        invite.cseq = SIPCSeq(number: min(invite.cseq?.number ?? 0, UInt32(Int32.max) - 1) + 1, method: .invite)
        // Credentials were for the address before.
        invite.headers.remove("Authorization")
        invite.headers.remove("Proxy-Authorization")
        call.inviteAttempts = 1
        calls[handle] = call
        resendInvite(invite, of: handle, at: now)
        return true
    }

    /// The addresses of a redirect that may be called, the best first (`q`, RFC 3261 section 20.10).
    private func targets(of response: SIPMessage, insteadOf current: SIPURI, _ past: Redirection) -> [SIPURI] {
        var found: [(uri: SIPURI, q: Double)] = []
        var seen = past.tried
        for contact in response.contacts.prefix(64) where found.count < Redirection.maximumTargets {
            guard isAllowedTarget(contact.uri, insteadOf: current) else { continue }
            var uri = contact.uri
            uri.headers = []
            uri.parameters.remove("method")
            guard seen.insert(Self.key(uri)).inserted else { continue }
            found.append((uri, contact.parameters["q"].flatMap(Double.init).map { min(max($0, 0), 1) } ?? 1))
        }
        return found.enumerated()
            .sorted { ($1.element.q, $0.offset) < ($0.element.q, $1.offset) }
            .map(\.element.uri)
    }

    /// The same for addresses that are equivalent for a loop.
    private static func key(_ uri: SIPURI) -> String {
        "\(uri.scheme):\(uri.user ?? "")@\(uri.host):\(uri.port.map { String($0) } ?? "")"
    }

    /// Whether somebody else may send us to this address: a SIP address of a user, none without TLS where TLS was asked for,
    /// and none of this machine unless the platform is on it.
    func isAllowedTarget(_ target: SIPURI, insteadOf current: SIPURI?) -> Bool {
        guard target.isSIP, target.printFault == nil, target.user?.isEmpty == false else { return false }
        if current?.isSecure ?? false, !target.isSecure { return false }
        let isPlatformHere = path?.flow.remote.isLoopback ?? false
        return isPlatformHere || target.host == configuration.domain.lowercased() || !Self.isThisMachine(target.host)
    }

    private static func isThisMachine(_ host: String) -> Bool {
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        let bare = name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name
        return name == "localhost" || name.hasSuffix(".localhost") || TransportAddress(host: bare, port: 0).isLoopback
            || ["0.0.0.0", "::"].contains(bare)
    }
}
