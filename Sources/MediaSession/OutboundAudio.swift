import Audio
import Primitives
import RTP
import SDP

/// The sending half of a stream: source, encoder, packets. Belongs to the media thread; allocates only when it is made
/// and when a negotiation changes the codec.
final class OutboundAudio {
    private let source: any AudioSource
    private var encoder: any FrameEncoder
    private(set) var sender: RTPSender
    private var timestampStep: UInt32
    private var clock: FrameClock
    private var frame: UnsafeMutableBufferPointer<Int16>
    private var filled = 0
    private let packet: UnsafeMutableBufferPointer<UInt8>
    private var isFirst = true
    /// A file has a beginning that must not be lost: it waits until somebody is there, with silence in its place.
    private let waitsForPeer: Bool
    private var keys: TelephoneEventSender
    private var hasUnreportedKeys = false
    /// The payload type for telephone events; nil when the peer takes none.
    var eventPayloadType: UInt8?

    /// Level of the last frame, 0…1.
    private(set) var level = 0.0
    private(set) var bytesSent: UInt64 = 0

    init(source: any AudioSource, encoder: any FrameEncoder, codec: AudioCodec) {
        self.source = source
        self.encoder = encoder
        if case .file = source.name { waitsForPeer = true } else { waitsForPeer = false }
        sender = RTPSender(payloadType: codec.payloadType, clockRate: codec.clockRate)
        keys = Self.makeKeySender(codec)
        timestampStep = Self.timestampStep(encoder, codec)
        clock = FrameClock(frameSamples: encoder.frameSamples)
        frame = Self.makeFrame(encoder)
        packet = .allocate(capacity: 1_500)
        packet.initialize(repeating: 0)
    }

    deinit {
        frame.deallocate()
        packet.deallocate()
    }

    private static func makeFrame(_ encoder: any FrameEncoder) -> UnsafeMutableBufferPointer<Int16> {
        let frame = UnsafeMutableBufferPointer<Int16>.allocate(capacity: encoder.frameSamples)
        frame.initialize(repeating: 0)
        return frame
    }

    private static func makeKeySender(_ codec: AudioCodec) -> TelephoneEventSender {
        TelephoneEventSender(clockRate: codec.clockRate, gap: .milliseconds(50))
    }

    private static func timestampStep(_ encoder: any FrameEncoder, _ codec: AudioCodec) -> UInt32 {
        UInt32(clamping: encoder.frameSamples * codec.clockRate / AudioFormat.sampleRate)
    }

    /// Goes on with another encoder. A codec with another clock is a new source (RFC 3550, section 5.2).
    func use(_ encoder: any FrameEncoder, codec: AudioCodec) {
        if codec.clockRate != sender.clockRate {
            sender = RTPSender(payloadType: codec.payloadType, clockRate: codec.clockRate)
            // Keys that wait were meant for the call and not for a clock.
            let waiting = keys.waitingKeys
            keys = Self.makeKeySender(codec)
            _ = send(keys: waiting)
        }
        self.encoder = encoder
        timestampStep = Self.timestampStep(encoder, codec)
        // The next frame is due when it was, then at the new pace.
        clock = FrameClock(frameSamples: encoder.frameSamples, next: clock.next)
        frame.deallocate()
        frame = Self.makeFrame(encoder)
        filled = 0
        isFirst = true
        sender.payloadType = codec.payloadType
    }

    /// The payload type may change while the codec stays.
    func setPayloadType(_ payloadType: UInt8) {
        sender.payloadType = payloadType
    }

    /// When the next frame is due, for a source that follows the timer; nil for hardware.
    var nextFrame: MonotonicTime? { source.readableFrames == nil ? clock.next : nil }

    var isExhausted: Bool { source.isExhausted }

