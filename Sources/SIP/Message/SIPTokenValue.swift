/// A header value that is a token with parameters: Event and Subscription-State (RFC 6665 section 8.2), and others of
/// that form.
public struct SIPTokenValue: Hashable, Sendable, CustomStringConvertible {
    /// The token, as it was written; compare it without regard to case.
    public var token: String
    /// What follows it.
    public var parameters: SIPParameters

    /// Creates a value.
    public init(_ token: String, parameters: SIPParameters = .init()) {
        self.token = token
        self.parameters = parameters
    }

    /// Reads a value; nil when it breaks the grammar.
    public init?(parsing text: String) {
        var scanner = ByteScanner(text)
        scanner.skipBlanks()
        let name = scanner.take(.token)
        var parameters = SIPParameters()
        guard !name.isEmpty, parameters.parseHeaderParameters(&scanner), scanner.isAtEnd else { return nil }
        token = scanner.text(name)
        self.parameters = parameters
    }

    /// Whether the token is this word, in any case.
    public func isNamed(_ word: String) -> Bool { token.asciiLowercased == word.asciiLowercased }

    /// The value as it stands in the header.
    public var description: String {
        var output = Array(token.utf8)
        parameters.write(into: &output)
        return String(decoding: output, as: UTF8.self)
    }
}
