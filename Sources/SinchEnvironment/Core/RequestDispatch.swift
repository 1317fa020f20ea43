import Primitives
import SIP

/// A new request, and when and whence it came.
struct Incoming: Sendable {
    var request: SIPMessage
    var id: TransactionID
    var flow: SIPFlow
    var now: MonotonicTime
    var unixTime: Int64
}

extension EnvironmentCore {
    /// Methods that are relayed outside of a dialog.
    private static let relayedMethods: Set<SIPMethod> = [.invite, .options, .message]
    /// Methods that exist but are not relayed outside of a dialog: 405; any other is unknown: 501.
    private static let knownMethods: Set<SIPMethod> = [
        .bye, .info, .prack, .update, .refer, .notify, .subscribe, .publish, .cancel, .ack,
    ]
    static let allow = "INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, MESSAGE"

    /// Decides what becomes of a new request (RFC 3261 section 16.3 to 16.5).
    mutating func dispatch(_ incoming: Incoming) {
        var request = incoming.request
        guard let method = request.method, let from = request.from, let to = request.to else {
            respond(incoming, status: 400, reason: "Bad Request")
            return
        }
        if method == .register {
            answerRegistration(incoming)
            return
        }
        let extensions = request.headers.values("Proxy-Require")
        guard extensions.isEmpty else {
            respond(
                incoming, status: 420, reason: "Bad Extension",
                headers: [("Unsupported", extensions.joined(separator: ", "))])
            return
        }
        let way = recordRoute.takeWay(from: &request)
        if isForEnvironment(request, method) && to.tag == nil {
            answerOptions(incoming)
            return
        }
        guard request.maxForwards != 0 else {
            refuse(incoming, status: 483, reason: "Too Many Hops")
            return
        }
        guard !isLoop(request) else {
            refuse(incoming, status: 482, reason: "Loop Detected")
            return
        }
        if to.tag != nil {
            relayInDialog(incoming, request, way)
        } else {
            relayOutOfDialog(incoming, request, method, from)
        }
    }

    /// OPTIONS for the environment itself, as clients send it to see whether it is there (section 11).
    private func isForEnvironment(_ request: SIPMessage, _ method: SIPMethod) -> Bool {
        guard method == .options, let uri = request.requestURI else { return false }
        return domain.owns(uri) && (uri.user ?? "").isEmpty
    }

    private mutating func answerOptions(_ incoming: Incoming) {
        respond(
            incoming, status: 200, reason: nil,
            headers: [("Allow", Self.allow), ("Accept", "application/sdp"), ("Supported", "outbound")])
    }

    private mutating func answerRegistration(_ incoming: Incoming) {
        let arrival = Registrar.Arrival(flow: incoming.flow, now: incoming.now, unixTime: incoming.unixTime)
        let answer = registrar.register(incoming.request, arrival, in: &location)
        reply(answer.response, to: incoming)
        answer.events.forEach { log($0) }
    }

    private mutating func relayOutOfDialog(
        _ incoming: Incoming, _ request: SIPMessage, _ method: SIPMethod, _ from: SIPAddress
    ) {
        guard let sender = sender(from, over: incoming.flow, at: incoming.now) else {
            refuse(incoming, status: 403, reason: "Not Registered Here")
            return
        }
        guard Self.relayedMethods.contains(method) else {
            let status = Self.knownMethods.contains(method) ? 405 : 501
            refuse(incoming, status: status, reason: nil, headers: [("Allow", Self.allow)])
            return
        }
        guard request.routes.isEmpty else {
            refuse(incoming, status: 403, reason: "Relaying to Other Domains Is Not Offered")
            return
        }
        let key = RequestKey(request)
        if let key, inProgress[key] != nil, !hasPassedHere(request) {
            refuse(incoming, status: 482, reason: "Merged Request")
            return
        }
        switch devices(for: request, in: sender.user.application, at: incoming.now) {
        case .refusal(let status, let reason): refuse(incoming, status: status, reason: reason)
        case .devices(let devices):
            if method == .invite {
                guard admitsCall(incoming) else { return }
            }
            fork(incoming, request, from: sender, to: devices, key: key)
        }
    }

    /// The device that a request comes from, when its From is registered over this flow; nil when it is not, and so may
    /// be forged.
    func sender(_ from: SIPAddress, over flow: SIPFlow, at now: MonotonicTime) -> Binding? {
        guard let name = from.uri.user, domain.owns(from.uri) else { return nil }
        return location.sender(named: name, over: flow, at: now)
    }

    private enum Destination {
        /// Each device with its flows, the best first.
        case devices([[Binding]])
        case refusal(Int, String)
    }

    /// Who a request is for (section 16.5): all devices of a user of the application, or the device at this contact.
    private func devices(for request: SIPMessage, in application: String, at now: MonotonicTime) -> Destination {
        guard let uri = request.requestURI, uri.isSIP else { return .refusal(416, "Unsupported URI Scheme") }
        guard domain.owns(uri) else {
            // A contact, as a transfer names it: the device must be of the same application.
            guard let device = location.binding(at: uri, in: application, at: now) else {
                return .refusal(404, "Domain Not Served Here")
            }
            return .devices([[device]])
        }
        guard let name = uri.user, !name.isEmpty else { return .refusal(404, "Address Without User") }
        let user = UserKey(application: application, user: name)
        let bindings = location.bindings(of: user, at: now)
        guard !bindings.isEmpty else {
            return location.isKnown(user) ? .refusal(480, "No Device Registered") : .refusal(404, "No Such User")
        }
        // Several flows of one device are alternatives, not devices that ring together (RFC 5626 section 5.3).
        var devices: [[Binding]] = []
        var positions: [String: Int] = [:]
        for binding in bindings {
            if let instance = binding.instance, let position = positions[instance] {
                devices[position].append(binding)
            } else {
                if let instance = binding.instance { positions[instance] = devices.count }
                devices.append([binding])
            }
        }
        return .devices(devices)
    }

    // MARK: Answers

    /// Answers a request and tells the log that it was refused.
    mutating func refuse(
        _ incoming: Incoming, status: Int, reason: String?, headers: [(name: String, value: String)] = [],
        retry: Bool = false
    ) {
        let response = respond(incoming, status: status, reason: reason, headers: headers, retry: retry)
        log(
            .requestRefused(
                method: incoming.request.method?.rawValue ?? "", from: incoming.request.from?.uri.description ?? "",
                flow: incoming.flow, status: status, reason: response.reason ?? ""))
    }

    /// Answers a request; `retry` adds Retry-After.
    @discardableResult
    mutating func respond(
        _ incoming: Incoming, status: Int, reason: String?, headers: [(name: String, value: String)] = [],
        retry: Bool = false
    ) -> SIPMessage {
        var response = incoming.request.response(status: status, reason: reason)
        for (name, value) in headers { response.headers.append(name, value) }
        if retry { response.headers.append("Retry-After", String(configuration.limits.retryAfter)) }
        reply(response, to: incoming)
        return response
    }

    /// Sends an answer of our own. A refusal leaves no transaction behind, so that a flood from strangers fills nothing:
    /// the same request again is refused again.
    private mutating func reply(_ response: SIPMessage, to incoming: Incoming) {
        if let status = response.status, status >= 300 {
            transactions.refuse(response, in: incoming.id)
        } else {
            transactions.respond(response, in: incoming.id, at: incoming.now)
        }
    }
}
