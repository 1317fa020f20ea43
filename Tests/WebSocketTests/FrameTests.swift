import Crypto
import Testing

@testable import WebSocket

/// All events of bytes that arrive in these pieces; the failure when the receiver refuses them.
func receive(
    _ pieces: [[UInt8]], as role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits()
) -> (events: [WebSocketEvent], failure: WebSocketFailure?) {
    var receiver = WebSocketReceiver(role: role, limits: limits)
    var events: [WebSocketEvent] = []
    do throws(WebSocketFailure) {
        for piece in pieces {
            receiver.append(piece)
            while let event = try receiver.next() { events.append(event) }
        }
    } catch {
        return (events, error)
    }
    return (events, nil)
}

/// The code of a violation.
func closeCode(_ failure: WebSocketFailure?) -> UInt16? {
    guard case .violation(_, let code) = failure else { return nil }
    return code.rawValue
}

private let hello = Array("Hello".utf8)

@Suite struct WebSocketFrameTests {
    // MARK: The examples of RFC 6455, section 5.7

    @Test func anUnmaskedText() {
        let bytes: [UInt8] = [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F]
        #expect(webSocketFrame(.text, hello, mask: nil) == bytes)
        #expect(receive([bytes], as: .client).events == [.message(hello, isText: true)])
    }

