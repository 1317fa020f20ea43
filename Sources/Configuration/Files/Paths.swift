import Glibc

/// Where this program keeps its files (XDG Base Directory Specification).
public struct Paths: Sendable, Equatable {
    /// The configuration file: `$SINCHCTL_CONFIG`, else `$XDG_CONFIG_HOME/sinchctl/config.json`, else the same under
    /// `~/.config`.
    public let configFile: String
    /// Whether `$SINCHCTL_CONFIG` named the configuration file.
    public let isConfigFileExplicit: Bool
    /// For sockets, locks and the environment file: `$XDG_RUNTIME_DIR/sinchctl`, else `/run/user/<uid>/sinchctl`, else
    /// `run` in the state directory. `prepareRuntimeDirectory` makes it; there may be none yet.
    public let runtimeDirectory: String
    /// For the call log, recordings and certificates: `$XDG_STATE_HOME/sinchctl`, else `~/.local/state/sinchctl`.
    /// `prepareStateDirectory` makes it; there may be none yet.
    public let stateDirectory: String

    /// The longest path of a Unix socket in bytes: `sun_path` has 108 with its terminating zero.
    public static let maxSocketPathBytes = 107

    /// Finds the places from environment variables. Creates nothing.
    ///
    /// `$XDG_RUNTIME_DIR` is passed over when it belongs to another user (as after `su`) or cannot exist, since the
    /// sockets there would not be ours. Relative paths in the XDG variables are ignored, as the specification demands.
    /// - Throws: `noHome`, when a place under the home directory is needed and neither `HOME` nor the user database
    ///   names one.
    public init(environment: [String: String]) throws(ConfigurationError) {
        func absolute(_ name: String) -> String? {
            guard let path = environment[name], path.utf8.first == UInt8(ascii: "/") else { return nil }
            return Self.withoutTrailingSlash(path)
        }
        func home() throws(ConfigurationError) -> String {
            if let path = absolute("HOME") ?? Self.homeFromUserDatabase() { return path == "/" ? "" : path }
            throw ConfigurationError(
                .noHome, "no home directory is known: HOME is not set and the user database has none",
                hint: "set HOME")
        }
        if let path = environment["SINCHCTL_CONFIG"], !path.isEmpty {
            configFile = path
            isConfigFileExplicit = true
        } else {
            let base = if let path = absolute("XDG_CONFIG_HOME") { path } else { try home() + "/.config" }
            configFile = base + "/sinchctl/config.json"
            isConfigFileExplicit = false
        }
        let stateBase = if let path = absolute("XDG_STATE_HOME") { path } else { try home() + "/.local/state" }
        stateDirectory = stateBase + "/sinchctl"

        let login = "/run/user/\(geteuid())"
        if let explicit = absolute("XDG_RUNTIME_DIR"), Self.isOurs(explicit) || Self.canBeCreated(explicit) {
            runtimeDirectory = explicit + "/sinchctl"
        } else if Self.isOurs(login) {
            runtimeDirectory = login + "/sinchctl"
        } else {
            runtimeDirectory = stateDirectory + "/run"
        }
    }

    /// The embedded environment's discovery file.
    public var environmentFile: String { runtimeDirectory + "/environment.json" }

    /// Makes the runtime directory (mode 0700) and checks that it is ours alone. Returns its path.
    @discardableResult
    public func prepareRuntimeDirectory() throws(ConfigurationError) -> String {
        try PrivateDirectory.prepare(runtimeDirectory)
        return runtimeDirectory
    }

    /// Makes the state directory (mode 0700) and checks that it is ours alone. Returns its path.
    @discardableResult
    public func prepareStateDirectory() throws(ConfigurationError) -> String {
        try PrivateDirectory.prepare(stateDirectory)
        return stateDirectory
    }

    /// Makes the configuration file's directory when it is missing. One that exists may be readable by others, as
    /// `~/.config` often is: the file itself is checked when it is read.
    public func prepareConfigDirectory() throws(ConfigurationError) {
        guard !isConfigFileExplicit, let directory = PrivateDirectory.parent(of: configFile) else { return }
        try PrivateDirectory.create(directory)
    }

    /// The path of a socket in the runtime directory; refused when the kernel could not hold it.
    public func socketPath(_ name: String) throws(ConfigurationError) -> String {
        let path = runtimeDirectory + "/" + name
        guard path.utf8.count <= Self.maxSocketPathBytes else {
            throw ConfigurationError(
                .pathTooLong,
                "the socket path \(path) has \(path.utf8.count) bytes, the system allows \(Self.maxSocketPathBytes)",
                hint: "set XDG_RUNTIME_DIR to a shorter path of your own")
        }
        return path
    }

    private static func withoutTrailingSlash(_ path: String) -> String {
        var path = path
        while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
        return path
    }

    private static func isOurs(_ directory: String) -> Bool {
        var status = stat()
        return stat(directory, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
    }

    /// Whether a directory that is not there yet could be made.
    private static func canBeCreated(_ directory: String) -> Bool {
        var status = stat()
        guard lstat(directory, &status) != 0, errno == ENOENT, let parent = PrivateDirectory.parent(of: directory)
        else {
            return false
        }
        return stat(parent, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && access(parent, W_OK | X_OK) == 0
    }

    /// The home directory in the user database, for services and containers without `HOME`.
    private static func homeFromUserDatabase() -> String? {
        var buffer = [CChar](repeating: 0, count: 16_384)
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        // The entry's strings lie in `buffer`, so they are copied before it may move.
        return buffer.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress,
                getpwuid_r(geteuid(), &entry, base, buffer.count, &result) == 0, result != nil,
                let directory = entry.pw_dir
            else { return nil }
            let path = String(cString: directory)
            return path.utf8.first == UInt8(ascii: "/") ? withoutTrailingSlash(path) : nil
        }
    }
}
