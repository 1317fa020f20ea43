import Audio
import Primitives

/// A sound that is played on this side only: a ringtone, a ringback tone. Its devices must be started.
public final class LocalPlayback: MediaWork, @unchecked Sendable {
    // @unchecked: handed over to the media thread by `MediaEngine.add`, and touched there alone from then on.
    private let source: any AudioSource
    private let sink: any AudioSink
    private var clock = BlockClock()
    private let block: UnsafeMutableBufferPointer<Int16>

    /// Creates a sound from what makes it and where it is heard.
    public init(source: any AudioSource, sink: any AudioSink) {
        self.source = source
        self.sink = sink
        block = .allocate(capacity: AudioFormat.blockFrames)
        block.initialize(repeating: 0)
    }

    deinit {
        block.deallocate()
    }

    /// Gives up a sound that no engine plays. Closes its devices, which may wait for the disk.
    public func discard() {
        source.stop()
        sink.stop()
    }

    func process(at now: MonotonicTime) -> MonotonicTime {
        source.service(at: now)
        sink.service(at: now)
        var due = clock.blocksDue(at: now)
        while (sink.writableFrames ?? due * block.count) >= block.count {
            due -= 1
            source.read(into: block)
            sink.write(UnsafeBufferPointer(block))
        }
        sink.service(at: now)
        return clock.nextBlock ?? now + BlockClock.blockDuration
    }
}
