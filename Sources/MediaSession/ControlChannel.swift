import Glibc
import Primitives
import RTP

/// The RTCP side of a stream: reports out, reports in, and what they say (RFC 3550, section 6).
///
/// Reports are rare (one in about five seconds), so they may allocate.
struct ControlChannel {
    private let ssrc: UInt32
    private let canonicalName: String
    private var scheduler = RTCPScheduler()
    private var reportedLoss: Double?
    /// Share of our packets that the peer did not get, 0…1, by its last report.
    private(set) var remoteFractionLost: Double?
    /// From our last sender report and the peer's answer to it.
    private(set) var roundTripTime: Duration?

    init(ssrc: UInt32) {
        self.ssrc = ssrc
        // A random name: RFC 7022 asks for one that tells nothing of the user or the machine.
        var random = RandomSource.system
        canonicalName = random.hexadecimal(bits: 96)
    }

    var nextReport: MonotonicTime? { scheduler.nextReport }

    mutating func start(at now: MonotonicTime) {
        scheduler.start(at: now)
    }

    mutating func receive(_ bytes: Span<UInt8>, inbound: InboundAudio, at now: MonotonicTime) {
        guard let packets = try? RTCPPacket.parseCompound(bytes) else { return }
        scheduler.didReceive(bytes: bytes.count)
        for packet in packets {
            switch packet {
            case .senderReport(let report):
                inbound.noteSenderReport(report, at: now)
                note(report.blocks)
            case .receiverReport(let report):
                note(report.blocks)
            default:
                // A BYE ends nothing: only signalling ends a call, since anyone can forge an unprotected BYE.
                break
            }
        }
    }

    private mutating func note(_ blocks: [RTCPReportBlock]) {
        guard let block = blocks.first(where: { $0.ssrc == ssrc }) else { return }
        let loss = Double(block.fractionLost) / 256
        remoteFractionLost = loss
        reportedLoss = loss
        if let roundTrip = block.roundTripTime(arrival: Self.wallClock()) { roundTripTime = roundTrip }
    }

    /// The loss that arrived since the last call, once.
    mutating func takeRemoteLoss() -> Double? {
        defer { reportedLoss = nil }
        return reportedLoss
    }

    /// The report that is due: SR when we sent, else RR, with our name.
    mutating func makeReport(sender: RTPSender, inbound: InboundAudio, at now: MonotonicTime) -> [UInt8] {
        let bytes = RTCPPacket.encodeCompound([report(sender: sender, inbound: inbound, at: now), name])
        scheduler.didSend(bytes: bytes.count, at: now)
        return bytes
    }

    /// The last report, with BYE.
    mutating func makeGoodbye(sender: RTPSender, inbound: InboundAudio, at now: MonotonicTime) -> [UInt8] {
        scheduler.stop()
        return RTCPPacket.encodeCompound([
            report(sender: sender, inbound: inbound, at: now), name, .goodbye(RTCPGoodbye(sources: [ssrc])),
        ])
    }

    private var name: RTCPPacket {
        .sourceDescription([RTCPSourceDescription(ssrc: ssrc, canonicalName: canonicalName)])
    }

    private func report(sender: RTPSender, inbound: InboundAudio, at now: MonotonicTime) -> RTCPPacket {
        let blocks = inbound.reportBlock(at: now).map { [$0] } ?? []
        guard sender.packetCount > 0 else {
            return .receiverReport(RTCPReceiverReport(ssrc: ssrc, blocks: blocks))
        }
        return .senderReport(
            RTCPSenderReport(
                ssrc: ssrc, ntpTimestamp: Self.wallClock(), rtpTimestamp: sender.timestamp(at: now),
                packetCount: UInt32(truncatingIfNeeded: sender.packetCount),
                octetCount: UInt32(truncatingIfNeeded: sender.octetCount), blocks: blocks))
    }

    private static func wallClock() -> NTPTimestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return NTPTimestamp(unixNanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
    }
}
