import Audio
import Primitives
import RTP
import SDP

/// The sending half of a stream: source, encoder, packets. Belongs to the media thread; allocates only when made.
final class OutboundAudio {
    private let source: any AudioSource
    private let encoder: any FrameEncoder
    private(set) var sender: RTPSender
    private let timestampStep: UInt32
    private var clock: FrameClock
    private let frame: UnsafeMutableBufferPointer<Int16>
    private var filled = 0
    private let packet: UnsafeMutableBufferPointer<UInt8>
    private var isFirst = true
    /// A file has a beginning that must not be lost: it waits until somebody is there, with silence in its place.
    private let waitsForPeer: Bool

    /// Level of the last frame, 0…1.
    private(set) var level = 0.0
    private(set) var bytesSent: UInt64 = 0

    init(source: any AudioSource, encoder: any FrameEncoder, codec: AudioCodec) {
        self.source = source
        self.encoder = encoder
        if case .file = source.name { waitsForPeer = true } else { waitsForPeer = false }
        sender = RTPSender(payloadType: codec.payloadType, clockRate: codec.clockRate)
        timestampStep = UInt32(encoder.frameSamples * codec.clockRate / AudioFormat.sampleRate)
        clock = FrameClock(frameSamples: encoder.frameSamples)
        frame = .allocate(capacity: encoder.frameSamples)
        frame.initialize(repeating: 0)
        packet = .allocate(capacity: 1_500)
        packet.initialize(repeating: 0)
    }

    deinit {
        frame.deallocate()
        packet.deallocate()
    }

    /// When the next frame is due, for a source that follows the timer; nil for hardware.
    var nextFrame: MonotonicTime? { source.readableFrames == nil ? clock.next : nil }

    var isExhausted: Bool { source.isExhausted }

    /// Sends every frame that is due.
    ///
    /// - Parameters:
    ///   - isMuted: whether silence goes out instead of what is captured.
    ///   - hasPeer: whether the other side was heard, or will never be: only then does a file begin.
    ///   - isSending: whether anything goes out; when not, the source is still read, so that it keeps its pace.
    ///   - transmit: gets each packet.
    ///   - record: gets each frame as it was encoded.
    func process(
        at now: MonotonicTime, isMuted: Bool, hasPeer: Bool, isSending: Bool,
        transmit: (UnsafeBufferPointer<UInt8>) -> Void, record: (UnsafeBufferPointer<Int16>) -> Void
    ) {
        if source.readableFrames == nil {
            for _ in 0..<clock.framesDue(at: now) {
                if waitsForPeer, !hasPeer { frame.update(repeating: 0) } else { source.read(into: frame) }
                send(at: now, isMuted: isMuted, isSending: isSending, transmit: transmit, record: record)
            }
        } else {
            while let readable = source.readableFrames, readable > 0 {
                let wanted = min(readable, frame.count - filled)
                source.read(into: UnsafeMutableBufferPointer(rebasing: frame[filled..<(filled + wanted)]))
                filled += wanted
                guard filled == frame.count else { continue }
                filled = 0
                send(at: now, isMuted: isMuted, isSending: isSending, transmit: transmit, record: record)
            }
        }
    }

    private func send(
        at now: MonotonicTime, isMuted: Bool, isSending: Bool,
        transmit: (UnsafeBufferPointer<UInt8>) -> Void, record: (UnsafeBufferPointer<Int16>) -> Void
    ) {
        if isMuted { frame.update(repeating: 0) }
        level = Level.rootMeanSquare(UnsafeBufferPointer(frame))
        record(UnsafeBufferPointer(frame))
        guard isSending else {
            sender.skip(samples: timestampStep)
            return
        }
        let room = UnsafeMutableBufferPointer(rebasing: packet[RTPHeader.minimumLength...])
        let length = encoder.encode(UnsafeBufferPointer(frame), into: room)
        guard length > 0 else {
            sender.skip(samples: timestampStep)
            isFirst = true
            return
        }
        let header = sender.header(samples: timestampStep, marker: isFirst, at: now)
        isFirst = false
        var span = packet.mutableSpan
        _ = header.write(into: &span)
        sender.didSend(payloadBytes: length)
        bytesSent &+= UInt64(length)
        transmit(UnsafeBufferPointer(rebasing: packet[0..<(RTPHeader.minimumLength + length)]))
    }

    /// Tells the encoder what the other side loses.
    func setExpectedLoss(percent: Int) {
        encoder.setExpectedLoss(percent: percent)
    }

    func service(at now: MonotonicTime) {
        source.service(at: now)
    }

    func takeFailure() -> AudioError? { source.takeFailure() }

    var xruns: UInt64 { source.counters.xruns }

    func stop() {
        source.stop()
    }
}

/// Counts the frames that are due on a device without a clock of its own.
///
/// Time is counted from the first frame, so that late wake-ups do not add up to drift; what a stall of more than
/// 100 ms left behind is skipped instead of sent in a rush.
struct FrameClock {
    private let period: Duration
    private(set) var next: MonotonicTime?

    init(frameSamples: Int) {
        period = .nanoseconds(Int64(frameSamples) * 1_000_000_000 / Int64(AudioFormat.sampleRate))
    }

    /// Frames due since the last call; the first call gives one.
    mutating func framesDue(at now: MonotonicTime) -> Int {
        guard var due = next else {
            next = now + period
            return 1
        }
        if now - due > .milliseconds(100) { due = now }
        var frames = 0
        while due <= now {
            due += period
            frames += 1
        }
        next = due
        return frames
    }
}

/// Sound levels.
enum Level {
    /// The root mean square of a frame, 0…1 of full scale.
    static func rootMeanSquare(_ samples: UnsafeBufferPointer<Int16>) -> Double {
        guard !samples.isEmpty else { return 0 }
        var sum: Int64 = 0
        for sample in samples { sum &+= Int64(sample) &* Int64(sample) }
        return (Double(sum) / Double(samples.count)).squareRoot() / 32_768
    }
}
