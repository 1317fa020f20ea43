import Audio
import Configuration
import Primitives
import SinchRTC

/// How an agent is set up: what `start` was told, in a form that survives the way to the background process.
public struct AgentOptions: Codable, Sendable, Equatable {
    /// Whom the agent is for.
    public var user: String
    /// The configuration profile; nil: what the environment or the file says.
    public var profile: String?
    /// The configuration file that was named; nil: the usual one.
    public var configFile: String?
    /// What flags said about the profile's keys, by the key's flag.
    public var overrides: [String: String] = [:]
    /// Whether incoming calls are answered at once.
    public var autoAnswer = false
    /// Whether the other side of a call may transfer it.
    public var acceptTransfers = false
    /// The name that callees see.
    public var displayName: String?
    /// The capture device's name; nil: the profile's.
    public var capture: String?
    /// The playback device's name; nil: the profile's.
    public var playback: String?
    /// A file to record each answered call to.
    public var record: String?
    /// Whether a call ends when the capture file has been played.
    public var hangUpAfterPlay = false
    /// Calls at the same time; nil: the default.
    public var maximumCalls: Int?
    /// A file that holds the registration token, read whenever one is asked for.
    public var tokenFile: String?
    /// A token that was read from a descriptor at the start.
    public var token: String?
    /// A private file that holds that token on its way to the background process, which removes it.
    public var tokenHandover: String?
    /// The process that started the agent, when the agent shall end with it (a client for one call).
    public var parent: Int32?

    /// Options for a user, everything else by default.
    public init(user: String) {
        self.user = user
    }
}
