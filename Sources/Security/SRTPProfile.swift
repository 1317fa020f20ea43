/// How SRTP encrypts and authenticates: the suites that browsers, gateways and phones have in common.
public enum SRTPProfile: String, Sendable, CaseIterable {
    /// AES-128 in Galois/counter mode, tag of 16 bytes (RFC 7714). Preferred: the fastest, and not longer than needed.
    case aeadAES128GCM = "AEAD_AES_128_GCM"
    /// AES-256 in Galois/counter mode, tag of 16 bytes (RFC 7714).
    case aeadAES256GCM = "AEAD_AES_256_GCM"
    /// AES-128 in counter mode with HMAC-SHA1 cut to 80 bits (RFC 3711): what everybody has.
    case aes128CounterModeSHA1_80 = "AES_CM_128_HMAC_SHA1_80"

    /// The profiles that are offered, the best first.
    public static let preferred: [SRTPProfile] = [.aeadAES128GCM, .aeadAES256GCM, .aes128CounterModeSHA1_80]

    /// The name of the crypto suite in an SDP `crypto` attribute (RFC 4568, RFC 7714 section 14.2).
    public var suite: String { rawValue }

    /// The name that OpenSSL and RFC 5764 section 4.1.2 give the protection profile of DTLS-SRTP.
    public var dtlsName: String {
        switch self {
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
        case .aes128CounterModeSHA1_80: "SRTP_AES128_CM_SHA1_80"
        }
    }

    /// Bytes of the master key.
    public var keyLength: Int { self == .aeadAES256GCM ? 32 : 16 }

    /// Bytes of the master salt.
    public var saltLength: Int { self == .aes128CounterModeSHA1_80 ? 14 : 12 }

    /// How many bytes an SRTP packet is longer than the RTP packet in it.
    public var overhead: Int { self == .aes128CounterModeSHA1_80 ? 10 : 16 }
}
