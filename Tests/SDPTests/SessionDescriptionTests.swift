import Testing

@testable import SDP

private func bytes(_ lines: String...) -> [UInt8] {
    Array(lines.map { $0 + "\r\n" }.joined().utf8)
}

private func code(_ sdp: [UInt8]) -> SDPParseError.Code? {
    do {
        _ = try SessionDescription.parse(sdp)
        return nil
    } catch {
        return error.code
    }
}

@Suite struct SessionDescriptionTests {
    @Test func readsEveryLineAndWritesItAgain() throws {
        let sdp = bytes(
            "v=0", "o=jdoe 3724394400 3724394405 IN IP4 198.51.100.1", "s=Call to John Smith",
            "i=SDP Offer #1", "u=http://www.jdoe.example.com/home.html", "e=Jane Doe <jane@jdoe.example.com>",
            "p=+1 617 555-6011", "c=IN IP4 198.51.100.1", "b=AS:128", "t=0 0", "r=7d 1h 0 25h", "x=unknown",
            "a=recvonly", "a=tool:x:y", "m=audio 49170 RTP/AVP 0", "i=speech", "b=TIAS:64000", "k=clear:x",
            "a=ptime:20",
            "m=video 51372/2 RTP/AVP 99 100", "c=IN IP6 2001:db8::2", "a=rtpmap:99 h263-1998/90000")
        let session = try SessionDescription.parse(sdp)
        #expect(session.origin.sessionID == 3_724_394_400)
        #expect(session.times == [SDPTime(start: 0, stop: 0, repeats: ["7d 1h 0 25h"])])
        #expect(session.attributes == [SDPAttribute("recvonly"), SDPAttribute("tool", "x:y")])
        #expect(session.media.map(\.port) == [49_170, 51_372])
        #expect(session.media[1].portCount == 2)
        #expect(session.media[1].connections.first?.addressType == "IP6")
        #expect(session.encoded() == sdp)
    }

    @Test func acceptsBareLineFeedsAndMissingNameAndTime() throws {
        let session = try SessionDescription.parse(
            Array("v=0\no=- 1 1 IN IP4 192.0.2.1\nc=IN IP4 192.0.2.1\nm=audio 4000 RTP/AVP 0\n\n".utf8))
        #expect(session.media.count == 1)
        #expect(session.name == "-")
    }

    @Test func saturatesSessionNumbersBeyond64Bits() throws {
        let session = try SessionDescription.parse(
            bytes("v=0", "o=- 99999999999999999999999 18446744073709551615 IN IP4 192.0.2.1"))
        #expect(session.origin.sessionID == .max)
        #expect(session.origin.sessionVersion == .max)
    }

