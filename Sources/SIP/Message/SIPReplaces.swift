/// Names the dialog that a new call takes the place of (RFC 3891 section 6.1), as the side that is asked to give it up
/// knows it: its own tag is the to-tag.
public struct SIPReplaces: Hashable, Sendable, CustomStringConvertible {
    /// The dialog's Call-ID.
    public var callID: String
    /// The tag of the side that receives this value.
    public var toTag: String
    /// The tag of the other side.
    public var fromTag: String
    /// Whether an answered call must not be replaced.
    public var isEarlyOnly: Bool

    /// Creates a value.
    public init(callID: String, toTag: String, fromTag: String, isEarlyOnly: Bool = false) {
        self.callID = callID
        self.toTag = toTag
        self.fromTag = fromTag
        self.isEarlyOnly = isEarlyOnly
    }

    /// What the other side of a dialog has to receive, so that it gives the dialog up.
    public init(_ dialog: SIPDialog) {
        self.init(callID: dialog.callID, toTag: dialog.remoteTag, fromTag: dialog.localTag)
    }

    /// Reads a value; nil when it breaks the grammar, lacks a tag, or says one twice.
    public init?(parsing text: String) {
        var scanner = ByteScanner(text)
        scanner.skipBlanks()
        var range = scanner.take(until: UInt8(ascii: ";"))
        while let last = range.last, scanner.bytes[last].isBlank { range.removeLast() }
        var parameters = SIPParameters()
        guard SIPMessage.isCallID(range, scanner.bytes.span), parameters.parseHeaderParameters(&scanner),
            scanner.isAtEnd,
            let toTag = Self.only("to-tag", parameters), let fromTag = Self.only("from-tag", parameters)
        else { return nil }
        self.init(
            callID: scanner.text(range), toTag: toTag, fromTag: fromTag, isEarlyOnly: parameters.contains("early-only"))
    }

    private static func only(_ name: String, _ parameters: SIPParameters) -> String? {
        let values = parameters.all.filter { $0.name.asciiLowercased == name }
        guard values.count == 1, let value = values.first?.value, !value.isEmpty else { return nil }
        return value
    }

    /// Whether this names a dialog of the side that received it. The tag `0` stands for none (section 6.1).
    public func names(_ dialog: SIPDialog) -> Bool {
        func isSame(_ written: String, _ tag: String) -> Bool { written == tag || (written == "0" && tag.isEmpty) }
        return callID == dialog.callID && isSame(toTag, dialog.localTag) && isSame(fromTag, dialog.remoteTag)
    }

    /// The value as it stands in the header; in a URI its special characters are escaped.
    public var description: String {
        func tag(_ text: String) -> String { text.isEmpty ? "0" : text }
        return "\(callID);to-tag=\(tag(toTag));from-tag=\(tag(fromTag))" + (isEarlyOnly ? ";early-only" : "")
    }
}
