import COpenSSL

// All unsafe code of this module is in this file: OpenSSL takes pointers. Each pointer comes from
// `withUnsafeBufferPointer` or an array passed `inout`, lives only for the call, and is passed together with the
// length of the very array it points into; OpenSSL's one-shot functions keep none of them. The module is built with
// strict memory safety, so the compiler demands the word `unsafe` at each of these places and nowhere else.

/// The SHA-256 digest of `message` (FIPS 180-4): 32 bytes.
///
/// When `sha256IsAvailable` is false the result is random, so that it matches nothing.
public func sha256(_ message: [UInt8]) -> [UInt8] {
    digest(message, .sha256) ?? unmatchable(length: 32)
}

/// The SHA-512/256 digest of `message` (FIPS 180-4, section 5.3.6.2): 32 bytes. Not the first half of SHA-512.
///
/// Where the machine's policy forbids it (`sha512256IsAvailable` is false) the result is random, so that it matches
/// nothing.
public func sha512256(_ message: [UInt8]) -> [UInt8] {
    digest(message, .sha512256) ?? unmatchable(length: 32)
}

/// The MD5 digest of `message` (RFC 1321): 16 bytes. Only for protocols that demand it, such as SIP digest authentication.
///
/// Where the machine's policy forbids MD5 (`md5IsAvailable` is false) the result is random, so that it matches nothing.
public func md5(_ message: [UInt8]) -> [UInt8] {
    digest(message, .md5) ?? unmatchable(length: 16)
}

/// The SHA-1 digest of `message` (FIPS 180-4): 20 bytes. Only for protocols that demand it where nothing rests on its
/// strength, such as the opening handshake of WebSocket.
///
/// Where the machine's policy forbids SHA-1 the result is random, so that it matches nothing.
public func sha1(_ message: [UInt8]) -> [UInt8] {
    digest(message, .sha1) ?? unmatchable(length: 20)
}

/// The HMAC-SHA-256 of `message` under `key` (RFC 2104): 32 bytes. Key and message may have any length, also none.
///
/// When `sha256IsAvailable` is false the result is random, so that it matches nothing.
public func hmacSHA256(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    authenticationCode(key: key, message) ?? unmatchable(length: 32)
}

/// The HMAC-SHA-1 of `message` under `key` (RFC 2104): 20 bytes. Only for protocols that demand it, such as STUN.
///
/// Where the machine's policy forbids it the result is random, so that it matches nothing.
public func hmacSHA1(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    authenticationCode(key: key, message, .sha1) ?? unmatchable(length: 20)
}

/// Whether OpenSSL computes SHA-256 and HMAC. False only where its configuration (`OPENSSL_CONF`) loads no usable provider.
public let sha256IsAvailable: Bool =
    digest([], .sha256) != nil && authenticationCode(key: [1], []) != nil

/// Whether OpenSSL computes SHA-512/256.
public let sha512256IsAvailable: Bool = digest([], .sha512256) != nil

/// Whether OpenSSL computes MD5. False where the machine's policy (FIPS mode) forbids it.
public let md5IsAvailable: Bool = digest([], .md5) != nil

private enum Algorithm {
    case sha256, sha512256, sha1, md5

    /// The digest's length in bytes.
    var length: Int {
        switch self {
        case .sha256, .sha512256: 32
        case .sha1: 20
        case .md5: 16
        }
    }

    /// OpenSSL's implementation: a constant of its own, never freed.
    var implementation: OpaquePointer? {
        switch self {
        case .sha256: unsafe EVP_sha256()
        case .sha512256: unsafe EVP_sha512_256()
        case .sha1: unsafe EVP_sha1()
        case .md5: unsafe EVP_md5()
        }
    }
}

/// One digest in one call; nil when OpenSSL refuses.
private func digest(_ message: [UInt8], _ algorithm: Algorithm) -> [UInt8]? {
    // `EVP_MAX_MD_SIZE` bytes is what OpenSSL may write whatever the algorithm, so a mix-up cannot overrun.
    var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var written: UInt32 = 0
    let result = unsafe message.withUnsafeBufferPointer { input in
        unsafe EVP_Digest(input.baseAddress, input.count, &output, &written, algorithm.implementation, nil)
    }
    guard result == 1, Int(written) == algorithm.length else { return nil }
    return Array(output.prefix(algorithm.length))
}

/// One HMAC in one call; nil when OpenSSL refuses.
private func authenticationCode(
    key: [UInt8], _ message: [UInt8], _ algorithm: Algorithm = .sha256
) -> [UInt8]? {
    // HMAC pads keys with zeros (RFC 2104, section 2), so one zero byte stands for the empty key, for which an empty
    // array may hand OpenSSL a null pointer: it would take that as "the previous key".
    let key = key.isEmpty ? [0] : key
    guard let keyLength = Int32(exactly: key.count) else { return nil }
    var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var written: UInt32 = 0
    let result = unsafe key.withUnsafeBufferPointer { key in
        unsafe message.withUnsafeBufferPointer { input in
            unsafe HMAC(
                algorithm.implementation, key.baseAddress, keyLength, input.baseAddress, input.count, &output, &written)
        }
    }
    guard unsafe result != nil, Int(written) == algorithm.length else { return nil }
    return Array(output.prefix(algorithm.length))
}

/// Random bytes in the place of a digest that could not be computed. A fixed value would make two failures equal: an
/// attacker's forgery and our own check.
private func unmatchable(length: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
}
