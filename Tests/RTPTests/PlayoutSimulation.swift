import Primitives
import RTP

/// Packets through a network into a jitter buffer and a decoder that pulls when it runs dry, all in simulated time.
struct PlayoutSimulation {
    /// One packet of the sender.
    struct Packet {
        var sent: Double
        var arrival: Double?
        var header: RTPHeader
        var payload: [UInt8]
        var isPlaceholder = false
    }

    /// What was played when.
    struct Played {
        var time: Double
        var output: JitterBuffer.Output
        var delay: Double
        var target: Double
        var firstBytes: [UInt8]
    }

    var packets: [Packet] = []
    var played: [Played] = []
    var buffer: JitterBuffer
    /// The statistics when `mark` was passed.
    var early = JitterBufferStatistics()
    var mark = 10_000.0
    let clockRate: Int

    init(clockRate: Int = 48_000, configuration: JitterBuffer.Configuration? = nil) {
        self.clockRate = clockRate
        buffer = JitterBuffer(configuration: configuration ?? .init(clockRate: clockRate))
    }

    /// Adds a stream; `network` gives each packet's delay in milliseconds, nil when it is lost.
    mutating func send(
        from start: Double = 0, count: Int, ptime: Double = 20, sequence: UInt16 = 0, timestamp: UInt32 = 0,
        ssrc: UInt32 = 1, network: (Int, Double) -> Double?
    ) {
        for index in 0..<count {
            let sent = start + Double(index) * ptime
            let number = sequence &+ UInt16(truncatingIfNeeded: index)
            let samples = UInt32(truncatingIfNeeded: Int(Double(index) * ptime * Double(clockRate) / 1_000))
            let header = RTPHeader(
                payloadType: 111, sequenceNumber: number, timestamp: timestamp &+ samples, ssrc: ssrc, payloadLength: 4)
            let payload = [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number), 7, 7]
            packets.append(
                Packet(sent: sent, arrival: network(index, sent).map { sent + $0 }, header: header, payload: payload))
        }
    }

    /// Runs until `end` (milliseconds). `rate` is how fast the sound card really plays.
    mutating func run(until end: Double, pullFrom phase: Double = 3, rate: Double = 1) {
        let arriving = packets.filter { $0.arrival != nil }.sorted { ($0.arrival ?? 0) < ($1.arrival ?? 0) }
        var next = 0
        var time = phase
        var room = [UInt8](repeating: 0, count: buffer.configuration.maxPayloadBytes)
        while time < end {
            while next < arriving.count, let arrival = arriving[next].arrival, arrival <= time {
                let packet = arriving[next]
                if packet.isPlaceholder {
                    buffer.insertPlaceholder(packet.header, at: Self.time(arrival))
                } else {
                    buffer.insert(packet.header, payload: packet.payload.span, at: Self.time(arrival))
                }
                next += 1
            }
            if time <= mark { early = buffer.statistics }
            let output = buffer.pull(at: Self.time(time), into: &room)
            let statistics = buffer.statistics
            played.append(
                Played(
                    time: time, output: output, delay: statistics.currentDelay.milliseconds,
                    target: statistics.targetDelay.milliseconds, firstBytes: Array(room.prefix(2))))
            switch output {
            case .packet(_, _, let samples): time += Double(samples) * 1_000 / Double(clockRate) / rate
            case .lost: time += Double(buffer.frameSamples) * 1_000 / Double(clockRate) / rate
            case .waiting: time += 10 / rate
            }
        }
    }

    /// The sequence numbers played, in order.
    var sequence: [UInt16] {
        played.compactMap { entry in
            if case .packet(_, let header, _) = entry.output { return header.sequenceNumber }
            return nil
        }
    }

    /// Frames concealed between two times.
    func concealed(from start: Double, to end: Double) -> Int {
        played.count { entry in
            if case .lost = entry.output { return entry.time >= start && entry.time < end }
            return false
        }
    }

    /// The greatest delay kept between two times.
    func greatestDelay(from start: Double, to end: Double) -> Double {
        played.filter { $0.time >= start && $0.time < end }.map(\.delay).max() ?? 0
    }

    /// The 99th percentile of the delays above the least one: what a buffer that knew all would keep.
    func oracle() -> Double {
        let delays = packets.compactMap { packet in packet.arrival.map { $0 - packet.sent } }.sorted()
        guard let least = delays.first, !delays.isEmpty else { return 0 }
        return delays[min(delays.count - 1, delays.count * 99 / 100)] - least
    }

    static func time(_ milliseconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(milliseconds * 1_000_000))
    }
}

extension RandomSource {
    /// A normally distributed number.
    mutating func normal() -> Double {
        var sum = -6.0
        for _ in 0..<12 { sum += unitInterval() }
        return sum
    }
}
