/// Why media could not be set up.
public struct MediaError: Error, Sendable, Equatable {
    /// The class of the failure.
    public enum Code: String, Sendable {
        /// No pair of UDP ports is free.
        case noPort
        /// The peer's address may not be sent to (plain RTP beyond loopback).
        case notAllowed
        /// The agreed codec cannot be set up.
        case codec
        /// The system refused a descriptor or a thread.
        case system
    }

    /// The class.
    public var code: Code
    /// What failed, why, and what to do.
    public var message: String

    /// Creates an error.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
