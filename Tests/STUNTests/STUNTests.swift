import Primitives
import Testing

@testable import STUN

@Suite struct STUNTests {
    private static let transaction: [UInt8] = [
        0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae,
    ]

    /// RFC 5769, section 2.1.
    private static let sampleRequest = bytes(
        """
        00010058 2112a442 b7e7a701 bc34d686 fa87dfae 80220010 5354554e 20746573 7420636c 69656e74 00240004 6e0001ff
        80290008 932ff9b1 51263b36 00060009 6576746a 3a683676 59202020 00080014 9aeaa70c bfd8cb56 781ef2b5 b2d3f249
        c1b571a2 80280004 e57a3bcf
        """)

    /// RFC 5769, section 2.2.
    private static let sampleIPv4 = bytes(
        """
        0101003c 2112a442 b7e7a701 bc34d686 fa87dfae 8022000b 74657374 20766563 746f7220 00200008 0001a147 e112a643
        00080014 2b91f599 fd9e90c3 8c7489f9 2af9ba53 f06be7d7 80280004 c07d4c96
        """)

    /// RFC 5769, section 2.3.
    private static let sampleIPv6 = bytes(
        """
        01010048 2112a442 b7e7a701 bc34d686 fa87dfae 8022000b 74657374 20766563 746f7220 00200014 0002a147 0113a9fa
        a5d3f179 bc25f4b5 bed2b9d9 00080014 a382954e 4be67bf1 1784c97c 8292c275 bfe3ed41 80280004 c8fb0b4c
        """)

    private static func bytes(_ text: String) -> [UInt8] {
        let digits = text.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    @Test func sampleRequestOfRFC5769() throws {
        let message = try STUNMessage.parse(Self.sampleRequest)
        #expect(message.messageClass == .request && message.method == STUNMessage.bindingMethod)
        #expect(message.transaction.bytes == Self.transaction)
        #expect(message.first(.software)?.value == Array("STUN test client".utf8))
        #expect(message.first(.username)?.value == Array("evtj:h6vY".utf8))
        #expect(message.attributes.count == 5, "FINGERPRINT is checked, not kept")
    }

    @Test func sampleResponsesOfRFC5769() throws {
        let four = try STUNMessage.parse(Self.sampleIPv4)
        #expect(four.messageClass == .success)
        #expect(four.mappedAddress == STUNAddress(bytes: [192, 0, 2, 1], port: 32_853))
        let six = try STUNMessage.parse(Self.sampleIPv6)
        #expect(
            six.mappedAddress
                == STUNAddress(bytes: Self.bytes("20010db8 12345678 00112233 44556677"), port: 32_853))
    }

    @Test(arguments: [Self.sampleRequest, Self.sampleIPv4, Self.sampleIPv6])
    func everyChangedBitIsNoticed(sample: [UInt8]) throws {
        for index in sample.indices {
            var changed = sample
            changed[index] ^= 0x10
            // One byte may still turn the fingerprint's own type into another one that may be ignored.
            guard let message = try? STUNMessage.parse(changed) else { continue }
            #expect(message.attributes.count > (try STUNMessage.parse(sample)).attributes.count, "byte \(index)")
        }
    }

    @Test(arguments: [Self.sampleRequest, Self.sampleIPv4, Self.sampleIPv6])
    func cutOrLengthenedMessagesAreRefused(sample: [UInt8]) {
        for count in 0..<sample.count {
            #expect(throws: STUNParseError.self) { try STUNMessage.parse(Array(sample.prefix(count))) }
        }
        #expect(throws: STUNParseError.length) { try STUNMessage.parse(sample + [0, 0, 0, 0]) }
    }

