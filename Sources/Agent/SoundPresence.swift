import Glibc

/// Whether this machine can make sound: asked before a default device is chosen.
public enum SoundPresence {
    /// Looks for a sound card, a sound server's socket, or an ALSA configuration that somebody named on purpose. Opens
    /// no device, so it takes microseconds; that a device exists does not say that it works.
    public static func isLikely(_ environment: [String: String]) -> Bool {
        if environment["ALSA_CONFIG_PATH"] != nil || environment["PULSE_SERVER"] != nil { return true }
        if access("/dev/snd/controlC0", F_OK) == 0 { return true }
        guard let runtime = environment["XDG_RUNTIME_DIR"] else { return false }
        return access(runtime + "/pulse/native", F_OK) == 0 || access(runtime + "/pipewire-0", F_OK) == 0
    }
}

/// The process's environment variables.
public enum ProcessEnvironment {
    /// All of them; the first of two with the same name counts.
    public static var all: [String: String] {
        var result: [String: String] = [:]
        var cursor = environ
        while let entry = cursor.pointee {
            let parts = String(cString: entry).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2, result[String(parts[0])] == nil { result[String(parts[0])] = String(parts[1]) }
            cursor += 1
        }
        return result
    }
}
