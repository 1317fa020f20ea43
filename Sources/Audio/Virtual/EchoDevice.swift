/// A pair of devices that returns to the caller what it hears: what is written to `sink` is read from `source`.
///
/// Both halves belong to the same media thread. The delay between them is what the thread leaves between writing and
/// reading, and never more than 60 ms: older audio is dropped, and counted at the sink.
public final class EchoDevice: @unchecked Sendable {
    /// The half to read from.
    public let source: any AudioSource
    /// The half to write to.
    public let sink: any AudioSink

    /// Creates an empty pair.
    public init() {
        let queue = EchoQueue()
        source = EchoSource(queue: queue)
        sink = EchoSink(queue: queue)
    }
}

/// What both halves share.
private final class EchoQueue: @unchecked Sendable {
    var ring = SampleRing(capacity: 6 * AudioFormat.blockFrames)
}

private final class EchoSource: AudioSource, @unchecked Sendable {
    let name = AudioDeviceName.echo
    private(set) var counters = AudioDeviceCounters()
    private let queue: EchoQueue

    init(queue: EchoQueue) {
        self.queue = queue
    }

    func start() { counters = AudioDeviceCounters() }

    func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead {
        let frames = queue.ring.read(into: buffer)
        buffer.silence(from: frames)
        counters.frames &+= UInt64(frames)
        return AudioRead(frames: frames)
    }

    func stop() { queue.ring.removeAll() }
}

private final class EchoSink: AudioSink, @unchecked Sendable {
    let name = AudioDeviceName.echo
    private(set) var counters = AudioDeviceCounters()
    private let queue: EchoQueue

    init(queue: EchoQueue) {
        self.queue = queue
    }

    func start() { counters = AudioDeviceCounters() }

    func write(_ buffer: UnsafeBufferPointer<Int16>) {
        let dropped = queue.ring.write(buffer)
        counters.frames &+= UInt64(buffer.count)
        counters.droppedFrames &+= UInt64(dropped)
    }

    func stop() { queue.ring.removeAll() }
}