    @Test func aMaskedText() {
        let bytes: [UInt8] = [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(webSocketFrame(.text, hello, mask: WebSocketMask(key: 0x37FA_213D)) == bytes)
        #expect(receive([bytes], as: .server).events == [.message(hello, isText: true)])
    }

    @Test func aFragmentedText() {
        let bytes: [UInt8] = [0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F]
        let made =
            webSocketFrame(.text, Array("Hel".utf8), isFinal: false, mask: nil)
            + webSocketFrame(.continuation, Array("lo".utf8), mask: nil)
        #expect(made == bytes)
        #expect(receive([bytes], as: .client).events == [.message(hello, isText: true)])
    }

    @Test func pingAndPong() {
        let ping: [UInt8] = [0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F]
        #expect(webSocketFrame(.ping, hello, mask: nil) == ping)
        #expect(receive([ping], as: .client).events == [.ping(hello)])
        let pong: [UInt8] = [0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(webSocketFrame(.pong, hello, mask: WebSocketMask(key: 0x37FA_213D)) == pong)
        #expect(receive([pong], as: .server).events == [.pong(hello)])
    }

    @Test func longerLengths() {
        let short = [UInt8](repeating: 7, count: 256)
        #expect(webSocketFrame(.binary, short, mask: nil) == [0x82, 0x7E, 0x01, 0x00] + short)
        let long = [UInt8](repeating: 8, count: 65_536)
        #expect(webSocketFrame(.binary, long, mask: nil) == [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + long)
    }

    // MARK: Round trips

    @Test(arguments: [WebSocketRole.client, .server])
    func everyLengthAroundTheBordersComesBack(_ role: WebSocketRole) {
        let mask = role == .server ? WebSocketMask(key: 0x0102_FEFF) : nil
        for length in [0, 1, 2, 3, 4, 5, 124, 125, 126, 127, 128, 65_534, 65_535, 65_536, 65_537, 262_144] {
            let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let result = receive([webSocketFrame(.binary, payload, mask: mask)], as: role)
            #expect(result.events == [.message(payload, isText: false)])
            #expect(result.failure == nil)
        }
    }

    /// A conversation with everything in it, its bytes and what it means.
    private func conversation(mask: WebSocketMask?) -> (bytes: [UInt8], events: [WebSocketEvent]) {
        let text = Array("Grüße, 世界 🎈".utf8)
        let cut = text.count / 2  // within a character
        let long = [UInt8](repeating: 0xAB, count: 200)
        let bytes =
            webSocketFrame(.text, [], mask: mask)
            + webSocketFrame(.ping, [1, 2], mask: mask)
            + webSocketFrame(.text, Array(text.prefix(cut)), isFinal: false, mask: mask)
            + webSocketFrame(.pong, [], mask: mask)
            + webSocketFrame(.continuation, [], isFinal: false, mask: mask)
            + webSocketFrame(.ping, hello, mask: mask)
            + webSocketFrame(.continuation, Array(text.dropFirst(cut)), mask: mask)
            + webSocketFrame(.binary, long, mask: mask)
            + webSocketFrame(.close, webSocketClosePayload(.goingAway, reason: "bye"), mask: mask)
        return (
            bytes,
            [
                .message([], isText: true), .ping([1, 2]), .pong([]), .ping(hello), .message(text, isText: true),
                .message(long, isText: false), .close(.goingAway, reason: "bye"),
            ]
        )
    }

    @Test(arguments: [WebSocketRole.client, .server])
    func everyCutMeansTheSame(_ role: WebSocketRole) {
        let (bytes, events) = conversation(mask: role == .server ? WebSocketMask(key: 0xDEAD_BEEF) : nil)
        for cut in 0...bytes.count {
            let result = receive([Array(bytes[..<cut]), Array(bytes[cut...])], as: role)
            #expect(result.events == events)
            #expect(result.failure == nil)
        }
        #expect(receive(bytes.map { [$0] }, as: role).events == events)
        // After the close frame nothing counts any more.
        #expect(receive([bytes + [0xFF, 0xFF]], as: role).events == events)
    }

    @Test func everyFragmentationMeansTheSame() {
        let text = Array("äöü€🎈abc".utf8)
        for first in 0...text.count {
            for second in first...text.count {
                let bytes =
                    webSocketFrame(.text, Array(text[..<first]), isFinal: false, mask: nil)
                    + webSocketFrame(.ping, [9], mask: nil)
                    + webSocketFrame(.continuation, Array(text[first..<second]), isFinal: false, mask: nil)
                    + webSocketFrame(.continuation, Array(text[second...]), mask: nil)
                #expect(receive([bytes], as: .client).events == [.ping([9]), .message(text, isText: true)])
            }
        }
    }

    /// Whatever the bytes: no trap, and what is taken for good is within the limits.
    @Test func mutationsAreSurvived() {
        var random = SplitMix(seed: 6_455)
        let limits = WebSocketLimits(maximumFrame: 1_000, maximumMessage: 1_500)
        var refused = 0
        for role in [WebSocketRole.client, .server] {
            let (bytes, _) = conversation(mask: role == .server ? WebSocketMask(key: 0x1234_5678) : nil)
            for _ in 0..<20_000 {
                var mutated = bytes
                for _ in 0...Int.random(in: 0..<3, using: &random) {
                    let index = Int.random(in: 0..<mutated.count, using: &random)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: mutated[index] = UInt8.random(in: .min ... .max, using: &random)
                    case 1: mutated.remove(at: index)
                    default: mutated.insert(UInt8.random(in: .min ... .max, using: &random), at: index)
                    }
                }
                let cut = Int.random(in: 0...mutated.count, using: &random)
                let result = receive([Array(mutated[..<cut]), Array(mutated[cut...])], as: role, limits: limits)
                let whole = receive([mutated], as: role, limits: limits)
                #expect(result.events == whole.events)
                #expect(result.failure == whole.failure)
                if result.failure != nil { refused += 1 }
                for case .message(let message, let isText) in result.events {
                    #expect(message.count <= 1_500)
                    if isText { #expect(String(validating: message, as: UTF8.self) != nil) }
                }
            }
        }
        #expect(refused > 10_000)
    }

    // MARK: What is refused

    private func refusal(
        _ bytes: [UInt8], as role: WebSocketRole = .client, limits: WebSocketLimits = WebSocketLimits()
    ) -> UInt16? {
        closeCode(receive([bytes], as: role, limits: limits).failure)
    }

    @Test func reservedBitsAndOpcodes() {
        for bit: UInt8 in [0x10, 0x20, 0x40] {
            #expect(refusal([0x81 | bit, 0]) == 1002)
        }
        for opcode: UInt8 in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
            #expect(refusal([0x80 | opcode, 0]) == 1002)
        }
    }

    @Test func masksOfTheWrongSide() {
        #expect(refusal([0x81, 0x81, 0, 0, 0, 0, 65], as: .client) == 1002)
        #expect(refusal([0x81, 0x01, 65], as: .server) == 1002)
        // The header is enough.
        #expect(refusal([0x81, 0x80], as: .client) == 1002)
    }

    @Test func controlFramesThatAreLongOrCut() {
        #expect(refusal([0x09, 0x00]) == 1002)
        #expect(refusal([0x89, 0x7E, 0x00, 0x7E]) == 1002)
        #expect(refusal([0x88, 0x7F]) == 1002)
        #expect(refusal([0x89, 0x7D] + [UInt8](repeating: 0, count: 125)) == nil)
    }

    @Test func lengthsThatAreNotTheShortest() {
        #expect(refusal([0x82, 0x7E, 0x00, 0x7D]) == 1002)
        #expect(refusal([0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) == 1002)
        #expect(refusal([0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0]) == 1002)
        #expect(refusal([0x82, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == 1002)
    }

    @Test func fragmentsOutOfOrder() {
        #expect(refusal([0x80, 0x00]) == 1002)
        #expect(refusal([0x01, 0x00, 0x81, 0x00]) == 1002)
        #expect(refusal([0x01, 0x00, 0x82, 0x00]) == 1002)
        #expect(refusal([0x01, 0x00, 0x80, 0x00, 0x80, 0x00]) == 1002)
    }

    @Test func sizes() {
        let limits = WebSocketLimits(maximumFrame: 200, maximumMessage: 300)
        func frame(_ opcode: WebSocketOpcode, _ count: Int, isFinal: Bool = true) -> [UInt8] {
            webSocketFrame(opcode, [UInt8](repeating: 65, count: count), isFinal: isFinal, mask: nil)
        }
        #expect(refusal(frame(.text, 200), limits: limits) == nil)
        #expect(refusal(frame(.text, 201), limits: limits) == 1009)
        let whole = frame(.text, 200, isFinal: false) + frame(.continuation, 100)
        #expect(receive([whole], as: .client, limits: limits).events.count == 1)
        #expect(refusal(frame(.text, 200, isFinal: false) + frame(.continuation, 101), limits: limits) == 1009)
        // By the claim alone, before the bytes; and no memory for a claim.
        #expect(refusal([0x82, 0x7F, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == 1009)
    }

    @Test func endlessEmptyFragmentsTakeNoMemory() {
        var receiver = WebSocketReceiver(role: .client, limits: WebSocketLimits())
        receiver.append([0x01, 0x00])
        #expect((try? receiver.next()) == .some(nil))
        for _ in 0..<100_000 {
            receiver.append([0x00, 0x00])
            #expect((try? receiver.next()) == .some(nil))
        }
        receiver.append([0x80, 0x00])
        #expect((try? receiver.next()) == .message([], isText: true))
    }

    @Test func textThatIsNotUTF8() {
        for bytes: [UInt8] in [
            [0xFF], [0xC0, 0x80], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80],
            [0xF8, 0x88, 0x80, 0x80],
        ] {
            #expect(refusal(webSocketFrame(.text, bytes, mask: nil)) == 1007)
            #expect(receive([webSocketFrame(.binary, bytes, mask: nil)], as: .client).events.count == 1)
        }
    }

