/// How much of a message is accepted, so that no peer can make the parser work or hold memory without bound.
public struct SIPLimits: Hashable, Sendable {
    /// The whole message in bytes.
    public var maxMessageBytes: Int
    /// Header lines.
    public var maxHeaders: Int
    /// The start line, or one header line with its folded continuation, in bytes.
    public var maxHeaderBytes: Int
    /// Via values, whether on lines of their own or separated by commas.
    public var maxVias: Int
    /// The body in bytes.
    public var maxBodyBytes: Int
    /// Start line and headers together, in bytes; what a stream may send before the empty line.
    public var maxHeaderSectionBytes: Int

    /// Limits that fit every message seen in practice; 65,536 is also the largest UDP datagram.
    public static let `default` = SIPLimits()

    /// Creates limits; what is not named keeps its default.
    public init(
        maxMessageBytes: Int = 65_536, maxHeaders: Int = 128, maxHeaderBytes: Int = 8_192, maxVias: Int = 70,
        maxBodyBytes: Int = 65_536, maxHeaderSectionBytes: Int = 65_536
    ) {
        self.maxMessageBytes = maxMessageBytes
        self.maxHeaders = maxHeaders
        self.maxHeaderBytes = maxHeaderBytes
        self.maxVias = maxVias
        self.maxBodyBytes = maxBodyBytes
        self.maxHeaderSectionBytes = maxHeaderSectionBytes
    }
}
