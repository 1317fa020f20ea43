import SIP

/// Why a call ended, in terms that an application acts upon.
public enum CallEndReason: String, Sendable, Codable {
    /// One side hung up an answered call.
    case hungUp
    /// The caller gave up before the answer.
    case canceled
    /// The callee refused (603, or 403 from the callee's side of the call).
    case declined
    /// The callee is in another call (486, 600).
    case busy
    /// It rang, or the callee is known but nobody is there, and nobody answered (408 after ringing, 480).
    case noAnswer
    /// No final answer, and it never rang.
    case timeout
    /// The platform knows no such user or number (404, 410, 484, 604).
    case noSuchUser
    /// The platform does not let this caller make this call (401, 403, 407).
    case forbidden
    /// Another device of the callee took the call.
    case otherDeviceAnswered
    /// The signalling path broke: connection refused, reset, unreachable.
    case network
    /// No codec or transport in common, or media never came up (415, 488, 606).
    case media
    /// Media stopped coming and did not come back.
    case inactive
    /// The other side or the platform failed (other 4xx and 5xx).
    case failed
}

/// How and why one call ended: kept in the call's details and in every report of it.
public struct CallTermination: Error, Sendable, Equatable {
    /// The class of the end.
    public var reason: CallEndReason
    /// Whether the local side ended the call.
    public var isLocal: Bool
    /// The SIP status that decided it, where one did.
    public var sipStatus: Int?
    /// The reason phrase of that status, or of a Reason header (RFC 3326).
    public var phrase: String

    /// Creates a termination.
    public init(_ reason: CallEndReason, isLocal: Bool = false, sipStatus: Int? = nil, phrase: String) {
        self.reason = reason
        self.isLocal = isLocal
        self.sipStatus = sipStatus
        self.phrase = phrase
    }

    /// What a final SIP response to an INVITE means (the one table of design.md, section 5).
    ///
    /// - Parameter hasRung: whether a 180 came first; it tells "nobody answered" from "nothing there".
    public init(status: Int, phrase: String, hasRung: Bool) {
        let reason: CallEndReason =
            switch status {
            case 401, 403, 407: .forbidden
            case 404, 410, 416, 484, 485, 604: .noSuchUser
            case 408: hasRung ? .noAnswer : .timeout
            case 480: .noAnswer
            case 486, 600: .busy
            case 487: .canceled
            case 415, 488, 606: .media
            case 603, 607: .declined
            default: .failed
            }
        self.init(reason, sipStatus: status, phrase: phrase)
    }
}

/// The Reason header of RFC 3326: `SIP;cause=200;text="Call completed elsewhere"`.
struct ReasonHeader {
    var protocolName: String
    var cause: Int?
    var text: String?

    init?(_ message: SIPMessage) {
        // A Reason value has the grammar of a header value with parameters, like a name-addr without the address. There
        // may be one for each protocol; that of SIP says most.
        let values = message.headers.values("Reason").map(Self.split).filter { $0.first?.isEmpty == false }
        guard let parts = values.first(where: { $0.first?.uppercased() == "SIP" }) ?? values.first,
            let name = parts.first
        else { return nil }
        protocolName = name.uppercased()
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2 else { continue }
            let content = Self.unquoted(pair[1])
            switch pair[0].lowercased() {
            case "cause": cause = Int(content)
            case "text": text = content
            default: break
            }
        }
    }

    /// The SIP status that is the cause; causes of other protocols (Q.850) are none.
    var sipStatus: Int? { protocolName == "SIP" ? cause : nil }

    /// Whether this reason of a CANCEL says that another device took the call (RFC 3326, section 3.2).
    var saysAnsweredElsewhere: Bool { protocolName == "SIP" && cause == 200 }

    /// Splits at semicolons outside quoted strings and trims white space.
    private static func split(_ value: String) -> [String] {
        var parts: [String] = [""]
        var isQuoted = false
        for character in value {
            if character == "\"" { isQuoted.toggle() }
            if character == ";", !isQuoted {
                parts.append("")
            } else {
                parts[parts.count - 1].append(character)
            }
        }
        return parts.map { part in
            String(part.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        }
    }

    private static func unquoted(_ value: Substring) -> String {
        guard value.count >= 2, value.first == "\"", value.last == "\"" else { return String(value) }
        return String(value.dropFirst().dropLast())
    }
}
