import Testing

@testable import SDP

private let alice = LocalMedia(address: "192.0.2.1", rtpPort: 40_000, rtcpPort: 40_001)
private let bob = LocalMedia(address: "192.0.2.2", rtpPort: 50_000, rtcpPort: 50_001)

func negotiation(_ local: LocalMedia, _ capabilities: AudioCapabilities = .default) -> OfferAnswer {
    OfferAnswer(sessionID: .max, capabilities: capabilities, local: local)
}

/// A session with the given lines after `t=`; the address is 192.0.2.1 unless the lines say otherwise.
func session(_ lines: String, connection: String? = "IN IP4 192.0.2.1") -> [UInt8] {
    let head = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\n"
    let middle = connection.map { "c=\($0)\r\n" } ?? ""
    let rest = lines.split(separator: "|").joined(separator: "\r\n")
    return Array((head + middle + "t=0 0\r\n" + rest + "\r\n").utf8)
}

func lines(_ sdp: [UInt8]) -> [String] {
    String(decoding: sdp, as: UTF8.self).split(separator: "\r\n").map { String($0) }
}

private func refusal(_ offer: [UInt8]) -> SDPNegotiationError? {
    var side = negotiation(bob)
    do {
        _ = try side.receiveOffer(offer)
        return nil
    } catch {
        return error
    }
}

@Suite struct OfferAnswerTests {
    @Test func defaultOfferHasOpusG711AndEventsAtBothClocks() {
        var side = negotiation(alice)
        let offer = lines(side.makeOffer())
        #expect(offer.contains("o=- 4611686018427387903 1 IN IP4 192.0.2.1"))
        #expect(offer.contains("m=audio 40000 RTP/AVP 111 0 8 110 101"))
        #expect(offer.contains("a=rtpmap:111 opus/48000/2"))
        #expect(offer.contains { $0.hasPrefix("a=fmtp:111 ") && $0.contains("useinbandfec=1") })
        #expect(offer.contains("a=rtpmap:110 telephone-event/48000"))
        #expect(offer.contains("a=rtpmap:101 telephone-event/8000"))
        #expect(offer.contains("a=fmtp:101 0-15"))
        #expect(offer.contains("a=rtcp-mux"))
        #expect(offer.contains("a=ptime:20"))
        #expect(offer.contains("a=sendrecv"))
        #expect(!offer.contains { $0.hasPrefix("a=rtcp:") })
        #expect(side.hasPendingOffer)
    }

    @Test func twoSidesAgreeOnOpus() throws {
        var caller = negotiation(alice)
        var callee = negotiation(bob)
        let (answer, theirs) = try callee.receiveOffer(caller.makeOffer())
        let ours = try caller.receiveAnswer(answer)
        #expect(ours.codec.name == "opus")
        #expect(ours.codec.payloadType == 111)
        #expect(ours.telephoneEventPayloadType == 110)
        #expect(ours.remoteAddress == "192.0.2.2")
        #expect(ours.remoteRTPPort == 50_000)
        #expect(ours.rtcpMux && ours.remoteRTCPPort == 50_000)
        #expect(ours.useInbandFEC)
        #expect(ours.maxAverageBitrate == 32_000)
        #expect(Set(ours.receivePayloadTypes.keys) == [111, 110])
        #expect(theirs.remoteRTPPort == 40_000)
        #expect(theirs.telephoneEventPayloadType == 110)
        #expect(theirs.direction == .sendrecv && ours.direction == .sendrecv)
        #expect(!caller.hasPendingOffer)
        #expect(lines(answer).contains("m=audio 50000 RTP/AVP 111 110"))
    }

    @Test func answererUsesTheOfferersNumbers() throws {
        var callee = negotiation(bob)
        let (answer, audio) = try callee.receiveOffer(
            session(
                "m=audio 4000 RTP/AVP 96 97 98|a=rtpmap:96 telephone-event/48000|a=rtpmap:97 OPUS/48000/2"
                    + "|a=fmtp:97 stereo=1; useinbandfec=1;maxaveragebitrate=20000;cbr=1;usedtx=1;maxplaybackrate=1"
                    + "|a=rtpmap:98 telephone-event/8000"))
        #expect(audio.codec.payloadType == 97)
        #expect(audio.codec.name == "opus")
        #expect(audio.telephoneEventPayloadType == 96)
        #expect(audio.receivePayloadTypes[97]?.name == "opus")
        #expect(audio.receivePayloadTypes[96]?.clockRate == 48_000)
        #expect(audio.stereo && audio.useInbandFEC && audio.cbr && audio.useDTX)
        #expect(audio.maxAverageBitrate == 20_000)
        #expect(audio.opus.maxPlaybackRate == 48_000)
        #expect(lines(answer).contains("m=audio 50000 RTP/AVP 97 96"))
        #expect(lines(answer).contains("a=rtpmap:97 opus/48000/2"))
        // A later offer of ours keeps the numbers, and gives 111's place to nothing else.
        let offer = lines(callee.makeOffer())
        #expect(offer.contains("m=audio 50000 RTP/AVP 97 0 8 96 101"))
    }

