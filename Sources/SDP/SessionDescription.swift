/// A session description, RFC 8866: what one side can receive, where, and how.
///
/// Lines whose type is not modelled (`i=`, `u=`, `e=`, `p=`, `z=`, `k=` and unknown ones) are kept as text in
/// `otherLines`, so that a description can be read and written again without losing anything that matters.
public struct SessionDescription: Equatable, Sendable {
    /// Who made the description, and its version (`o=`).
    public var origin: SDPOrigin
    /// The session's name (`s=`); `-` when there is none.
    public var name: String
    /// The address for all media that do not name their own (`c=`).
    public var connection: SDPConnection?
    /// Bandwidth limits (`b=`).
    public var bandwidth: [SDPBandwidth]
    /// When the session is active (`t=`); calls use one entry, 0 0.
    public var times: [SDPTime]
    /// Session attributes (`a=`) in order.
    public var attributes: [SDPAttribute]
    /// Lines of other types, in order.
    public var otherLines: [SDPLine]
    /// The media descriptions in order; offer and answer pair them by position (RFC 3264 section 6).
    public var media: [MediaDescription]

    /// Creates a description without media.
    public init(
        origin: SDPOrigin, name: String = "-", connection: SDPConnection? = nil, bandwidth: [SDPBandwidth] = [],
        times: [SDPTime] = [SDPTime()], attributes: [SDPAttribute] = [], otherLines: [SDPLine] = [],
        media: [MediaDescription] = []
    ) {
        self.origin = origin
        self.name = name
        self.connection = connection
        self.bandwidth = bandwidth
        self.times = times
        self.attributes = attributes
        self.otherLines = otherLines
        self.media = media
    }

    /// Reads a description.
    ///
    /// Line ends may be CRLF or LF alone. `v=` and `o=` are mandatory; a missing `s=` or `t=` is forgiven, because
    /// deployed gateways leave them out and nothing depends on them.
    public static func parse(
        _ bytes: [UInt8], limits: SDPLimits = .default
    ) throws(SDPParseError) -> SessionDescription {
        var parser = SDPParser(limits: limits)
        return try parser.parse(bytes)
    }

    /// The description as bytes, lines in the order of RFC 8866 section 5, each ended by CRLF.
    public func encoded() -> [UInt8] {
        var printer = SDPPrinter()
        printer.write(self)
        return printer.bytes
    }
}

/// The `o=` line, RFC 8866 section 5.2.
public struct SDPOrigin: Equatable, Sendable {
    /// The user's login, `-` for none.
    public var username: String
    /// The session's number. A peer's number above 2^64−1 is read as 2^64−1.
    public var sessionID: UInt64
    /// Rises whenever the description changes.
    public var sessionVersion: UInt64
    /// `IN`.
    public var networkType: String
    /// `IP4` or `IP6`.
    public var addressType: String
    /// The host that made the session; tells sessions apart, is not where media go.
    public var address: String

    /// Creates an origin on the Internet; the address type follows from the address.
    public init(username: String = "-", sessionID: UInt64, sessionVersion: UInt64, address: String) {
        self.username = username
        self.sessionID = sessionID
        self.sessionVersion = sessionVersion
        networkType = "IN"
        addressType = SDPConnection.addressType(of: address)
        self.address = address
    }
}

/// A `c=` line, RFC 8866 section 5.7: where media are received.
public struct SDPConnection: Equatable, Sendable {
    /// `IN`.
    public var networkType: String
    /// `IP4` or `IP6`.
    public var addressType: String
    /// The address as written: numeric or a name, for multicast with `/ttl`.
    public var address: String

    /// Creates connection data on the Internet; the address type follows from the address.
    public init(address: String) {
        networkType = "IN"
        addressType = SDPConnection.addressType(of: address)
        self.address = address
    }

    init(networkType: String, addressType: String, address: String) {
        self.networkType = networkType
        self.addressType = addressType
        self.address = address
    }

    static func addressType(of address: String) -> String {
        address.utf8.contains(UInt8(ascii: ":")) ? "IP6" : "IP4"
    }
}

/// A `b=` line, RFC 8866 section 5.8.
public struct SDPBandwidth: Equatable, Sendable {
    /// `AS` (kb/s), `TIAS` (b/s), `CT`, `RS`, `RR` or another type.
    public var type: String
    /// The limit, in the type's unit.
    public var value: UInt64

    /// Creates a limit.
    public init(type: String, value: UInt64) {
        self.type = type
        self.value = value
    }
}

/// A `t=` line with its `r=` lines, RFC 8866 sections 5.9 and 5.10.
public struct SDPTime: Equatable, Sendable {
    /// Seconds since 1900; 0 for "always".
    public var start: UInt64
    /// Seconds since 1900; 0 for "without end".
    public var stop: UInt64
    /// Repetitions, as written.
    public var repeats: [String]

    /// Creates an active time; without arguments the permanent session of a call.
    public init(start: UInt64 = 0, stop: UInt64 = 0, repeats: [String] = []) {
        self.start = start
        self.stop = stop
        self.repeats = repeats
    }
}

/// An `a=` line, RFC 8866 section 5.13.
public struct SDPAttribute: Equatable, Sendable {
    /// The name; names are case-sensitive.
    public var name: String
    /// The value after the colon; nil for a property attribute.
    public var value: String?

    /// Creates an attribute.
    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }
}

/// A line of a type that is not modelled.
public struct SDPLine: Equatable, Sendable {
    /// The type's letter.
    public var type: Character
    /// What follows the equals sign.
    public var value: String

    /// Creates a line.
    public init(type: Character, value: String) {
        self.type = type
        self.value = value
    }
}