    @Test(arguments: [
        ("", SDPParseError.Code.missingLine),
        ("o=- 1 1 IN IP4 192.0.2.1", .missingLine),
        ("v=0", .missingLine),
        ("v=1", .malformedLine),
        ("v=0|v=0", .misplacedLine),
        ("v=0|o=- x 1 IN IP4 192.0.2.1", .malformedLine),
        ("v=0|o=- -1 1 IN IP4 192.0.2.1", .malformedLine),
        ("v=0|o=- 1 1 IN IP4", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|o=- 1 1 IN IP4 a", .misplacedLine),
        ("v=0|o=- 1 1 IN IP4 a|c=IN IP4 a|c=IN IP4 b", .misplacedLine),
        ("v=0|o=- 1 1 IN IP4 a|c=IN", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|s=a\0b", .invalidCharacter),
        ("v=0|o=- 1 1 IN IP4 a|a=fmtp\0:1", .invalidCharacter),
        ("v=0|o=- 1 1 IN IP4 a|s=a\rb", .invalidCharacter),
        ("v=0|o=- 1 1 IN IP4 a|garbage", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|a=:x", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|b=AS", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|t=0", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|r=7d", .misplacedLine),
        ("v=0|o=- 1 1 IN IP4 a|m=audio 65536 RTP/AVP 0", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|m=audio -1 RTP/AVP 0", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|m=audio 4000/0 RTP/AVP 0", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|m=audio 4000 RTP/AVP", .malformedLine),
        ("v=0|o=- 1 1 IN IP4 a|m=audio 1 RTP/AVP 0|t=0 0", .misplacedLine),
        ("v=0|o=- 1 1 IN IP4 a|m=audio 1 RTP/AVP 0|s=x", .misplacedLine),
    ])
    func refusesWhatIsMalformed(text: String, expected: SDPParseError.Code) {
        #expect(code(Array(text.split(separator: "|").joined(separator: "\r\n").utf8)) == expected)
    }

    @Test func refusesWhatIsTooLarge() {
        let head = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\n"
        #expect(code(Array((head + String(repeating: "a=x\r\n", count: 10_000)).utf8)) == nil)
        #expect(code(Array((head + String(repeating: "a=x\r\n", count: 10_001)).utf8)) == .tooLarge)
        #expect(code(Array((head + String(repeating: "m=a 0 b c\r\n", count: 100)).utf8)) == nil)
        #expect(code(Array((head + String(repeating: "m=a 0 b c\r\n", count: 1_000)).utf8)) == .tooLarge)
        #expect(code(Array((head + "m=audio 1 RTP/AVP" + String(repeating: " 0", count: 129)).utf8)) == .tooLarge)
        #expect(code(Array((head + "s=" + String(repeating: "x", count: 8_191)).utf8)) == .tooLarge)
        #expect(code([UInt8](repeating: 0x61, count: 65_537)) == .tooLarge)
    }

    @Test func namesTheLineOfAnError() {
        #expect(throws: SDPParseError.self) { try SessionDescription.parse(bytes("v=0", "o=- 1 1 IN IP4 a", "t=x")) }
        do {
            _ = try SessionDescription.parse(bytes("v=0", "o=- 1 1 IN IP4 a", "t=x"))
        } catch {
            #expect(error.line == 3)
            #expect(error.description.hasPrefix("SDP line 3: "))
        }
    }

    @Test func printerStartsNoLineFromAValue() throws {
        var session = SessionDescription(origin: SDPOrigin(sessionID: 1, sessionVersion: 1, address: "192.0.2.1"))
        session.name = "a\r\nm=audio 1 RTP/AVP 0"
        session.attributes = [SDPAttribute("x\n", "y\0z")]
        let again = try SessionDescription.parse(session.encoded())
        #expect(again.media.isEmpty)
        #expect(again.name == "am=audio 1 RTP/AVP 0")
        #expect(again.attributes == [SDPAttribute("x", "yz")])
    }

    @Test func survivesMutations() throws {
        let sdp = bytes(
            "v=0", "o=- 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 192.0.2.1", "t=0 0",
            "m=audio 4000 RTP/AVP 96 0 101", "a=rtpmap:96 opus/48000/2",
            "a=fmtp:96 useinbandfec=1;maxplaybackrate=16000",
            "a=rtpmap:101 telephone-event/8000", "a=fmtp:101 0-15", "a=ptime:20", "a=rtcp:4001 IN IP4 192.0.2.1",
            "a=rtcp-mux", "a=sendrecv")
        var state: UInt64 = 1
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        var parsed = 0
        for _ in 0..<6_000 {
            var mutated = sdp
            for _ in 0...random(4) {
                let position = random(mutated.count)
                switch random(4) {
                case 0: mutated[position] = UInt8(random(256))
                case 1: mutated.remove(at: position)
                case 2: mutated.insert(contentsOf: Array("99999999999999999999".utf8), at: position)
                default: mutated.removeSubrange(position..<min(mutated.count, position + random(30) + 1))
                }
                if mutated.isEmpty { mutated = sdp }
            }
            if let session = try? SessionDescription.parse(mutated) {
                parsed += 1
                // What was written can be read, and is written the same way again.
                let written = session.encoded()
                #expect(try SessionDescription.parse(written).encoded() == written)
            }
            var negotiation = OfferAnswer(
                sessionID: 1, capabilities: .default,
                local: LocalMedia(address: "192.0.2.9", rtpPort: 5_000, rtcpPort: 5_001))
            _ = try? negotiation.receiveOffer(mutated)
            _ = negotiation.makeOffer()
            _ = try? negotiation.receiveAnswer(mutated)
        }
        #expect(parsed > 600)
    }
}
