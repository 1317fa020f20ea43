import CSRTP

/// Why an SRTP packet was not accepted, or a session not made.
public enum SRTPError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The tag does not fit: forged, damaged, or encrypted with another key.
    case authentication
    /// The packet was here before, or is older than the replay window.
    case replay
    /// Not an SRTP packet, or longer than the buffer.
    case malformed
    /// The key has protected as many packets as it may (RFC 3711, section 9.2).
    case keyExpired
    /// The library failed, with its status.
    case failed(Int32)

    init(_ status: srtp_err_status_t) {
        switch status {
        case srtp_err_status_auth_fail, srtp_err_status_cipher_fail: self = .authentication
        case srtp_err_status_replay_fail, srtp_err_status_replay_old: self = .replay
        case srtp_err_status_bad_param, srtp_err_status_parse_err, srtp_err_status_no_ctx: self = .malformed
        case srtp_err_status_key_expired: self = .keyExpired
        default: self = .failed(Int32(bitPattern: status.rawValue))
        }
    }

    /// One line for people.
    public var description: String {
        switch self {
        case .authentication: "the SRTP packet does not authenticate: it is forged, damaged or for another key"
        case .replay: "the SRTP packet was received before"
        case .malformed: "this is no SRTP packet"
        case .keyExpired: "the SRTP key has protected as many packets as it may; the media must be negotiated anew"
        case .failed(let status): "SRTP failed with status \(status)"
        }
    }
}
