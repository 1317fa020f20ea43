/// The hash of a certificate as an SDP `fingerprint` attribute carries it (RFC 8122, section 5).
public struct CertificateFingerprint: Sendable, Hashable, CustomStringConvertible {
    /// Hash functions that may protect a call; SHA-1 and MD5 may not (RFC 8122, section 5).
    public enum Hash: String, Sendable, CaseIterable {
        case sha256 = "sha-256"
        case sha384 = "sha-384"
        case sha512 = "sha-512"

        /// Bytes of its result.
        public var length: Int {
            switch self {
            case .sha256: 32
            case .sha384: 48
            case .sha512: 64
            }
        }
    }

    /// The hash function.
    public let hash: Hash
    /// Its result.
    public let bytes: [UInt8]

    /// Creates a fingerprint; nil when the length is not that of the hash.
    public init?(hash: Hash, bytes: [UInt8]) {
        guard bytes.count == hash.length else { return nil }
        self.hash = hash
        self.bytes = bytes
    }

    /// Reads the attribute's value: `sha-256 AB:CD:…`, hexadecimal in either case. Nil for another hash or form.
    public init?(attribute: String) {
        let parts = attribute.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: true)
        guard parts.count == 2, let hash = Hash(rawValue: String(decoding: parts[0], as: UTF8.self).lowercased())
        else { return nil }
        let pairs = parts[1].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard pairs.count == hash.length else { return nil }
        var bytes: [UInt8] = []
        for pair in pairs {
            let digits = pair.compactMap(Self.value)
            guard pair.count == 2, digits.count == 2 else { return nil }
            bytes.append(digits[0] << 4 | digits[1])
        }
        self.hash = hash
        self.bytes = bytes
    }

    /// The attribute's value.
    public var description: String {
        let digits = Array("0123456789ABCDEF")
        return hash.rawValue + " "
            + bytes.map { "\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined(separator: ":")
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
