import Primitives
import SIP

/// Answers REGISTER requests (RFC 3261 section 10.3, RFC 5626 section 6): checks the token, then the contacts, and only
/// when all of them are acceptable writes them to the location service.
struct Registrar: Sendable {
    /// Option tags that a REGISTER may require.
    private static let understood: Set<String> = ["outbound"]
    /// Contacts in one request; a device has one or two.
    private static let maxContactsPerRequest = 10

    private let gate: TokenGate
    private let domain: Domain
    private let minExpires: Int
    private let maxExpires: Int
    private let defaultExpires: Int
    private let retryAfter: Int

    init(_ configuration: EnvironmentConfiguration) {
        gate = TokenGate(realm: configuration.realm, applications: configuration.applications)
        domain = Domain(configuration)
        maxExpires = max(1, configuration.maxExpires)
        minExpires = min(max(1, configuration.minExpires), maxExpires)
        defaultExpires = min(max(configuration.defaultExpires, minExpires), maxExpires)
        retryAfter = configuration.limits.retryAfter
    }

    /// When and whence a request came.
    struct Arrival: Sendable {
        var flow: SIPFlow
        var now: MonotonicTime
        var unixTime: Int64
    }

    /// The answer without To tag, and what to log.
    struct Answer: Sendable {
        var response: SIPMessage
        var events: [EnvironmentEvent]
    }

    private struct Refusal: Error {
        var status: Int
        var reason: String
        var headers: [(name: String, value: String)] = []
    }

    /// One contact of the request and the seconds it is granted, 0 to remove it.
    private struct Request {
        var contact: SIPAddress
        var granted: Int
    }

    /// Processes one REGISTER.
    func register(_ request: SIPMessage, _ arrival: Arrival, in location: inout LocationService) -> Answer {
        do throws(Refusal) {
            return try process(request, arrival, in: &location)
        } catch {
            var response = request.response(status: error.status, reason: error.reason)
            for (name, value) in error.headers { response.headers.append(name, value) }
            response.headers.append("Date", sipDate(unixTime: arrival.unixTime))
            let event = EnvironmentEvent.registrationRefused(
                user: loggable(request.to?.uri.user), flow: arrival.flow, status: error.status, reason: error.reason)
            return Answer(response: response, events: [event])
        }
    }

    private func process(
        _ request: SIPMessage, _ arrival: Arrival, in location: inout LocationService
    ) throws(Refusal) -> Answer {
        guard let to = request.to, let callID = request.callID, let cseq = request.cseq, let uri = request.requestURI
        else { throw Refusal(status: 400, reason: "Bad Request") }
        let unsupported = request.headers.values("Require").filter { !Self.understood.contains($0.lowercased()) }
        guard unsupported.isEmpty else {
            throw Refusal(
                status: 420, reason: "Bad Extension", headers: [("Unsupported", unsupported.joined(separator: ", "))])
        }
        guard domain.owns(uri), domain.owns(to.uri) else {
            throw Refusal(status: 404, reason: "Domain Not Served Here")
        }
        guard let name = to.uri.user, !name.isEmpty else {
            throw Refusal(status: 404, reason: "Address Without User")
        }
        let grant: TokenGate.Grant
        do throws(TokenGate.Refusal) {
            grant = try gate.admit(request, as: name, unixTime: arrival.unixTime)
        } catch {
            throw Refusal(
                status: error.status, reason: error.reason,
                headers: error.challenge.map { [("WWW-Authenticate", $0)] } ?? [])
        }

        var events: [EnvironmentEvent] = []
        if request.hasStarContact {
            try removeAll(of: grant.user, callID, cseq.number, request, arrival, in: &location, &events)
        } else {
            let contacts = try accept(request, grant, arrival)
            try checkOrder(of: contacts, grant.user, callID, cseq.number, arrival, in: location)
            let change = Change(user: grant.user, callID: callID, sequence: cseq.number, contacts: contacts)
            try apply(change, arrival, in: &location, &events)
        }
        return Answer(response: success(request, grant.user, arrival, in: location), events: events)
    }

    // MARK: Checking

    /// The contacts of the request, each with the time it is granted.
    private func accept(
        _ request: SIPMessage, _ grant: TokenGate.Grant, _ arrival: Arrival
    ) throws(Refusal) -> [Request] {
        let contacts = request.contacts
        guard contacts.count <= Self.maxContactsPerRequest else {
            throw Refusal(status: 400, reason: "Too Many Contacts")
        }
        if contacts.isEmpty && request.headers.contains("Contact") {
            throw Refusal(status: 400, reason: "Malformed Contact")
        }
        // A token may limit how long its device stays registered.
        let limit = grant.instanceExpiry.map { Int(clamping: max(1, $0 &- arrival.unixTime)) } ?? .max
        var accepted: [Request] = []
        for var contact in contacts {
            // What cannot be printed again could neither be listed nor called.
            guard contact.uri.isSIP, !contact.uri.host.isEmpty, contact.printFault == nil else {
                throw Refusal(status: 400, reason: "Contact Is Not a Usable SIP URI")
            }
            // A value that is no number counts as none (section 10.2.1.1 says 3600; the default serves the same purpose).
            let asked = contact.parameters["expires"].flatMap { Int($0) } ?? request.expires ?? defaultExpires
            contact.parameters.remove("expires")
            if asked > 0 && asked < minExpires {
                throw Refusal(
                    status: 423, reason: "Interval Too Brief", headers: [("Min-Expires", String(minExpires))])
            }
            accepted.append(Request(contact: contact, granted: min(max(0, asked), maxExpires, limit)))
        }
        return accepted
    }

