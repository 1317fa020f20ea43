/// Records a call: left what was sent, right what was heard, on one time base.
///
/// Belongs to the media thread; disk I/O happens elsewhere (see `WAVWriter`).
public final class StereoRecorder: @unchecked Sendable {
    private let writer: WAVWriter

    /// Creates the file.
    ///
    /// - Throws: `.cannotCreate` when the file cannot be created.
    public init(path: String) throws(AudioError) {
        writer = try WAVWriter(path: path, channels: 2)
    }

    /// Appends one block of each direction, 48 kHz mono; the shorter side is filled up with silence.
    public func write(left: UnsafeBufferPointer<Int16>, right: UnsafeBufferPointer<Int16>) {
        writer.write(left: left, right: right)
    }

    /// Frames recorded and dropped so far.
    public var counters: AudioDeviceCounters { writer.counters }

    /// Why recording failed (e.g. the disk is full), once.
    public func takeFailure() -> AudioError? { writer.takeFailure() }

    /// Completes the file. Waits for the disk.
    public func stop() { writer.stop() }
}
