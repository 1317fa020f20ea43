import Primitives
import SIP
import Token

/// A new name for a device, for programs that keep it.
package func makeInstanceID() -> String { Identifiers.makeInstanceID() }

/// Checks a user id against the published rule, for programs that make file names or the like of it.
package func checkUserId(_ userId: String) throws(SinchError) {
    try Identifiers.checkUser(userId)
}

/// The published rules for identifiers (limits of the client API), checked before anything reaches the wire.
enum Identifiers {
    /// A random UUID as a URN (RFC 4122, version 4), which names a device (RFC 5626, section 4.1).
    static func makeInstanceID() -> String {
        var random = RandomSource.system
        return "urn:uuid:" + random.uuid()
    }

    /// At most 255 bytes of `A-Z a-z 0-9 - _ =`.
    static func checkUser(_ userId: String) throws(SinchError) {
        do throws(TokenError) {
            try TokenIdentifier.checkUserID(userId)
        } catch {
            throw SinchError(.invalidArgument, error.message, hint: error.hint)
        }
    }

    /// E.164 with a leading plus.
    static func checkPhoneNumber(_ number: String) throws(SinchError) {
        let digits = number.utf8.dropFirst()
        guard number.utf8.first == UInt8(ascii: "+"), (3...15).contains(digits.count),
            digits.allSatisfy({ (0x30...0x39).contains($0) })
        else {
            throw SinchError(
                .invalidArgument, "'\(printable(number))' is not a phone number",
                hint: "write it as E.164 with a leading plus, such as +46000000000")
        }
    }

    /// Keys and values together at most 1,024 bytes, nothing that could break out of a header.
    static func checkHeaders(_ headers: [String: String]) throws(SinchError) {
        let total = headers.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        guard total <= 1_024 else {
            throw SinchError(.invalidArgument, "the call headers hold \(total) bytes; at most 1024 are allowed")
        }
        for (name, value) in headers {
            guard name.lowercased().hasPrefix("x-"), name.utf8.count > 2, name.utf8.allSatisfy(isTokenByte) else {
                throw SinchError(
                    .invalidArgument, "'\(printable(name))' is not the name of a call header",
                    hint: "names begin with x- and hold letters, digits and hyphens")
            }
            guard isPrintable(value) else {
                throw SinchError(.invalidArgument, "the value of call header \(name) holds control characters")
            }
        }
    }

    /// The address of a user of the client's own domain.
    static func address(ofUser userId: String, domain: String) throws(SinchError) -> SIPURI {
        try checkUser(userId)
        return SIPURI(user: userId, host: domain)
    }

    /// The address of a phone number, which the platform's gateway dials (RFC 3261, section 19.1.1).
    static func address(ofNumber number: String, domain: String) throws(SinchError) -> SIPURI {
        try checkPhoneNumber(number)
        var uri = SIPURI(user: number, host: domain)
        uri.parameters["user"] = "phone"
        return uri
    }

    /// The address that `user@server` or `sip:user@server` says.
    static func address(ofIdentity identity: String) throws(SinchError) -> SIPURI {
        let text = hasScheme(identity) ? identity : "sip:" + identity
        guard isPrintable(text), !text.contains(" "), let uri = try? SIPURI(parsing: text), uri.isSIP, uri.user != nil
        else {
            throw SinchError(
                .invalidArgument, "'\(printable(identity))' is not a SIP address", hint: "write user@server")
        }
        return uri
    }

    /// The address of whatever a person may call: a user, `+number`, or `user@server`.
    static func address(of destination: String, domain: String) throws(SinchError) -> SIPURI {
        if destination.hasPrefix("+") { return try address(ofNumber: destination, domain: domain) }
        if destination.contains("@") || hasScheme(destination) { return try address(ofIdentity: destination) }
        return try address(ofUser: destination, domain: domain)
    }

    /// What an address is called: its user or number, else its host.
    static func name(of uri: SIPURI) -> String {
        if let opaque = uri.opaque { return String(opaque.prefix { $0 != ";" }) }
        return uri.user ?? uri.host
    }

    private static func hasScheme(_ text: String) -> Bool {
        let lower = text.lowercased()
        return lower.hasPrefix("sip:") || lower.hasPrefix("sips:")
    }

    /// Whether a text holds no control characters: such a text cannot end a header or a line.
    static func isPrintable(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// A text as it may stand in an error message: control characters replaced, long ones cut.
    static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(64).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : $0 }))
    }
}
