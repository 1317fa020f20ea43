import STUN

/// A STUN message is read and printed, and read again it is the same; a server bears it and answers with STUN. Where a
/// fingerprint would have to be guessed, the same is tried without it.
@Sendable func fuzzSTUN(_ bytes: [UInt8]) throws {
    guard let source = STUNAddress(bytes: [192, 0, 2, 1], port: 5_060) else { return }
    _ = STUNMessage.looksLikeSTUN(bytes)
    if let response = BindingServer.response(to: bytes, from: source) {
        guard let message = try? STUNMessage.parse(response) else {
            throw Finding(description: "the server's response is not read: \(response)")
        }
        _ = message.mappedAddress
    }
    guard let message = try? STUNMessage.parse(bytes) else { return }
    _ = message.mappedAddress
    for fingerprint in [true, false] {
        guard let again = try? STUNMessage.parse(message.encoded(fingerprint: fingerprint)) else {
            throw Finding(description: "printed, but not read: \(message)")
        }
        try expect(again == message, "changed by printing: \(message)")
        _ = BindingServer.response(to: message.encoded(fingerprint: fingerprint), from: source)
    }
}