    @Test func attributesOfAllLengthsSurvive() throws {
        var random = RandomSource.seeded(3)
        for length in [0, 1, 2, 3, 4, 5, 763, 1_000] {
            let message = STUNMessage(
                .indication, method: 0xABC, transaction: STUNTransactionID(using: &random),
                attributes: [
                    STUNAttribute(.software, [UInt8](repeating: 7, count: length)), STUNAttribute(.username, [1]),
                ])
            for fingerprint in [false, true] {
                let bytes = message.encoded(fingerprint: fingerprint)
                #expect(bytes.count % 4 == 0)
                #expect(try STUNMessage.parse(bytes) == message)
            }
        }
    }

    @Test func everyClassAndMethodHasItsOwnTypeField() {
        var seen: Set<UInt16> = []
        var random = RandomSource.seeded(1)
        let transaction = STUNTransactionID(using: &random)
        for code in 0..<UInt16(4) {
            for method in 0..<UInt16(0x1000) {
                guard let messageClass = STUNMessage.Class(rawValue: code) else { continue }
                let field = STUNMessage(messageClass, method: method, transaction: transaction).typeField
                seen.insert(field)
                let taken = STUNMessage.take(typeField: field)
                #expect(field < 0x4000 && taken?.0 == messageClass && taken?.1 == method)
            }
        }
        #expect(seen.count == 0x4000)
    }

    @Test func randomBytesAreNoTrap() {
        var random = RandomSource.seeded(99)
        for _ in 0..<20_000 {
            var bytes = (0..<Int(random.next() % 80)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            if bytes.count > 20 {
                bytes.replaceSubrange(0..<8, with: [0, 1, 0, UInt8(bytes.count - 20), 0x21, 0x12, 0xA4, 0x42])
            }
            _ = try? STUNMessage.parse(bytes).mappedAddress
            _ = STUNAddress(bytes: [1, 2, 3, 4], port: 5).flatMap { BindingServer.response(to: bytes, from: $0) }
        }
    }

    @Test func serverTellsTheAddress() throws {
        let source = try #require(STUNAddress(bytes: [127, 0, 0, 1], port: 5_062))
        var random = RandomSource.seeded(5)
        let request = STUNMessage(.request, transaction: STUNTransactionID(using: &random))
        for fingerprint in [false, true] {
            let bytes = request.encoded(fingerprint: fingerprint)
            let answer = try #require(BindingServer.response(to: bytes, from: source))
            let response = try STUNMessage.parse(answer)
            #expect(response.messageClass == .success && response.transaction == request.transaction)
            #expect(response.mappedAddress == source)
            #expect(answer.count - bytes.count == 12, "fingerprinted exactly when the request is")
        }
    }

    @Test func serverRefusesWhatItMustUnderstand() throws {
        let source = try #require(STUNAddress(bytes: [127, 0, 0, 1], port: 5_062))
        var random = RandomSource.seeded(5)
        let transaction = STUNTransactionID(using: &random)
        let strange = (0..<40).map { STUNAttribute(.init(rawValue: 0x4000 + $0), []) }
        let request = STUNMessage(.request, transaction: transaction, attributes: strange)
        let answer = try #require(BindingServer.response(to: request.encoded(), from: source))
        let response = try STUNMessage.parse(answer)
        #expect(response.messageClass == .error)
        #expect(response.first(.errorCode)?.value.prefix(4) == [0, 0, 4, 20])
        #expect(response.first(.unknownAttributes)?.value == [0x40, 0, 0x40, 1])
        // Answers and indications get no answer: two servers must not talk to each other.
        for messageClass in [STUNMessage.Class.success, .error, .indication] {
            let other = STUNMessage(messageClass, transaction: transaction).encoded()
            #expect(BindingServer.response(to: other, from: source) == nil)
        }
        let known = STUNMessage(
            .request, transaction: transaction, attributes: [STUNAttribute(.init(rawValue: 0x8055), [1])])
        let welcome = try #require(BindingServer.response(to: known.encoded(), from: source))
        #expect(try STUNMessage.parse(welcome).messageClass == .success)
    }
}
