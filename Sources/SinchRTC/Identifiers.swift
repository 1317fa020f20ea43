import Primitives
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
        var digits = Array(random.hexadecimal(bits: 128))
        digits[12] = "4"
        digits[16] = ["8", "9", "a", "b"][Int(random.next() & 3)]
        let text = String(digits)
        var groups: [Substring] = []
        var rest = text[...]
        for length in [8, 4, 4, 4, 12] {
            groups.append(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        return "urn:uuid:" + groups.joined(separator: "-")
    }

    /// At most 255 bytes of `A-Z a-z 0-9 - _ =`.
    static func checkUser(_ userId: String) throws(SinchError) {
        guard !userId.isEmpty, userId.utf8.count <= 255, userId.utf8.allSatisfy(isUserByte) else {
            throw SinchError(
                .invalidArgument, "the user id '\(printable(userId))' is not valid",
                hint: "use 1 to 255 of the characters A-Z a-z 0-9 - _ =; encode others with base64url")
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

    /// Whether a text holds no control characters: such a text cannot end a header or a line.
    static func isPrintable(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    private static func isUserByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "="): true
        default: false
        }
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        isUserByte(byte) && byte != UInt8(ascii: "=")
    }

    /// A text as it may stand in an error message: control characters replaced, long ones cut.
    static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(64).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : $0 }))
    }
}
