/// Why the configuration, or a file or directory that this program keeps, cannot be used.
public struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of trouble.
    public enum Code: String, Sendable, CaseIterable {
        /// No home directory is known.
        case noHome
        /// A file cannot be opened or read.
        case unreadable
        /// A path is not a regular file, or not a directory.
        case fileKind
        /// A file is larger than is read.
        case tooLarge
        /// A file or directory is open to other users, or belongs to one.
        case exposed
        /// A file is not JSON5; the message has line and column.
        case syntax
        /// A key that does not exist.
        case unknownKey
        /// A value of the wrong type.
        case wrongType
        /// A value that breaks its rule.
        case invalidValue
        /// A profile that does not exist.
        case unknownProfile
        /// A host of the vendor's private protocol.
        case vendorHost
        /// A secret in an environment variable.
        case secretInEnvironment
        /// A path too long for a socket.
        case pathTooLong
        /// A file exists that was to be created.
        case exists
        /// A file or directory cannot be created or written.
        case cannotWrite
    }

    /// The kind of trouble.
    public var code: Code
    /// What failed and why.
    public var message: String
    /// What to do about it.
    public var hint: String?

    /// Creates an error.
    public init(_ code: Code, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    /// The message, and the hint after a semicolon.
    public var description: String { commandFailure.description }

    /// The same as a command's failure: exit status 78, or 73 when a file cannot be written.
    public var commandFailure: CommandFailure {
        CommandFailure(
            exit: code == .cannotWrite || code == .exists ? .cannotCreate : .configuration, message: message,
            hint: hint)
    }
}
