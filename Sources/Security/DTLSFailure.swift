/// Why media could not be secured by DTLS.
public enum DTLSFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The certificate of the handshake is not the one that the SDP announced: somebody is in between.
    case fingerprintMismatch
    /// Nobody answered the handshake.
    case noAnswer
    /// The other side has no SRTP profile of ours.
    case noCommonProfile
    /// The handshake failed, in the library's words.
    case handshake(String)
    /// The other side ended the association.
    case closed
    /// The library cannot be used.
    case unavailable(String)

    /// What failed and what it means.
    public var description: String {
        switch self {
        case .fingerprintMismatch:
            "the certificate of the media connection is not the one that the signalling announced: "
                + "somebody may be listening in"
        case .noAnswer: "the other side did not answer the DTLS handshake: its media address cannot be reached"
        case .noCommonProfile: "the other side has no SRTP profile that is supported here"
        case .handshake(let reason): "the DTLS handshake failed: \(reason)"
        case .closed: "the other side closed the media connection"
        case .unavailable(let reason): "DTLS cannot be used: \(reason)"
        }
    }
}