    @Test func closeFrames() {
        func close(_ payload: [UInt8]) -> (events: [WebSocketEvent], failure: WebSocketFailure?) {
            receive([webSocketFrame(.close, payload, mask: nil)], as: .client)
        }
        #expect(close([]).events == [.close(.none, reason: "")])
        #expect(closeCode(close([3]).failure) == 1002)
        for code: UInt16 in [
            1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
        ] {
            let payload = [UInt8(code >> 8), UInt8(code & 0xFF)] + Array("why".utf8)
            #expect(close(payload).events == [.close(WebSocketCloseCode(rawValue: code), reason: "why")])
        }
        for code: UInt16 in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
            #expect(closeCode(close([UInt8(code >> 8), UInt8(code & 0xFF)]).failure) == 1002)
        }
        #expect(closeCode(close([3, 232, 0xFF]).failure) == 1007)
        // What a peer says is made fit for a log.
        #expect(close([3, 232, 0x1B, 0x0A, 65]).events == [.close(.normal, reason: "\u{FFFD}\u{FFFD}A")])
    }

    @Test func reasonsAreCutAtACharacter() {
        let payload = webSocketClosePayload(.normal, reason: String(repeating: "ä", count: 100))
        #expect(payload.count == 124)
        #expect(isValidUTF8(Array(payload.dropFirst(2))))
        #expect(webSocketClosePayload(.none, reason: "x").isEmpty)
    }
}

/// A repeatable source of randomness.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
