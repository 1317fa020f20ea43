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
