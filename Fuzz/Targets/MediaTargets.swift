import Primitives
import RTP
import SDP

/// A session description is read and printed, and read again it is the same; as an offer and as an answer it is borne,
/// and what is answered can be read.
@Sendable func fuzzSessionDescription(_ bytes: [UInt8]) throws {
    if let description = try? SessionDescription.parse(bytes) {
        let printed = description.encoded()
        // Bytes that are not UTF-8 become longer as replacement characters, and may then be too long for a line.
        var limits = SDPLimits()
        limits.maxBytes = 1 << 20
        limits.maxLineBytes = 1 << 20
        guard let again = try? SessionDescription.parse(printed, limits: limits) else {
            throw Finding(description: "printed, but not read: \(printed.readable)")
        }
        try expect(inPrintedOrder(again) == inPrintedOrder(description), "changed by printing: \(printed.readable)")
        try expect(again.encoded() == printed, "printed differently the second time: \(printed.readable)")
    }
    let local = LocalMedia(address: "192.0.2.1", rtpPort: 4_000, rtcpPort: 4_001)
    var callee = OfferAnswer(sessionID: 1, capabilities: .default, local: local)
    if let (answer, audio) = try? callee.receiveOffer(bytes) {
        guard let own = try? SessionDescription.parse(answer), let offer = try? SessionDescription.parse(bytes) else {
            throw Finding(description: "the answer cannot be read: \(answer.readable)")
        }
        try expect(own.media.count == offer.media.count, "the answer has another number of streams")
        try check(audio)
        // The same once more changes the session, or is refused; our own offer follows.
        _ = try? callee.receiveOffer(bytes)
        _ = callee.makeOffer(direction: .sendonly)
        _ = try? callee.receiveAnswer(bytes)
    }
    var caller = OfferAnswer(sessionID: 2, capabilities: .default, local: local)
    _ = caller.makeOffer()
    if let audio = try? caller.receiveAnswer(bytes) { try check(audio) }
}

/// Lines of no type that is modelled come in another order, which means nothing.
private func inPrintedOrder(_ description: SessionDescription) -> SessionDescription {
    func sorted(_ lines: [SDPLine]) -> [SDPLine] {
        lines.sorted { ("\($0.type)", $0.value) < ("\($1.type)", $1.value) }
    }
    var result = description
    result.otherLines = sorted(result.otherLines)
    for index in result.media.indices { result.media[index].otherLines = sorted(result.media[index].otherLines) }
    return result
}

private func check(_ audio: NegotiatedAudio) throws {
    try expect(
        audio.codec.clockRate > 0 && audio.codec.clockRate <= 192_000, "a clock rate of \(audio.codec.clockRate)")
    try expect(audio.codec.payloadType < 128, "payload type \(audio.codec.payloadType)")
}

/// Datagrams of a media port, separated by three 0xFF: RTP, RTCP and events, through all that looks at them.
@Sendable func fuzzMediaPackets(_ bytes: [UInt8]) throws {
    var buffer = JitterBuffer(configuration: .init(clockRate: 8_000, frameSamples: 160))
    var statistics = RTPReceiverStatistics(clockRate: 8_000)
    var events = TelephoneEventReceiver(clockRate: 8_000)
    var now = MonotonicTime.zero
    var frame = [UInt8](repeating: 0, count: 4_096)
    for packet in bytes.pieces(separatedBy: [0xFF, 0xFF, 0xFF]).prefix(64) {
        now += .milliseconds(Int(packet.first ?? 0) % 60)
        _ = PacketKind(packet)
        if let header = RTPHeader.parse(packet) {
            try expect(
                header.payloadOffset >= 0 && header.payloadLength >= 0
                    && header.payloadOffset + header.payloadLength <= packet.count, "a payload outside of its packet")
            let payload = packet.span.extracting(header.payloadOffset..<(header.payloadOffset + header.payloadLength))
            _ = statistics.receive(header, at: now)
            buffer.insert(header, payload: payload, at: now)
            _ = events.receive(header, payload: payload, at: now)
        }
        for reduced in [false, true] {
            guard let packets = try? RTCPPacket.parseCompound(packet, allowsReducedSize: reduced) else { continue }
            for case .senderReport(let report) in packets { statistics.receive(report, at: now) }
            let printed = RTCPPacket.encodeCompound(packets)
            guard let again = try? RTCPPacket.parseCompound(printed, allowsReducedSize: true) else {
                throw Finding(description: "printed, but not read: \(packets)")
            }
            try expect(again.count == packets.count, "printed, it has another number of packets")
            try expect(RTCPPacket.encodeCompound(again) == printed, "printed differently the second time")
        }
        _ = buffer.pull(at: now, into: &frame)
        _ = events.timeout(at: now)
        _ = (statistics.jitter, statistics.cumulativeLost, statistics.totalLost, statistics.reportBlock(at: now))
        try expect(buffer.count <= 1_024, "the jitter buffer grows")
    }
}
