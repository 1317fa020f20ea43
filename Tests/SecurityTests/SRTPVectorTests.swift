import Primitives
import Security
import Testing

/// Known packets. The key of counter mode is that of RFC 3711, appendix B.3, whose session keys are the start of the
/// expected bytes; those of Galois/counter mode were computed from RFC 3711, section 4.3, and RFC 7714 with another
/// implementation of AES and GHASH.
@Suite struct SRTPVectorTests {
    static let header: [UInt8] = hex("800f1234decafbadcafebabe")
    static let controlHeader: [UInt8] = hex("81c8000bcafebabe")
    static let payload = [UInt8](repeating: 0xAB, count: 16)

    struct Vector: Sendable {
        let profile: SRTPProfile
        let key: [UInt8]
        let media: [UInt8]
        let control: [UInt8]
    }

    static let vectors = [
        Vector(
            profile: .aes128CounterModeSHA1_80,
            key: hex("E1F97A0D3E018BE0D64FA32C06DE41390EC675AD498AFEEBB6960B3AABE6"),
            media: hex("4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb"),
            control: hex("7128035be487b9bdbef89041f977a5a880000001993e08cd54d6c1230798")),
        Vector(
            profile: .aeadAES128GCM, key: Array(0..<16) + Array(0xA0..<0xAC),
            media: hex("c5002ede04cfdd2eb91159e0880aa06ed2976826f796b201df3131a127e8a392"),
            control: hex("c98b8b5df0392a55852b6c21ac8e7025c52c6fbea2b3b446ea31123ba88ce61e80000001")),
        Vector(
            profile: .aeadAES256GCM, key: Array(0..<32) + Array(0xA0..<0xAC),
            media: hex("0af7f21e8a90bdad7a425c9c31ed4bb1d90238917e7390a2793500e1681acaea"),
            control: hex("8abfafa780070a90e80f9161cf4aac081ed93aaa53c15b0f3ed1a3b984167b0380000001")),
    ]

    @Test(arguments: vectors) func protects(_ vector: Vector) throws {
        let key = try #require(SRTPKey(profile: vector.profile, keyAndSalt: vector.key))
        let sender = try SRTPSession(.outbound, key: key)
        #expect(try sender.protect(Self.header + Self.payload) == Self.header + vector.media)
        #expect(
            try sender.protect(Self.controlHeader + Self.payload, isControl: true)
                == Self.controlHeader + vector.control)
        #expect(vector.media.count == Self.payload.count + vector.profile.overhead)
    }

    @Test(arguments: vectors) func unprotects(_ vector: Vector) throws {
        let key = try #require(SRTPKey(profile: vector.profile, keyAndSalt: vector.key))
        let receiver = try SRTPSession(.inbound, key: key)
        #expect(try receiver.unprotect(Self.header + vector.media) == Self.header + Self.payload)
        #expect(
            try receiver.unprotect(Self.controlHeader + vector.control, isControl: true)
                == Self.controlHeader + Self.payload)
    }
}

func hex(_ text: String) -> [UInt8] {
    let digits = Array(text)
    return stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) }
}

extension SRTPSession {
    /// A packet encrypted in a buffer of its own.
    func protect(_ packet: [UInt8], isControl: Bool = false) throws(SRTPError) -> [UInt8] {
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: packet.count + SRTPSession.room)
        defer { buffer.deallocate() }
        _ = buffer.initialize(from: packet + [UInt8](repeating: 0, count: SRTPSession.room))
        let count = try protect(buffer, count: packet.count, isControl: isControl)
        return Array(buffer[..<count])
    }

    /// A packet decrypted in a buffer of its own.
    func unprotect(_ packet: [UInt8], isControl: Bool = false) throws(SRTPError) -> [UInt8] {
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, packet.count))
        defer { buffer.deallocate() }
        _ = buffer.initialize(from: packet)
        let count = try unprotect(buffer, count: packet.count, isControl: isControl)
        return Array(buffer[..<count])
    }
}