    /// Leaves out the frames of a stall.
    func skip(_ duration: Duration) {
        guard source.readableFrames == nil, clock.next != nil else { return }
        clock.skip(duration)
        let milliseconds = duration.wholeNanoseconds / 1_000_000
        sender.skip(samples: UInt32(truncatingIfNeeded: milliseconds &* Int64(sender.clockRate) / 1_000))
        isFirst = true
    }

    /// Sends every frame that is due.
    ///
    /// - Parameters:
    ///   - isMuted: whether silence goes out instead of what is captured.
    ///   - hasPeer: whether the other side was heard, or will never be: only then does a file begin.
    ///   - isSending: whether anything goes out; when not, the source is still read, so that it keeps its pace.
    ///   - receiver: gets each packet and each frame.
    func process(at now: MonotonicTime, isMuted: Bool, hasPeer: Bool, isSending: Bool, receiver: MediaStream) {
        if source.readableFrames == nil {
            filled = 0
            for _ in 0..<clock.framesDue(at: now) {
                if waitsForPeer, !hasPeer { frame.update(repeating: 0) } else { source.read(into: frame) }
                send(at: now, isMuted: isMuted, isSending: isSending, receiver: receiver)
            }
        } else {
            while let readable = source.readableFrames, readable > 0 {
                let wanted = min(readable, frame.count - filled)
                source.read(into: UnsafeMutableBufferPointer(rebasing: frame[filled..<(filled + wanted)]))
                filled += wanted
                guard filled == frame.count else { continue }
                filled = 0
                send(at: now, isMuted: isMuted, isSending: isSending, receiver: receiver)
            }
        }
    }

    private func send(at now: MonotonicTime, isMuted: Bool, isSending: Bool, receiver: MediaStream) {
        let key = isSending ? nextKeyPacket() : nil
        // Nothing of what the microphone hears while muted or on hold may be sent or recorded; a key is sent alone.
        if isMuted || !isSending || key != nil { frame.update(repeating: 0) }
        level = Level.rootMeanSquare(UnsafeBufferPointer(frame))
        receiver.didSend(UnsafeBufferPointer(frame))
        guard isSending else {
            sender.skip(samples: timestampStep)
            isFirst = true
            return
        }
        if let key {
            send(key, at: now, receiver: receiver)
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
        receiver.transmit(UnsafeBufferPointer(rebasing: packet[0..<(RTPHeader.minimumLength + length)]), at: now)
    }

    // MARK: Keys

    /// Lets keys follow those that wait, each 100 ms long; false when they cannot be sent.
    func send(keys text: String) -> Bool {
        guard eventPayloadType != nil, keys.enqueue(text, duration: .milliseconds(100)) else { return false }
        hasUnreportedKeys = hasUnreportedKeys || !text.isEmpty
        return true
    }

    /// Whether the last of the keys has gone out since the last call.
    func takeKeysSent() -> Bool {
        guard hasUnreportedKeys, !keys.isActive else { return false }
        hasUnreportedKeys = false
        return true
    }

    private func nextKeyPacket() -> TelephoneEventSender.Packet? {
        guard eventPayloadType != nil else { return nil }
        return keys.tick(timestamp: sender.nextTimestamp, samples: timestampStep)
    }

    /// Sends an event's packet in the place of a frame (RFC 4733, section 2.5.1).
    private func send(_ key: TelephoneEventSender.Packet, at now: MonotonicTime, receiver: MediaStream) {
        guard let eventPayloadType else { return }
        let header = sender.header(payloadType: eventPayloadType, timestamp: key.timestamp, marker: key.marker)
        sender.skip(samples: timestampStep)
        isFirst = true
        var span = packet.mutableSpan
        _ = header.write(into: &span)
        var payload = UnsafeMutableBufferPointer(rebasing: packet[RTPHeader.minimumLength...]).mutableSpan
        let length = key.payload.write(into: &payload)
        sender.didSend(payloadBytes: length)
        bytesSent &+= UInt64(length)
        receiver.transmit(UnsafeBufferPointer(rebasing: packet[0..<(RTPHeader.minimumLength + length)]), at: now)
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
