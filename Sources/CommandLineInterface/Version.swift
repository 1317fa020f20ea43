/// What this build is.
enum Version {
    /// The version of the program, its library and its protocols (semantic versioning).
    static let current = "0.1.0"

    /// `release` or `debug`.
    static let build: String = {
        #if DEBUG
            "debug"
        #else
            "release"
        #endif
    }()

    /// The operating system and processor that it was built for.
    static let platform: String = {
        #if arch(x86_64)
            "linux-x86_64"
        #elseif arch(arm64)
            "linux-aarch64"
        #else
            "linux"
        #endif
    }()
}
