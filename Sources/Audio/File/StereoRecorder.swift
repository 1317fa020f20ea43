/// Records a call: left what was sent, right what was heard, on one time base.
///
/// Belongs to the media thread and does not allocate after `init`; disk I/O happens elsewhere (see `WAVWriter`).
/// Either give both directions at once (`write(left:right:)`), or each when it comes (`appendLeft`, `appendRight`):
/// the two sides may follow the clocks of different devices. A side that falls more than 100 ms behind (its device
/// stands still, the call is on hold) is filled up with silence, so that the other one goes on.
public final class StereoRecorder: @unchecked Sendable {
    /// How far one side may be ahead of the other, in frames: 100 ms.
    public static let maximumLead = 10 * AudioFormat.blockFrames

    private let writer: WAVWriter
    private var left = SampleRing(capacity: StereoRecorder.maximumLead + AudioFormat.blockFrames)
    private var right = SampleRing(capacity: StereoRecorder.maximumLead + AudioFormat.blockFrames)
    private let leftBlock: UnsafeMutableBufferPointer<Int16>
    private let rightBlock: UnsafeMutableBufferPointer<Int16>

    /// Creates the file.
    ///
    /// - Throws: `.cannotCreate` when the file cannot be created.
    public init(path: String) throws(AudioError) {
        writer = try WAVWriter(path: path, channels: 2)
        leftBlock = .allocate(capacity: AudioFormat.blockFrames)
        rightBlock = .allocate(capacity: AudioFormat.blockFrames)
        leftBlock.initialize(repeating: 0)
        rightBlock.initialize(repeating: 0)
    }

    deinit {
        leftBlock.deallocate()
        rightBlock.deallocate()
    }

    /// Appends one block of each direction, 48 kHz mono; the shorter side is filled up with silence.
    public func write(left: UnsafeBufferPointer<Int16>, right: UnsafeBufferPointer<Int16>) {
        writer.write(left: left, right: right)
    }

    /// Appends what was sent, 48 kHz mono.
    public func appendLeft(_ samples: UnsafeBufferPointer<Int16>) {
        var rest = samples
        while rest.count > 0 {
            let block = UnsafeBufferPointer(rebasing: rest.prefix(AudioFormat.blockFrames))
            rest = UnsafeBufferPointer(rebasing: rest.dropFirst(block.count))
            _ = left.write(block)
            flush(lead: Self.maximumLead)
        }
    }

    /// Appends what was heard, 48 kHz mono.
    public func appendRight(_ samples: UnsafeBufferPointer<Int16>) {
        var rest = samples
        while rest.count > 0 {
            let block = UnsafeBufferPointer(rebasing: rest.prefix(AudioFormat.blockFrames))
            rest = UnsafeBufferPointer(rebasing: rest.dropFirst(block.count))
            _ = right.write(block)
            flush(lead: Self.maximumLead)
        }
    }

    /// Frames recorded and dropped so far.
    public var counters: AudioDeviceCounters { writer.counters }

    /// Why recording failed (e.g. the disk is full), once.
    public func takeFailure() -> AudioError? { writer.takeFailure() }

    /// Completes the file. Waits for the disk.
    public func stop() {
        flush(lead: 0)
        writer.stop()
    }

    /// Writes what both sides have, and what one side has beyond the lead that it may have.
    private func flush(lead: Int) {
        while true {
            let both = min(left.count, right.count)
            let frames = min(both > 0 ? both : max(left.count, right.count) - lead, AudioFormat.blockFrames)
            guard frames > 0 else { return }
            let leftPart = UnsafeMutableBufferPointer(rebasing: leftBlock[0..<frames])
            let rightPart = UnsafeMutableBufferPointer(rebasing: rightBlock[0..<frames])
            leftPart.silence(from: left.read(into: leftPart))
            rightPart.silence(from: right.read(into: rightPart))
            writer.write(left: UnsafeBufferPointer(leftPart), right: UnsafeBufferPointer(rightPart))
        }
    }
}
