extension SIPURI {
    /// Whether both URIs name the same resource in the same way (RFC 3261 section 19.1.4). This is not an
    /// equivalence in the mathematical sense: parameters that only one of them has are mostly ignored.
    public func isEquivalent(to other: SIPURI) -> Bool {
        guard scheme == other.scheme else { return false }
        if !isSIP {
            return scheme == "tel"
                ? Self.telephoneDigits(opaque) == Self.telephoneDigits(other.opaque) : opaque == other.opaque
        }
        return escapedUser == other.escapedUser && escapedPassword == other.escapedPassword && host == other.host
            && port == other.port && hasEquivalentParameters(other) && hasEquivalentHeaders(other)
    }

    /// Parameters that make a difference even when only one of the URIs has them.
    private static let decisive = ["user", "ttl", "method", "maddr", "transport"]

    private func hasEquivalentParameters(_ other: SIPURI) -> Bool {
        let ours = Self.dictionary(parameters)
        let theirs = Self.dictionary(other.parameters)
        for (name, value) in ours {
            if let their = theirs[name], their != value { return false }
        }
        return Self.decisive.allSatisfy { ours[$0] == theirs[$0] }
    }

    private static func dictionary(_ parameters: SIPParameters) -> [String: String] {
        Dictionary(
            parameters.all.map { ($0.name.asciiLowercased, ($0.value ?? "").asciiLowercased) },
            uniquingKeysWith: { first, _ in first })
    }

    /// Every header counts, in any order.
    private func hasEquivalentHeaders(_ other: SIPURI) -> Bool {
        func sorted(_ uri: SIPURI) -> [String] {
            uri.escapedHeaders.map { "\($0.name.asciiLowercased)=\($0.value)" }.sorted()
        }
        return escapedHeaders.count == other.escapedHeaders.count && sorted(self) == sorted(other)
    }

    /// A telephone number without its visual separators (RFC 3966 section 5.1.1), parameters in lower case.
    private static func telephoneDigits(_ text: String?) -> String {
        let text = text ?? ""
        let number = text.prefix { $0 != ";" }.filter { !"-.()".contains($0) }
        return (number + text.drop { $0 != ";" }).asciiLowercased
    }
}
