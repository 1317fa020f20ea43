internal import CALSA
import Glibc

/// One entry of `sinchctl devices`.
public struct AudioDeviceInfo: Equatable, Sendable {
    /// The name to give to `--capture` or `--playback`.
    public var name: AudioDeviceName
    /// What ALSA calls the device, one line.
    public var summary: String
    /// Whether it records.
    public var canCapture: Bool
    /// Whether it plays.
    public var canPlay: Bool
}

/// The sound devices of this machine.
public enum AudioDevices {
    /// What ALSA's configuration offers (sound cards and the plugins of sound servers), in its order. Reads
    /// configuration files and may contact the sound server's sockets; opens no device. Any thread.
    public static func list() -> [AudioDeviceInfo] {
        sinch_alsa_silence_errors()
        var hints: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
        guard snd_device_name_hint(-1, "pcm", &hints) == 0, let hints else { return [] }
        defer { snd_device_name_free_hint(hints) }
        var devices: [AudioDeviceInfo] = []
        var index = 0
        while let hint = hints[index] {
            index += 1
            guard let name = text(hint, "NAME"), !isCovered(name) else { continue }
            let direction = text(hint, "IOID")
            let description = text(hint, "DESC") ?? name
            devices.append(
                AudioDeviceInfo(
                    name: .alsa(name),
                    summary: description.split(separator: "\n").joined(separator: ", "),
                    canCapture: direction != "Output", canPlay: direction != "Input"))
        }
        return devices
    }

    /// ALSA's own `null` runs without a clock and would play seconds in milliseconds; ours does not.
    private static func isCovered(_ name: String) -> Bool { name == "null" }

    private static func text(_ hint: UnsafeMutableRawPointer, _ key: String) -> String? {
        guard let value = snd_device_name_get_hint(hint, key) else { return nil }
        defer { free(value) }
        return String(cString: value)
    }
}
