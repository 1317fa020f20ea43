import Crypto
import Primitives

/// An application's secret, from which the keys that sign its tokens are derived.
///
/// Printing, interpolating, dumping or mirroring a secret shows that there is one and nothing of it; the only way to the
/// text is `revealed()`, which whoever writes it into a protected file calls by name.
public struct ApplicationSecret: Sendable, Equatable {
    /// The secret's bytes: the base64 text decoded.
    private let bytes: [UInt8]

    /// The fewest bytes a secret may have: 128 bits, what the vendor's secrets have.
    public static let minimumBytes = 16

    /// Reads a secret as it is published: base64 with padding, at least 16 bytes. The error never quotes the text.
    public init(base64 text: String) throws(TokenError) {
        let bytes: [UInt8]
        do throws(Base64Error) {
            bytes = try base64Decode(text)
        } catch {
            throw TokenError(
                .secret, "the application secret is not base64: \(error)",
                hint: "copy it whole, with the = signs at its end, and without line breaks")
        }
        try self.init(bytes: bytes)
    }

    /// Creates a secret from its bytes, at least 16.
    public init(bytes: [UInt8]) throws(TokenError) {
        guard bytes.count >= Self.minimumBytes else {
            throw TokenError(
                .secret,
                "the application secret has \(bytes.count) bytes, fewer than \(Self.minimumBytes): it could be guessed",
                hint: "copy the secret whole")
        }
        self.bytes = bytes
    }

    private init(random: inout RandomSource) {
        bytes = (0..<32).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    /// A new secret of 32 random bytes.
    public static func generate(random: inout RandomSource) -> ApplicationSecret {
        ApplicationSecret(random: &random)
    }

    /// The secret as base64 text, for writing it into a file that nobody else can read.
    public func revealed() -> String {
        base64Encode(bytes)
    }

    /// The key that signs the tokens issued on a day, written `YYYYMMDD`: HMAC-SHA-256 of the day under the secret.
    func signingKey(day: String) -> [UInt8] {
        hmacSHA256(key: bytes, Array(day.utf8))
    }

    /// Compares in a time that does not depend on the bytes.
    public static func == (left: ApplicationSecret, right: ApplicationSecret) -> Bool {
        constantTimeEqual(left.bytes, right.bytes)
    }
}

extension ApplicationSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Says that there is a secret.
    public var description: String { "(secret, not shown)" }

    /// Says that there is a secret.
    public var debugDescription: String { description }

    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)](), displayStyle: .struct) }
}
