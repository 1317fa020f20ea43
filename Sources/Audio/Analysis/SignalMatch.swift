/// How well what was heard matches what was sent.
public struct SignalMatch: Equatable, Sendable {
    /// A stretch of silence where the reference has sound.
    public struct Gap: Equatable, Sendable {
        /// Where it starts in the heard signal, in seconds.
        public var start: Double
        /// How long it is, in seconds.
        public var duration: Double
    }

    /// 0 (unrelated) to 1 (identical up to level and delay).
    public var score: Double
    /// Where the reference starts in the heard signal, in seconds; negative when its beginning was not heard.
    public var offset: Double
    /// Level of the heard signal against the reference in dB; 0 is equal, negative quieter.
    public var levelDifference: Double
    /// Seconds of sound in the reference that the heard signal covers and that were compared.
    public var comparedSeconds: Double
    /// Silences that should not be there, of 20 ms and more.
    public var gaps: [Gap]

    /// Nothing in common.
    public static let none = SignalMatch(
        score: 0, offset: 0, levelDifference: 0, comparedSeconds: 0, gaps: [])

    /// Sum of all gaps in seconds.
    public var gapSeconds: Double { gaps.reduce(0) { $0 + $1.duration } }
    /// The longest gap in seconds.
    public var longestGap: Double { gaps.map(\.duration).max() ?? 0 }
}
