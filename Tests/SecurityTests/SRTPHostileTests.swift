import Primitives
import Security
import Testing

/// What a stranger can send: nothing of it gets through, and nothing of it disturbs what follows.
@Suite struct SRTPHostileTests {
    private func pair(_ profile: SRTPProfile, window: Int = 1_024) throws -> (
        sender: SRTPSession, receiver: SRTPSession
    ) {
        var random = RandomSource.seeded(3)
        let key = SRTPKey.generate(profile, random: &random)
        return (try SRTPSession(.outbound, key: key), try SRTPSession(.inbound, key: key, replayWindow: window))
    }

    private func packet(_ sequence: UInt16, ssrc: [UInt8] = [1, 2, 3, 4]) -> [UInt8] {
        [0x80, 111, UInt8(sequence >> 8), UInt8(sequence & 0xFF), 0, 0, 0, 0] + ssrc + [UInt8](repeating: 7, count: 60)
    }

    @Test(arguments: SRTPProfile.allCases) func everyChangedByteIsNoticed(_ profile: SRTPProfile) throws {
        let (sender, receiver) = try pair(profile)
        let good = try sender.protect(packet(1))
        for index in good.indices {
            var bad = good
            bad[index] ^= 0x55
            #expect(throws: SRTPError.self) { try receiver.unprotect(bad) }
        }
        for length in 0..<good.count {
            #expect(throws: SRTPError.self) { try receiver.unprotect(Array(good[..<length])) }
        }
        #expect(try receiver.unprotect(good) == packet(1))
    }

    @Test(arguments: SRTPProfile.allCases) func aRepeatedPacketIsRefused(_ profile: SRTPProfile) throws {
        let (sender, receiver) = try pair(profile)
        let good = try sender.protect(packet(1))
        _ = try receiver.unprotect(good)
        #expect(throws: SRTPError.replay) { try receiver.unprotect(good) }
        let report: [UInt8] = [0x80, 201, 0, 1, 1, 2, 3, 4]
        let control = try sender.protect(report, isControl: true)
        #expect(try receiver.unprotect(control, isControl: true) == report)
        #expect(throws: SRTPError.replay) { try receiver.unprotect(control, isControl: true) }
    }

    @Test func reorderedPacketsPassAndTheCounterRollsOver() throws {
        let (sender, receiver) = try pair(.aeadAES128GCM)
        var waiting: [(plain: [UInt8], packet: [UInt8])] = []
        for number in 65_400..<65_700 {
            let plain = packet(UInt16(truncatingIfNeeded: number))
            waiting.append((plain, try sender.protect(plain)))
            guard waiting.count == 20 else { continue }
            for pair in waiting.reversed() { #expect(try receiver.unprotect(pair.packet) == pair.plain) }
            waiting = []
        }
    }

    @Test func wrongKeyAndRandomBytes() throws {
        var random = RandomSource.seeded(9)
        let sender = try SRTPSession(.outbound, key: .generate(.aeadAES128GCM, random: &random))
        let receiver = try SRTPSession(.inbound, key: .generate(.aeadAES128GCM, random: &random))
        #expect(throws: SRTPError.authentication) { try receiver.unprotect(try sender.protect(packet(1))) }
        for _ in 0..<20_000 {
            let count = Int(random.next() % 200)
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            #expect(throws: SRTPError.self) { try receiver.unprotect(bytes) }
            #expect(throws: SRTPError.self) { try receiver.unprotect(bytes, isControl: true) }
        }
    }

    @Test func tooLongForTheBuffer() throws {
        let (sender, _) = try pair(.aeadAES128GCM)
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 100)
        buffer.initialize(repeating: 0x80)
        defer { buffer.deallocate() }
        #expect(throws: SRTPError.malformed) { try sender.protect(buffer, count: 100, isControl: false) }
        #expect(throws: SRTPError.malformed) { try sender.protect(buffer, count: 4, isControl: false) }
    }

    @Test func keysAreOfTheRightLengthAndNeverPrinted() throws {
        var random = RandomSource.system
        for profile in SRTPProfile.allCases {
            #expect(SRTPKey(profile: profile, keyAndSalt: [UInt8](repeating: 1, count: 5)) == nil)
            let key = SRTPKey.generate(profile, random: &random)
            #expect(key.revealed().count == profile.keyLength + profile.saltLength)
            var text = ""
            dump(key, to: &text)
            text += "\(key)" + String(reflecting: key)
            #expect(!text.contains(String(key.revealed()[0]) + ","))
            #expect(text.contains("not shown"))
        }
    }
}
