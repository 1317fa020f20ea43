import Glibc
import Primitives
import RTP

/// The RTCP side of a stream: reports out, reports in, and what they say (RFC 3550, section 6).
///
/// Reports are rare (one in about five seconds), so they may allocate.
struct ControlChannel {
    private var ssrc: UInt32
    private let canonicalName: String
    private var scheduler = RTCPScheduler()
    private var reportedLoss: Double?
    /// The wall clock when the monotonic clock was zero, in nanoseconds: read once, so that nobody who sets the clock
    /// during a call spoils its round-trip times.
    private var wallClockOrigin: Int64 = 0
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
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        wallClockOrigin = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec) &- now.nanoseconds
        scheduler.start(at: now)
    }

    /// Goes on as another source: the codec's clock changed.
    mutating func use(ssrc: UInt32) {
        self.ssrc = ssrc
    }

    /// Takes a compound packet of our peer, `bytes` long.
    mutating func receive(_ packets: [RTCPPacket], bytes: Int, inbound: InboundAudio, at now: MonotonicTime) {
        scheduler.didReceive(bytes: bytes)
        for packet in packets {
            switch packet {
            case .senderReport(let report):
                inbound.noteSenderReport(report, at: now)
                note(report.blocks, at: now)
            case .receiverReport(let report):
                note(report.blocks, at: now)
            default:
                // A BYE ends nothing: only signalling ends a call, since anyone can forge an unprotected BYE.
                break
            }
        }
    }

    private mutating func note(_ blocks: [RTCPReportBlock], at now: MonotonicTime) {
        guard let block = blocks.first(where: { $0.ssrc == ssrc }) else { return }
        let loss = Double(block.fractionLost) / 256
        remoteFractionLost = loss
        reportedLoss = loss
        if let roundTrip = block.roundTripTime(arrival: wallClock(at: now)) { roundTripTime = roundTrip }
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
                ssrc: ssrc, ntpTimestamp: wallClock(at: now), rtpTimestamp: sender.timestamp(at: now),
                packetCount: UInt32(truncatingIfNeeded: sender.packetCount),
                octetCount: UInt32(truncatingIfNeeded: sender.octetCount), blocks: blocks))
    }

    private func wallClock(at now: MonotonicTime) -> NTPTimestamp {
        NTPTimestamp(unixNanoseconds: wallClockOrigin &+ now.nanoseconds)
    }
}
