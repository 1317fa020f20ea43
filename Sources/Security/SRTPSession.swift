import CSRTP
import Glibc

/// One direction of SRTP and SRTCP: encrypts what we send, or checks and decrypts what we receive (RFC 3711).
///
/// Works in place and allocates nothing for a packet, except once when an authenticated packet brings a new source.
/// Confined to one thread at a time: that of the media.
public final class SRTPSession: @unchecked Sendable {
    // @unchecked: owned by one stream, whose thread alone uses it.

    /// Which way packets go.
    public enum Direction: Sendable {
        case outbound
        case inbound
    }

    /// The profile in force.
    public let profile: SRTPProfile
    private let session: srtp_t

    /// Creates a session; the key is copied into the library, which wipes it when the session ends.
    ///
    /// - Parameter replayWindow: how many packets a packet may be late; a jittery network reorders dozens.
    public init(_ direction: Direction, key: SRTPKey, replayWindow: Int = 1_024) throws(SRTPError) {
        try Self.library.get()
        profile = key.profile
        var policy = srtp_policy_t()
        switch key.profile {
        case .aeadAES128GCM:
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
        case .aeadAES256GCM:
            srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
        case .aes128CounterModeSHA1_80:
            srtp_crypto_policy_set_rtp_default(&policy.rtp)
            srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
        }
        policy.ssrc.type = direction == .outbound ? ssrc_any_outbound : ssrc_any_inbound
        policy.window_size = UInt(max(64, min(replayWindow, 0x7FFF)))
        var bytes = key.revealed()
        var made: srtp_t?
        let status = bytes.withUnsafeMutableBufferPointer { buffer in
            policy.key = buffer.baseAddress
            defer {
                // Not left behind in freed memory.
                if let start = buffer.baseAddress { explicit_bzero(start, buffer.count) }
            }
            return srtp_create(&made, &policy)
        }
        guard status == srtp_err_status_ok, let made else { throw SRTPError(status) }
        session = made
    }

    deinit {
        srtp_dealloc(session)
    }

    /// How many bytes must be free behind a packet for ``protect(_:count:isControl:)``.
    public static let room = Int(SRTP_MAX_TRAILER_LEN) + 4

    /// Encrypts a packet in place.
    ///
    /// - Parameters:
    ///   - buffer: holds the packet, with ``room`` bytes behind it.
    ///   - count: the length of the packet.
    ///   - isControl: RTCP rather than RTP.
    /// - Returns: the length of the encrypted packet.
    public func protect(
        _ buffer: UnsafeMutableBufferPointer<UInt8>, count: Int, isControl: Bool
    ) throws(SRTPError) -> Int {
        guard let start = buffer.baseAddress, count >= 8, count <= buffer.count - Self.room,
            var length = Int32(exactly: count)
        else { throw .malformed }
        let status =
            isControl ? srtp_protect_rtcp(session, start, &length) : srtp_protect(session, start, &length)
        guard status == srtp_err_status_ok else { throw SRTPError(status) }
        return Int(length)
    }

    /// Checks a packet and decrypts it in place. A packet that fails changes nothing but the buffer.
    ///
    /// - Returns: the length of the decrypted packet.
    public func unprotect(
        _ buffer: UnsafeMutableBufferPointer<UInt8>, count: Int, isControl: Bool
    ) throws(SRTPError) -> Int {
        // The library reads the fixed header before it looks at the length.
        guard let start = buffer.baseAddress, count >= (isControl ? 8 : 12), count <= buffer.count,
            var length = Int32(exactly: count)
        else { throw .malformed }
        let status =
            isControl ? srtp_unprotect_rtcp(session, start, &length) : srtp_unprotect(session, start, &length)
        guard status == srtp_err_status_ok else { throw SRTPError(status) }
        return Int(length)
    }

    /// The library is set up once in a process.
    private static let library: Result<Void, SRTPError> = {
        let status = srtp_init()
        return status == srtp_err_status_ok ? .success(()) : .failure(SRTPError(status))
    }()
}
