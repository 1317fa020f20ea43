internal import CALSA
import Glibc

/// The errors of ALSA in words, with what to do.
enum ALSAFailure {
    static let withoutHardware =
        "for a call without a sound card use --capture tone:440 --playback null, or file:PATH.wav"

    static func opening(_ name: String, _ direction: ALSAStream.Direction, _ status: Int32) -> AudioError {
        let what = "cannot open \(direction.name) device alsa:\(name)"
        switch -status {
        case EBUSY:
            return AudioError(
                .busy, "\(what): it is in use by another program",
                hint: "close that program, or use a device that can be shared (sinchctl devices)")
        case ENOENT, ENODEV, ENXIO:
            return AudioError(.noDevice, "\(what): there is no such sound device", hint: withoutHardware)
        case ECONNREFUSED, EHOSTDOWN, ECONNRESET, ETIMEDOUT:
            return AudioError(
                .noDevice, "\(what): the sound server does not answer", hint: "start it, or \(withoutHardware)")
        case EACCES, EPERM:
            return AudioError(
                .noDevice, "\(what): permission denied",
                hint: "add the user to the group 'audio' (usermod -aG audio USER), or \(withoutHardware)")
        default:
            return AudioError(.noDevice, "\(what): \(text(status))", hint: withoutHardware)
        }
    }

    static func configuring(
        _ name: String, _ direction: ALSAStream.Direction, _ what: String, _ status: Int32
    ) -> AudioError {
        AudioError(
            status == -EBUSY ? .busy : .noDevice,
            "cannot use \(direction.name) device alsa:\(name): \(what): \(text(status))",
            hint: "a device that converts may work: alsa:default or alsa:plughw:CARD (sinchctl devices)")
    }

    static func lost(_ name: AudioDeviceName, _ direction: ALSAStream.Direction, _ code: Int32) -> AudioError {
        AudioError(
            .deviceLost, "\(direction.name) device \(name) was lost: \(text(-code))",
            hint: "the call continues with silence there; plug the device in or start the sound server, and call again")
    }

    static func text(_ status: Int32) -> String {
        snd_strerror(status).map { String(cString: $0) } ?? "error \(status)"
    }
}
