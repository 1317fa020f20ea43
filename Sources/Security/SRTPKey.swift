import Primitives

/// The master key and salt of one direction (RFC 3711, section 3.2.1). Never printed.
public struct SRTPKey: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What they are for.
    public let profile: SRTPProfile
    private let bytes: [UInt8]

    /// Takes key and salt, one after the other; nil when their length is not the profile's.
    public init?(profile: SRTPProfile, keyAndSalt: [UInt8]) {
        guard keyAndSalt.count == profile.keyLength + profile.saltLength else { return nil }
        self.profile = profile
        bytes = keyAndSalt
    }

    /// A random key.
    public static func generate(_ profile: SRTPProfile, random: inout RandomSource) -> SRTPKey {
        var bytes: [UInt8] = []
        while bytes.count < profile.keyLength + profile.saltLength {
            withUnsafeBytes(of: random.next() as UInt64) { bytes.append(contentsOf: $0) }
        }
        return SRTPKey(profile: profile, exactly: Array(bytes.prefix(profile.keyLength + profile.saltLength)))
    }

    private init(profile: SRTPProfile, exactly bytes: [UInt8]) {
        self.profile = profile
        self.bytes = bytes
    }

    /// Key and salt, for the one place that encrypts with them and the one that writes them into an SDP.
    public func revealed() -> [UInt8] { bytes }

    /// Says what it is for.
    public var description: String { "(\(profile.suite) key, not shown)" }
    /// Says what it is for.
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)](), displayStyle: .struct) }
}
