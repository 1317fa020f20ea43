/// Why an audio device, file or codec cannot do what it was asked.
public struct AudioError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of failure it is; the command line maps these to exit codes.
    public enum Code: String, Sendable {
        /// The input file does not exist (exit code 66).
        case missing
        /// The input file exists but is no audio that can be read (exit code 65).
        case unusable
        /// The output file cannot be created (exit code 73).
        case cannotCreate
        /// Writing the output file failed, e.g. the disk is full (exit code 74).
        case writeFailed
        /// There is no such sound device.
        case noDevice
        /// The sound device is in use by another program.
        case busy
        /// The sound device vanished while in use.
        case deviceLost
        /// The device name cannot be understood, or names a device of the wrong direction (exit code 64).
        case invalidName
        /// A library refused what should always work.
        case `internal`
    }

    /// The kind of failure.
    public var code: Code
    /// One line: what failed and why.
    public var message: String
    /// One line: what to do about it, where that is known.
    public var hint: String?

    /// Creates an error.
    public init(_ code: Code, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    /// `message; hint`.
    public var description: String { hint.map { "\(message); \($0)" } ?? message }
}
