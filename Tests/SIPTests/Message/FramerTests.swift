import Primitives
import Testing

@testable import SIP

@Suite struct FramerTests {
    private func frames(_ framer: inout SIPStreamFramer) throws(SIPParseError) -> [SIPStreamFramer.Frame] {
        var frames: [SIPStreamFramer.Frame] = []
        while let frame = try framer.next() { frames.append(frame) }
        return frames
    }

    private func frames(_ bytes: [UInt8], limits: SIPLimits = .default) throws -> [SIPStreamFramer.Frame] {
        var framer = SIPStreamFramer(limits: limits)
        framer.receive(bytes)
        return try frames(&framer)
    }

    private static let first = request(body: "hello\r\n\r\nworld")
    private static let second = request(replacing: ["Content-Length": ""], adding: ["l :\r\n 3"]) + Array("abc".utf8)

    @Test func messagesAreCutWhereverTheStreamBreaks() throws {
        let ping = wire("\n\n")
        let stream = Self.first + ping + Self.second + Self.first + ping
        let expected: [SIPStreamFramer.Frame] = [
            .message(Self.first), .keepAlivePing, .message(Self.second), .message(Self.first), .keepAlivePing,
        ]
        #expect(try frames(stream) == expected)
        var random = RandomSource.seeded(1)
        for _ in 0..<200 {
            var framer = SIPStreamFramer()
            var result: [SIPStreamFramer.Frame] = []
            var rest = stream[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...(Bool.random(using: &random) ? 3 : 400), using: &random)
                framer.receive(rest.prefix(count))
                rest = rest.dropFirst(count)
                result += try frames(&framer)
            }
            // A ping that arrives in two halves shows as a pong first: nobody can know what follows.
            #expect(messages(result) == messages(expected))
            #expect(result.count { $0 == .keepAlivePing } == 2)
            #expect(framer.isIdle)
        }
    }

    private func messages(_ frames: [SIPStreamFramer.Frame]) -> [SIPStreamFramer.Frame] {
        frames.filter { if case .message = $0 { true } else { false } }
    }

    @Test func byteByByteNeedsMoreUntilTheEnd() throws {
        var framer = SIPStreamFramer()
        #expect(framer.isIdle)
        for byte in Self.second.dropLast() {
            framer.receive([byte])
            #expect(try framer.next() == nil)
            #expect(!framer.isIdle)
        }
        #expect(framer.pendingBytes == Self.second.count - 1)
        framer.receive(Self.second.suffix(1))
        #expect(try framer.next() == .message(Self.second))
        #expect(framer.isIdle && framer.pendingBytes == 0)
        #expect(try SIPMessage.parse(Self.second).validate() == nil)
    }

    @Test func keepAlives() throws {
        #expect(try frames(wire("\n\n")) == [.keepAlivePing])
        #expect(try frames(wire("\n")) == [.keepAlivePong])
        #expect(try frames(wire("\n") + Self.first) == [.keepAlivePong, .message(Self.first)])
        #expect(try frames([0x0D]) == [])
        var framer = SIPStreamFramer()
        framer.receive([0x0D])
        #expect(try framer.next() == nil)
        framer.receive([0x0A])
        #expect(try framer.next() == .keepAlivePong)
        framer.receive([0x0D, 0x0A])
        #expect(try framer.next() == .keepAlivePing, "the second half of a ping")
        framer.pingSent()
        framer.receive([0x0D, 0x0A])
        #expect(try framer.next() == .keepAlivePong)
        framer.pingSent()
        framer.receive([0x0D, 0x0A])
        #expect(try framer.next() == .keepAlivePong, "the answer to a second ping is no half of one")
        framer.receive([0x0D, 0x0A])
        #expect(try framer.next() == .keepAlivePong)
        framer.receive(Self.first)
        #expect(try framer.next() == .message(Self.first))
        framer.receive([0x0D, 0x0A])
        #expect(try framer.next() == .keepAlivePong, "a message came between the halves")
    }

    @Test(
        arguments: [
            (["Content-Length": ""], [], SIPParseError.Code.contentLength),
            (["Content-Length": "-1"], [], .contentLength), (["Content-Length": "x"], [], .contentLength),
            (["Content-Length": "1 1"], [], .contentLength), (["Content-Length": "1,1"], [], .contentLength),
            (["Content-Length": "1"], ["l: 2"], .contentLength), (["Content-Length": "65537"], [], .limit),
            (["Content-Length": "4294967296"], [], .limit), (["Content-Length": "9223372036854775807"], [], .limit),
            (["Content-Length": "18446744073709551617"], [], .limit),
            (["Subject": "x"], ["A: b\u{0}c"], .controlCharacter),
            (["Subject": "x"], ["A: b\nc"], .lineEnd),
        ] as [([String: String], [String], SIPParseError.Code)])
    func badStreams(_ replacing: [String: String], _ adding: [String], _ code: SIPParseError.Code) {
        var framer = SIPStreamFramer()
        framer.receive(request(replacing: replacing, adding: adding))
        for _ in 0..<2 {
            do throws(SIPParseError) {
                let frame = try framer.next()
                Issue.record("cut: \(String(describing: frame))")
            } catch {
                #expect(error.code == code)
            }
            framer.receive(Self.first)
        }
        #expect(framer.pendingBytes == 0, "a dead stream holds nothing")
    }

    @Test func headersWithoutEndAreStopped() throws {
        let limits = SIPLimits(maxHeaderSectionBytes: 2_000)
        var framer = SIPStreamFramer(limits: limits)
        framer.receive(Array("OPTIONS sip:h SIP/2.0\r\n".utf8))
        #expect(try framer.next() == nil)
        #expect(throws: SIPParseError.self) {
            for _ in 0..<100 {
                framer.receive(Array("X-Header: \(String(repeating: "x", count: 30))\r\n".utf8))
                _ = try framer.next()
            }
        }
        #expect(framer.pendingBytes == 0)
    }

    @Test func aLongStreamStaysSmall() throws {
        var framer = SIPStreamFramer()
        let batch = Array(repeatElement(Self.first, count: 400).joined())
        for _ in 0..<20 {
            framer.receive(batch)
            #expect(try frames(&framer).count == 400)
            #expect(framer.isIdle)
        }
    }
}
