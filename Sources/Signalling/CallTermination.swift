import Primitives
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
        // The other side chose the words, and they may end on a terminal.
        self.phrase = phrase.withoutControls
    }

    /// What a final SIP response to an INVITE means (the one table of design.md, section 5).
    ///
    /// - Parameter hasRung: whether a 180 came first; it tells "nobody answered" from "nothing there".
    public init(status: Int, phrase: String, hasRung: Bool) {
        let reason: CallEndReason =
            switch status {
            case 401, 402, 403, 407, 428, 433, 436, 437, 438, 470, 494: .forbidden
            case 404, 410, 414, 416, 484, 485, 604: .noSuchUser
            case 408, 504: hasRung ? .noAnswer : .timeout
            case 480: .noAnswer
            case 486, 600: .busy
            case 487: .canceled
            case 406, 415, 488, 493, 580, 606: .media
            case 430: .network
            case 603, 607, 608: .declined
            default: .failed
            }
        self.init(reason, sipStatus: status, phrase: phrase)
    }

    /// What the response that refuses our INVITE means. Where its status says little, the cause that a gateway has from
    /// the telephone network decides (Reason, RFC 3326 and 6432).
    init(refusal response: SIPMessage, status: Int, hasRung: Bool) {
        let phrase = ReasonHeader(response)?.text ?? response.reason ?? ""
        self.init(status: status, phrase: phrase, hasRung: hasRung)
        if reason == .failed || status == 480, let cause = ReasonHeader.telephoneCause(in: response),
            let better = CallEndReason(telephoneCause: cause)
        {
            reason = better
        }
    }
}

extension CallEndReason {
    /// The reason for a cause of Q.850, as RFC 3398, section 8.2.6.1, groups them; nil for those that say no more than
    /// that it failed.
    init?(telephoneCause cause: Int) {
        switch cause {
        case 1, 2, 3, 22, 23, 28: self = .noSuchUser
        case 17: self = .busy
        case 18, 19, 20: self = .noAnswer
        case 21: self = .declined
        case 55, 57, 87: self = .forbidden
        case 65, 70, 88: self = .media
        case 102: self = .timeout
        default: return nil
        }
    }
}

/// The Reason header of RFC 3326: `SIP;cause=200;text="Call completed elsewhere"`.
struct ReasonHeader {
    /// So many values of one message are looked at.
    private static let maximumValues = 8

    var protocolName: String
    var cause: Int?
    var text: String?

    /// The value that says most: that of SIP, where there is one for each protocol.
    init?(_ message: SIPMessage) {
        let values = Self.all(in: message)
        guard let best = values.first(where: { $0.protocolName == "SIP" }) ?? values.first else { return nil }
        self = best
    }

    /// A Reason value has the grammar of a header value with parameters, like a name-addr without the address.
    private init?(value: String) {
        let parts = Self.split(value)
        guard let name = parts.first, !name.isEmpty else { return nil }
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

    private static func all(in message: SIPMessage) -> [ReasonHeader] {
        message.headers.values("Reason").prefix(maximumValues).compactMap { ReasonHeader(value: $0) }
    }

    /// The cause of the telephone network, where a message has one.
    static func telephoneCause(in message: SIPMessage) -> Int? {
        all(in: message).first { $0.protocolName == "Q.850" }?.cause
    }

    /// Whether a CANCEL says that another device took the call (RFC 3326, section 3.2; Q.850, cause 26).
    static func saysAnsweredElsewhere(_ cancel: SIPMessage) -> Bool {
        all(in: cancel).contains {
            ($0.protocolName == "SIP" && $0.cause == 200) || ($0.protocolName == "Q.850" && $0.cause == 26)
        }
    }

    /// The SIP status that is the cause; causes of other protocols (Q.850) are none.
    var sipStatus: Int? { protocolName == "SIP" ? cause : nil }

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
