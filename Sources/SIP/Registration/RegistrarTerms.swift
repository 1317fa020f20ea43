import Primitives

/// What a registrar's 200 says beside the lifetime of the binding: how to keep the flow, and what to write into requests.
public struct RegistrarTerms: Hashable, Sendable {
    /// Whether the registrar and its edge proxy take part in RFC 5626: then they answer keep-alives.
    public var supportsOutbound = false
    /// How long the edge proxy keeps a silent flow (RFC 5626, section 5.4); nil when it does not say.
    public var flowTimer: Duration?
    /// The Service-Route, nearest first: the route of requests outside dialogs (RFC 3608).
    public var serviceRoutes: [SIPAddress] = []
    /// An address of this very device that works from everywhere (RFC 5627), for Contact; nil when none was given.
    public var publicGRUU: SIPURI?

    /// More hops than this are no route that anybody means.
    private static let maximumRoutes = 16

    /// Nothing said.
    public init() {}

    /// Reads a 200 to a REGISTER whose contact has this instance and flow number.
    init(_ response: SIPMessage, instanceURN: String, registrationID: Int) {
        supportsOutbound = ["Require", "Supported"].contains { name in
            response.headers.values(name).contains { $0.lowercased() == "outbound" }
        }
        flowTimer = response.headers["Flow-Timer"].flatMap { UInt32($0) }.map { .seconds(Int64($0)) }
        serviceRoutes = response.headers.values("Service-Route").prefix(Self.maximumRoutes)
            .compactMap { try? SIPAddress(parsing: $0) }
        let own = SIPAddress.own(among: response.contacts, instanceURN: instanceURN, registrationID: registrationID)
        publicGRUU = own?.parameters.unquoted("pub-gruu").flatMap { try? SIPURI(parsing: $0) }
            .flatMap { $0.isSIP && $0.parameters.contains("gr") ? $0 : nil }
    }
}

extension SIPAddress {
    /// The contact with our instance and, where it is named, our flow's number.
    static func own(among contacts: [SIPAddress], instanceURN: String, registrationID: Int) -> SIPAddress? {
        contacts.first {
            $0.instanceURN == instanceURN.lowercased()
                && ($0.parameters["reg-id"].flatMap { Int($0) } ?? registrationID) == registrationID
        }
    }

    /// The value of `+sip.instance` without quotes and angle brackets, in lower case.
    private var instanceURN: String? {
        parameters["+sip.instance"].map {
            String($0.lowercased().drop { "\"<".contains($0) }.prefix { !">\"".contains($0) })
        }
    }
}
