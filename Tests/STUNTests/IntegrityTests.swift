import Testing

@testable import STUN

/// MESSAGE-INTEGRITY against the messages of RFC 5769, and addresses as text.
@Suite struct IntegrityTests {
    private static func bytes(_ text: String) -> [UInt8] {
        let digits = text.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private static let password = Array("VOkJxbRl1RmTxUk/WvJxBt".utf8)

    /// RFC 5769, section 2.1.
    private static let request = bytes(
        """
        00010058 2112a442 b7e7a701 bc34d686 fa87dfae 80220010 5354554e 20746573 7420636c 69656e74 00240004 6e0001ff
        80290008 932ff9b1 51263b36 00060009 6576746a 3a683676 59202020 00080014 9aeaa70c bfd8cb56 781ef2b5 b2d3f249
        c1b571a2 80280004 e57a3bcf
        """)

    /// RFC 5769, section 2.2.
    private static let response = bytes(
        """
        0101003c 2112a442 b7e7a701 bc34d686 fa87dfae 8022000b 74657374 20766563 746f7220 00200008 0001a147 e112a643
        00080014 2b91f599 fd9e90c3 8c7489f9 2af9ba53 f06be7d7 80280004 c07d4c96
        """)

    @Test func samplesOfRFC5769() throws {
        for sample in [Self.request, Self.response] {
            #expect(STUNMessage.hasIntegrity(sample, key: Self.password))
            #expect(!STUNMessage.hasIntegrity(sample, key: Self.password + [1]))
            for index in sample.indices.dropLast(8) where index != 2 && index != 3 {
                var changed = sample
                changed[index] ^= 1
                #expect(!STUNMessage.hasIntegrity(changed, key: Self.password), "byte \(index)")
            }
        }
    }

    @Test func whatIsMadeIsAccepted() throws {
        var random = SystemRandomNumberGenerator()
        for count in 0..<40 {
            let message = STUNMessage(
                .request, transaction: STUNTransactionID(using: &random),
                attributes: [STUNAttribute(.username, [UInt8](repeating: 0x61, count: count))])
            for fingerprint in [true, false] {
                let encoded = message.encoded(key: Self.password, fingerprint: fingerprint)
                #expect(STUNMessage.hasIntegrity(encoded, key: Self.password))
                let parsed = try STUNMessage.parse(encoded)
                #expect(parsed.protected.attributes.count == 2)
            }
            #expect(!STUNMessage.hasIntegrity(message.encoded(), key: Self.password), "none is not one")
        }
    }

    @Test("what is appended behind the integrity is left out")
    func appendedAttributes() throws {
        var random = SystemRandomNumberGenerator()
        let message = STUNMessage(.request, transaction: STUNTransactionID(using: &random))
        var parsed = try STUNMessage.parse(message.encoded(key: Self.password, fingerprint: false))
        parsed.attributes.append(STUNAttribute(.useCandidate, []))
        let forged = parsed.encoded(fingerprint: false)
        #expect(STUNMessage.hasIntegrity(forged, key: Self.password))
        #expect(try STUNMessage.parse(forged).protected.first(.useCandidate) == nil)
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::", "::"), ("::1", "::1"), ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("::ffff:192.0.2.1", "::ffff:c000:201"), ("fe80::", "fe80::"), ("1:0:0:2::", "1:0:0:2::"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:2:3:4:5:6:192.0.2.1", "1:2:3:4:5:6:c000:201"),
    ])
    func addressesAsText(text: String, canonical: String) throws {
        let address = try #require(STUNAddress(host: text, port: 1))
        #expect(address.host == canonical)
        #expect(STUNAddress(host: address.host, port: 1) == address)
    }

    @Test(arguments: [
        "", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1..2.3", "a.b.c.d", "localhost", ":", ":::", "1::2::3",
        "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "g::", "::1.2.3", "1.2.3.4::", "+1::", "1:2:3:4:5:6:7::8",
        "fe80::1%eth0", " ::1",
    ])
    func noAddresses(text: String) {
        #expect(STUNAddress(host: text, port: 1) == nil)
    }
}