    @Test func offererSendsWithTheAnswerersNumbers() throws {
        var caller = negotiation(alice)
        _ = caller.makeOffer()
        let audio = try caller.receiveAnswer(
            session(
                "m=audio 4000 RTP/AVP 96 101|a=rtpmap:96 opus/48000/2|a=rtpmap:101 telephone-event/48000"))
        #expect(audio.codec.payloadType == 96)
        #expect(audio.telephoneEventPayloadType == 101)
        #expect(audio.receivePayloadTypes[111]?.name == "opus")
        #expect(audio.receivePayloadTypes[96]?.name == "opus")
        #expect(audio.receivePayloadTypes[110]?.clockRate == 48_000)
    }

    @Test func collidingNumbersMoveInALaterOffer() throws {
        var callee = negotiation(bob)
        _ = try callee.receiveOffer(session("m=audio 4000 RTP/AVP 101|a=rtpmap:101 opus/48000/2"))
        let offer = lines(callee.makeOffer())
        #expect(offer.contains("m=audio 50000 RTP/AVP 101 0 8 110 96"))
        #expect(offer.contains("a=rtpmap:96 telephone-event/8000"))
    }

    @Test(arguments: [("0", "PCMU", 0), ("8", "PCMA", 8), ("3 8 0", "PCMA", 8)])
    func staticPayloadTypesNeedNoMapping(formats: String, name: String, number: Int) throws {
        var callee = negotiation(bob)
        let (answer, audio) = try callee.receiveOffer(session("m=audio 4000 RTP/AVP \(formats)"))
        #expect(audio.codec.name == name)
        #expect(Int(audio.codec.payloadType) == number)
        #expect(audio.telephoneEventPayloadType == nil)
        #expect(lines(answer).contains("m=audio 50000 RTP/AVP \(number)"))
    }

    @Test func eventsFollowTheClockOfTheCodec() throws {
        let events = "|a=rtpmap:96 telephone-event/48000|a=rtpmap:97 telephone-event/8000|a=rtpmap:111 opus/48000/2"
        var callee = negotiation(bob)
        let opus = try callee.receiveOffer(session("m=audio 4000 RTP/AVP 111 0 96 97" + events)).audio
        #expect(opus.telephoneEventPayloadType == 96)
        let g711 = try callee.receiveOffer(session("m=audio 4000 RTP/AVP 0 111 96 97" + events)).audio
        #expect(g711.codec.name == "PCMU")
        #expect(g711.telephoneEventPayloadType == 97)
        let mismatch = try callee.receiveOffer(session("m=audio 4000 RTP/AVP 111 97" + events)).audio
        #expect(mismatch.telephoneEventPayloadType == nil)
    }

