import Configuration
import FoundationEssentials

/// The agent's protocol: JSON-RPC 2.0, one message a line (docs/agent-protocol.md).
public enum AgentProtocol {
    /// Grows when something is added; `hello` tells it.
    public static let version = 1
    /// Longest line that an agent reads, in bytes.
    public static let longestLine = 65_536

    /// Deepest nesting of arrays and objects that an agent reads.
    public static let greatestDepth = 8

    /// How deep the arrays and objects of a line are nested; quick, and exact for JSON.
    static func depth(of line: [UInt8]) -> Int {
        var depth = 0
        var greatest = 0
        var isText = false
        var isEscaped = false
        for byte in line {
            if isText {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isText = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isText = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                greatest = max(greatest, depth)
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
        return greatest
    }

    /// One line: keys sorted, slashes as they are.
    public static func encode(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding a value of ours cannot fail; were it to, an empty object is still a JSON document.
        let data = (try? encoder.encode(value)) ?? Data("{}".utf8)
        return Array(data)
    }
}

/// A request, or a notification when it has no id.
public struct AgentRequest: Codable, Sendable {
    /// Always `2.0`.
    public var jsonrpc = "2.0"
    /// Repeated in the response; a number or a text.
    public var id: JSONValue?
    /// What to do: `status`, `call`, …
    public var method: String
    /// Its arguments.
    public var params: JSONValue?

    /// Whether it is of this protocol, with an id that may be one.
    var isWellFormed: Bool {
        switch id {
        case .array, .object, .bool: false
        default: jsonrpc == "2.0"
        }
    }

    /// Creates a request.
    public init(id: Int64, method: String, params: JSONValue? = nil) {
        self.id = .integer(id)
        self.method = method
        self.params = params
    }
}

/// A response: a result or an error.
public struct AgentResponse: Codable, Sendable {
    /// Always `2.0`.
    public var jsonrpc = "2.0"
    /// The request's id.
    public var id: JSONValue?
    /// What the method returns.
    public var result: JSONValue?
    /// Why it failed.
    public var error: AgentErrorObject?
}

/// A JSON-RPC error. `data` is the same object that the command line prints under `error`.
public struct AgentErrorObject: Codable, Sendable {
    /// JSON-RPC's codes for protocol errors; 1 for everything that `data` explains.
    public var code: Int
    /// What failed and why.
    public var message: String
    /// The failure with its exit code.
    public var data: CommandFailure?
}

/// A notification from the agent: `event` with an ``AgentEvent`` as parameters.
public struct AgentNotification: Codable, Sendable {
    /// Always `2.0`.
    public var jsonrpc = "2.0"
    /// Always `event`.
    public var method = "event"
    /// What happened.
    public var params: AgentEvent
}

/// One thing that happened, numbered so that a reader sees gaps.
public struct AgentEvent: Codable, Sendable {
    /// Counts from 1 for the life of the agent.
    public var seq: UInt64
    /// When, RFC 3339 in UTC with milliseconds.
    public var time: String
    /// `registered`, `registrationLost`, `registrationFailed`, `initiating`, `incoming`, `progressing`, `ringing`,
    /// `answered`, `established`, `ended`, `muted`, `unmuted`, `held`, `resumed`, `heldByRemote`, `resumedByRemote`,
    /// `holdFailed`, `dtmf`, `dtmfSent`, `dtmfFailed`, `transferProgress`, `transferred`, `transferFailed`,
    /// `transferring`, `terminated`.
    public var event: String
    /// Whose agent.
    public var user: String
    /// The call, for call events.
    public var call: CallReport?
    /// Words about it, where there are some.
    public var message: String?
    /// The key that was pressed, for `dtmf`.
    public var key: String?
    /// What is known of the new call, for `transferProgress`: a SIP status below 200.
    public var sipStatus: Int?
}
