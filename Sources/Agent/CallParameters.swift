import Audio
import Configuration
import SinchRTC

/// The arguments of the methods `call` and `answer`.
public struct CallParameters: Codable, Sendable {
    /// Whom to call: a user, `+number`, or `user@server`. Empty for `answer`.
    public var destination = ""
    /// The call that is meant, for `answer`; a prefix of its id will do.
    public var call: String?
    /// The capture device's name; nil: the client's.
    public var capture: String?
    /// The playback device's name; nil: the client's.
    public var playback: String?
    /// A file for a stereo recording.
    public var record: String?
    /// Whether the call ends when the capture file has been played.
    public var hangUpAfterPlay: Bool?
    /// Seconds after which an unanswered call is given up.
    public var ringTimeout: Double?
    /// Seconds after which an established call is hung up.
    public var duration: Double?
    /// Application headers.
    public var headers: [String: String]?
    /// Whether the call ends when this connection closes: it belongs to the command that placed it.
    public var follow: Bool?

    /// Parameters with the given destination, everything else by default.
    public init(destination: String = "") {
        self.destination = destination
    }

    /// The devices that the call shall use.
    ///
    /// - Throws: a failure for a name that is no device's, a missing or unusable file, or one that cannot be created:
    ///   all of it before anything rings.
    func media() throws(CommandFailure) -> SinchCallMedia {
        var media = SinchCallMedia()
        do {
            media.capture = try capture.map { name throws(AudioError) in try AudioDeviceName(parsing: name) }
            media.playback = try playback.map { name throws(AudioError) in try AudioDeviceName(parsing: name) }
            try Self.check(capture: media.capture, recording: record)
        } catch {
            throw CommandFailure(error)
        }
        media.recording = record
        media.hangsUpAfterPlaying = hangUpAfterPlay ?? false
        return media
    }

    /// Opens what would be opened later, to find out now what is wrong with it.
    static func check(capture: AudioDeviceName?, recording: String?) throws(AudioError) {
        if case .file(let path)? = capture { _ = try WAVReader(path: path) }
        if let recording { try OutputFile.checkWritable(recording) }
    }
}