    @Test func firstAcceptableAudioIsTakenAndTheRestRefusedInPlace() throws {
        var callee = negotiation(bob)
        let offer = session(
            "m=video 5000 RTP/AVP 31 34|a=rtpmap:31 H261/90000|m=audio 0 RTP/AVP 0|m=audio 4000 RTP/SAVP 0"
                + "|m=audio 4002 RTP/AVP 18|m=audio 4004 RTP/AVPF 0 101|a=rtpmap:101 telephone-event/8000"
                + "|m=audio 4006 RTP/AVP 8|m=application 9 UDP/DTLS/SCTP webrtc-datachannel")
        let (answer, audio) = try callee.receiveOffer(offer)
        #expect(audio.remoteRTPPort == 4_004)
        #expect(
            lines(answer).filter { $0.hasPrefix("m=") } == [
                "m=video 0 RTP/AVP 31 34", "m=audio 0 RTP/AVP 0", "m=audio 0 RTP/SAVP 0", "m=audio 0 RTP/AVP 18",
                "m=audio 50000 RTP/AVPF 0 101", "m=audio 0 RTP/AVP 8",
                "m=application 0 UDP/DTLS/SCTP webrtc-datachannel",
            ])
        // Our own re-offer keeps all places.
        let media = lines(callee.makeOffer()).filter { $0.hasPrefix("m=") }
        #expect(media.count == 7)
        #expect(media[4].hasPrefix("m=audio 50000 RTP/AVPF 0 "))
        #expect(media[0] == "m=video 0 RTP/AVP 31 34")
    }

    @Test(arguments: [
        // line, wanted, answered
        ("a=sendrecv", MediaDirection.sendrecv, MediaDirection.sendrecv),
        ("a=sendonly", .sendrecv, .recvonly),
        ("a=recvonly", .sendrecv, .sendonly),
        ("a=inactive", .sendrecv, .inactive),
        ("a=sendrecv", .sendonly, .sendonly),
        ("a=sendonly", .sendonly, .inactive),
        ("a=recvonly", .recvonly, .inactive),
        ("a=x", .inactive, .inactive),
    ])
    func directionsMeet(line: String, wanted: MediaDirection, answered: MediaDirection) throws {
        for offer in [
            session("m=audio 4000 RTP/AVP 0|\(line)"),
            Array("v=0\r\no=- 1 1 IN IP4 a\r\n\(line)\r\nm=audio 4000 RTP/AVP 0\r\nc=IN IP4 192.0.2.1\r\n".utf8),
        ] {
            var callee = negotiation(bob)
            let (answer, audio) = try callee.receiveOffer(offer, direction: wanted)
            #expect(audio.direction == answered)
            #expect(lines(answer).contains("a=\(answered.rawValue)"))
        }
    }

    @Test func mediaLevelDirectionAndConnectionWin() throws {
        var callee = negotiation(bob)
        let offer = session("a=inactive|m=audio 4000 RTP/AVP 0|c=IN IP4 198.51.100.7|a=sendrecv")
        let audio = try callee.receiveOffer(offer).audio
        #expect(audio.direction == .sendrecv)
        #expect(audio.remoteAddress == "198.51.100.7")
    }

    @Test(arguments: ["IN IP4 0.0.0.0", "IN IP6 ::", "IN IP4 nowhere.invalid"])
    func anAddressToHoldStopsSending(connection: String) throws {
        var callee = negotiation(bob)
        let (answer, audio) = try callee.receiveOffer(session("m=audio 4000 RTP/AVP 0", connection: connection))
        #expect(audio.direction == .recvonly)
        #expect(lines(answer).contains("a=recvonly"))
    }

    @Test func holdAndResumeRaiseTheVersionAndRepetitionDoesNot() throws {
        var caller = negotiation(alice)
        var callee = negotiation(bob)
        _ = try caller.receiveAnswer(try callee.receiveOffer(caller.makeOffer()).answer)
        let hold = caller.makeOffer(direction: .sendonly)
        #expect(lines(hold)[1] == "o=- 4611686018427387903 2 IN IP4 192.0.2.1")
        let held = try callee.receiveOffer(hold)
        #expect(held.audio.direction == .recvonly)
        #expect(try caller.receiveAnswer(held.answer).direction == .sendonly)
        #expect(lines(held.answer)[1].contains(" 2 IN"))
        // The same again: nothing changed, so the version stays on both sides.
        let again = caller.makeOffer(direction: .sendonly)
        #expect(again == hold)
        #expect(try callee.receiveOffer(again).answer == held.answer)
        _ = try caller.receiveAnswer(held.answer)
        let resume = caller.makeOffer()
        #expect(lines(resume)[1].contains(" 3 IN"))
        #expect(try callee.receiveOffer(resume).audio.direction == .sendrecv)
    }

    @Test func holdKeepsTheCodecInUse() throws {
        var caller = negotiation(alice)
        _ = caller.makeOffer()
        _ = try caller.receiveAnswer(session("m=audio 4000 RTP/AVP 8"))
        #expect(lines(caller.makeOffer(direction: .sendonly)).contains("m=audio 40000 RTP/AVP 8 111 0 110 101"))
    }

    @Test func refusedOffersLeaveTheSessionAsItWas() throws {
        var callee = negotiation(bob)
        _ = try callee.receiveOffer(session("m=audio 4000 RTP/AVP 0"))
        let before = callee.agreed
        #expect(throws: SDPNegotiationError.self) { try callee.receiveOffer(session("m=audio 4000 RTP/AVP 18")) }
        #expect(callee.agreed == before)
        _ = callee.makeOffer(direction: .inactive)
        #expect(
            throws: SDPNegotiationError(code: .offerPending, reason: "an offer arrived while ours waits for its answer")
        ) {
            try callee.receiveOffer(session("m=audio 4000 RTP/AVP 0"))
        }
        callee.abandonOffer()
        #expect(!callee.hasPendingOffer)
        #expect(try callee.receiveOffer(session("m=audio 4000 RTP/AVP 0")).audio == before)
    }

    @Test func oneOfferMayGetSeveralAnswers() throws {
        var caller = negotiation(alice)
        #expect(throws: SDPNegotiationError.self) { try caller.receiveAnswer(session("m=audio 4000 RTP/AVP 0")) }
        _ = caller.makeOffer()
        #expect(try caller.receiveAnswer(session("m=audio 4000 RTP/AVP 0")).remoteRTPPort == 4_000)
        #expect(try caller.receiveAnswer(session("m=audio 4002 RTP/AVP 8")).remoteRTPPort == 4_002)
    }

    @Test(arguments: [
        ("m=audio 0 RTP/AVP 0", SDPNegotiationError.Code.rejected),
        ("m=video 4000 RTP/AVP 31", .noAudio),
        ("a=x", .noAudio),
        ("m=audio 4000 RTP/AVP 18", .noCommonCodec),
        ("m=audio 4000 RTP/AVP 110|a=rtpmap:110 telephone-event/48000", .noCommonCodec),
        ("m=audio 4000 RTP/SAVP 0", .unsupportedProfile),
    ])
    func answersThatDoNotFit(answer: String, expected: SDPNegotiationError.Code) {
        var caller = negotiation(alice)
        _ = caller.makeOffer()
        do {
            _ = try caller.receiveAnswer(session(answer))
            Issue.record("accepted")
        } catch {
            #expect(error.code == expected)
        }
        #expect(caller.hasPendingOffer)
    }

    @Test(arguments: [
        ("a=x", SDPNegotiationError.Code.noAudio, 488),
        ("m=video 4000 RTP/AVP 31", .noAudio, 488),
        ("m=audio 0 RTP/AVP 0", .noAudio, 488),
        ("m=audio 4000 RTP/AVP 4294967296", .noCommonCodec, 488),
        ("m=audio 4000 RTP/AVP 128 -1 x", .noCommonCodec, 488),
        ("m=audio 4000 RTP/AVP 111|a=rtpmap:111 opus/0/2", .noCommonCodec, 488),
        ("m=audio 4000 RTP/AVP 111|a=rtpmap:111 opus/2147483648/2", .noCommonCodec, 488),
        ("m=audio 4000 RTP/AVP 111|a=rtpmap:111 opus/48000/0", .noCommonCodec, 488),
        ("m=audio 4000 RTP/AVP 111|a=rtpmap:111", .noCommonCodec, 488),
        ("m=audio 4000 RTP/AVP 0|a=rtpmap:0 PCMU/0", .noCommonCodec, 488),
        ("m=audio 4000 RTP/AVP 111|a=rtpmap:4294967407 opus/48000/2", .noCommonCodec, 488),
        ("m=audio 4000 RTP/AVP 101|a=rtpmap:101 telephone-event/8000", .noCommonCodec, 488),
        ("m=audio 4000 RTP/SAVP 0", .unsupportedProfile, 488),
        ("m=audio 4000 RTP/SAVPF 0", .unsupportedProfile, 488),
        ("m=audio 4000 UDP/TLS/RTP/SAVPF 0", .unsupportedProfile, 488),
        ("m=audio 1 RTP/AVP 0", .unusableAddress, 488),
        ("m=audio 53 RTP/AVP 0", .unusableAddress, 488),
        ("m=audio 65536 RTP/AVP 0", .malformed, 400),
        ("m=audio 4000 RTP/AVP 0|c=IN IP4 192.0.2.1|c=IN IP4 192.0.2.2", .unusableAddress, 488),
        ("m=audio 4000 RTP/AVP 0|c=IN IP6 garbage", .unusableAddress, 488),
        ("m=audio 4000 RTP/AVP 0|c=IN IP6 ::ffff:192.0.2.1", .unusableAddress, 488),
        ("m=audio 4000 RTP/AVP 0|c=IN IP6 2001:db8::1", .unusableAddress, 488),
        ("m=audio 4000 RTP/AVP 0|c=IN IP4 224.2.1.1/127", .unusableAddress, 488),
        ("m=audio 4000 RTP/AVP 0|c=IN IP4 255.255.255.255", .unusableAddress, 488),
        ("m=audio 4000 RTP/AVP 0|c=IN IP4 example.com", .unusableAddress, 488),
        ("m=audio 4000 RTP/AVP 0|c=ATM NSAP 1", .unusableAddress, 488),
    ])
    func offersThatAreRefused(offer: String, code: SDPNegotiationError.Code, status: Int) {
        let error = refusal(session(offer))
        #expect(error?.code == code)
        #expect(error?.status == status)
    }

    @Test func noConnectionLineIsRefused() {
        #expect(refusal(session("m=audio 4000 RTP/AVP 0", connection: nil))?.code == .unusableAddress)
    }

    @Test(arguments: [
        ("a=ptime:0", 20), ("a=ptime:-1", 20), ("a=ptime:1000000000", 20), ("a=ptime:x", 20), ("a=ptime:20", 20),
        ("a=ptime:10", 10), ("a=ptime:5", 10), ("a=ptime:30", 30), ("a=ptime:50", 40), ("a=ptime:60", 60),
        ("a=ptime:120", 60), ("a=ptime:40|a=maxptime:20", 20), ("a=maxptime:10", 10), ("a=maxptime:0", 20),
    ])
    func packetTimes(attributes: String, expected: Int) throws {
        var callee = negotiation(bob)
        #expect(try callee.receiveOffer(session("m=audio 4000 RTP/AVP 0|\(attributes)")).audio.ptime == expected)
    }

    @Test func opusHasNo30MillisecondPackets() throws {
        var callee = negotiation(bob)
        let offer = session("m=audio 4000 RTP/AVP 111|a=rtpmap:111 opus/48000/2|a=ptime:30")
        #expect(try callee.receiveOffer(offer).audio.ptime == 20)
    }

    @Test(arguments: [
        ("", 4_001, "192.0.2.1", false),
        ("|a=rtcp:4777", 4_777, "192.0.2.1", false),
        ("|a=rtcp:4777 IN IP4 192.0.2.77", 4_777, "192.0.2.77", false),
        ("|a=rtcp:4777 IN IP4 224.0.0.1", 4_001, "192.0.2.1", false),
        ("|a=rtcp:65536", 4_001, "192.0.2.1", false),
        ("|a=rtcp:0", 4_001, "192.0.2.1", false),
        ("|a=rtcp:4777|a=rtcp-mux", 4_000, "192.0.2.1", true),
    ])
    func rtcpPorts(attributes: String, port: Int, address: String, mux: Bool) throws {
        var callee = negotiation(bob)
        let (answer, audio) = try callee.receiveOffer(session("m=audio 4000 RTP/AVP 0\(attributes)"))
        #expect(Int(audio.remoteRTCPPort) == port)
        #expect(audio.remoteRTCPAddress == address)
        #expect(audio.rtcpMux == mux)
        #expect(lines(answer).contains("a=rtcp-mux") == mux)
    }

    @Test func muxNeedsBothSides() throws {
        var capabilities = AudioCapabilities.default
        capabilities.rtcpMux = false
        var callee = negotiation(LocalMedia(address: "192.0.2.2", rtpPort: 50_000, rtcpPort: 50_007), capabilities)
        let (answer, audio) = try callee.receiveOffer(session("m=audio 4000 RTP/AVP 0|a=rtcp-mux"))
        #expect(!audio.rtcpMux && audio.remoteRTCPPort == 4_001)
        #expect(!lines(answer).contains("a=rtcp-mux"))
        #expect(lines(answer).contains("a=rtcp:50007"))
        var caller = negotiation(alice)
        _ = caller.makeOffer()
        let plain = try caller.receiveAnswer(session("m=audio 65535 RTP/AVP 0"))
        #expect(!plain.rtcpMux && plain.remoteRTCPPort == 0)
    }

    @Test func numbersThatLookLikeRTCPAreNotUsedOnASharedPort() {
        let offer = "m=audio 4000 RTP/AVP 72|a=rtpmap:72 opus/48000/2"
        #expect(refusal(session(offer)) == nil)
        #expect(refusal(session(offer + "|a=rtcp-mux"))?.code == .noCommonCodec)
    }

    @Test func ipv6SessionsWork() throws {
        var callee = negotiation(LocalMedia(address: "2001:db8::2", rtpPort: 50_000, rtcpPort: 50_001))
        let (answer, audio) = try callee.receiveOffer(
            session("m=audio 4000 RTP/AVP 0", connection: "IN IP6 2001:db8::1"))
        #expect(audio.remoteAddress == "2001:db8::1")
        #expect(lines(answer).contains("c=IN IP6 2001:db8::2"))
    }
}
