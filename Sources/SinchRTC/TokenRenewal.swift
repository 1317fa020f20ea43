import Primitives
import Token

/// When the next token is asked for, so that there is one before the platform no longer takes the last.
struct TokenRenewal: Sendable {
    /// The part of the token's remaining life after which it is renewed; a random point out of the range, so that
    /// clients that were started together do not ask together.
    var fraction: ClosedRange<Double> = 0.75...0.9
    /// The shortest pause between two questions for the same token.
    static let shortest = Duration.seconds(5)

    /// How long to wait before asking; nil when the token does not say when it ends, or has ended: then the platform's
    /// refusal leads to a new one.
    ///
    /// - Parameters:
    ///   - unixTime: The wall clock.
    ///   - isRetry: There was no new token at the last question: half of what is left is waited this time.
    func delay(
        of validity: TokenValidity?, unixTime: Int64, isRetry: Bool, random: inout RandomSource
    ) -> Duration? {
        guard let end = validity?.end, end > unixTime else { return nil }
        // Longer waits are divided: a clock that was set meanwhile is noticed.
        let left = Duration.seconds(min(end - unixTime, 7 * 86_400))
        let range = isRetry ? 0.4...0.6 : fraction
        let delay = left * (range.lowerBound + (range.upperBound - range.lowerBound) * random.unitInterval())
        guard isRetry else { return delay }
        return left <= Self.shortest ? nil : max(delay, Self.shortest)
    }
}