    /// A binding changes only by a request of another Call-ID or a higher CSeq (section 10.3 step 7): a delayed REGISTER
    /// must not undo a later one.
    private func checkOrder(
        of contacts: [Request], _ user: UserKey, _ callID: String, _ sequence: UInt32, _ arrival: Arrival,
        in location: LocationService
    ) throws(Refusal) {
        let bindings = location.bindings(of: user, at: arrival.now)
        var additions = 0
        for entry in contacts {
            let identity = Binding.identity(of: entry.contact)
            if let binding = bindings.first(where: { $0.identity.matches(identity) }) {
                guard binding.callID != callID || sequence > binding.sequence else { throw Self.outOfOrder }
            } else if entry.granted > 0 {
                additions += 1
            }
        }
        guard location.hasRoom(for: additions) else {
            throw Refusal(
                status: 503, reason: "Too Many Registrations", headers: [("Retry-After", String(retryAfter))])
        }
    }

    private static let outOfOrder = Refusal(status: 500, reason: "CSeq Out of Order")

    // MARK: Writing

    private struct Change {
        var user: UserKey
        var callID: String
        var sequence: UInt32
        var contacts: [Request]
    }

    private func apply(
        _ change: Change, _ arrival: Arrival, in location: inout LocationService, _ events: inout [EnvironmentEvent]
    ) throws(Refusal) {
        for entry in change.contacts {
            guard entry.granted > 0 else {
                let identity = Binding.identity(of: entry.contact)
                let bindings = location.bindings(of: change.user, at: arrival.now)
                if let binding = bindings.first(where: { $0.identity.matches(identity) }) {
                    location.remove(binding)
                    events.append(departure(of: binding, .unregistered, arrival, in: location))
                }
                continue
            }
            let outcome = location.register(
                LocationService.Registration(
                    contact: entry.contact, flow: arrival.flow, callID: change.callID, sequence: change.sequence,
                    expiry: arrival.now + .seconds(entry.granted)),
                for: change.user)
            if let displaced = outcome.displaced {
                events.append(departure(of: displaced, .displaced, arrival, in: location))
            }
            events.append(
                .registered(
                    user: change.user.user, application: change.user.application,
                    contact: outcome.binding.contact.uri.description, flow: arrival.flow, expires: entry.granted,
                    isRefresh: outcome.isRefresh))
        }
    }

    /// `Contact: *`: removes all devices of the user; legal only alone and with `Expires: 0` (section 10.3 step 6).
    private func removeAll(
        of user: UserKey, _ callID: String, _ sequence: UInt32, _ request: SIPMessage, _ arrival: Arrival,
        in location: inout LocationService, _ events: inout [EnvironmentEvent]
    ) throws(Refusal) {
        guard request.expires == 0, request.headers.values("Contact").count == 1 else {
            throw Refusal(status: 400, reason: "Contact * Needs Expires 0")
        }
        let bindings = location.bindings(of: user, at: arrival.now)
        guard bindings.allSatisfy({ $0.callID != callID || sequence > $0.sequence }) else { throw Self.outOfOrder }
        for binding in bindings {
            location.remove(binding)
            events.append(departure(of: binding, .unregistered, arrival, in: location))
        }
    }

    private func departure(
        of binding: Binding, _ reason: EnvironmentEvent.DepartureReason, _ arrival: Arrival,
        in location: LocationService
    ) -> EnvironmentEvent {
        .unregistered(
            user: binding.user.user, application: binding.user.application,
            contact: binding.contact.uri.description, reason: reason,
            devicesLeft: location.bindings(of: binding.user, at: arrival.now).count)
    }

    // MARK: Answering

    /// 200 with all bindings of the user and the seconds left to each.
    private func success(
        _ request: SIPMessage, _ user: UserKey, _ arrival: Arrival, in location: LocationService
    ) -> SIPMessage {
        var response = request.response(status: 200)
        let bindings = location.bindings(of: user, at: arrival.now)
        for binding in bindings {
            var contact = binding.contact
            contact.parameters["expires"] = String(binding.secondsLeft(at: arrival.now))
            response.headers.append("Contact", contact.description)
        }
        // RFC 5626 section 6: tells the device that its flow is used, and not its address.
        let supportsOutbound = request.headers.values("Supported").contains { $0.lowercased() == "outbound" }
        let usesOutbound = request.contacts.contains {
            $0.parameters.contains("reg-id") && $0.parameters.contains("+sip.instance")
        }
        if supportsOutbound && usesOutbound { response.headers.append("Require", "outbound") }
        response.headers.append("Date", sipDate(unixTime: arrival.unixTime))
        return response
    }
}
