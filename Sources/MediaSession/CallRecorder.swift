import Audio

/// Brings both directions of a call onto one time base for a stereo recording: left what we sent, right what we heard.
///
/// The two sides advance in blocks of their own; what one is ahead waits for the other. When one side stops (a device
/// that was lost), the other goes on after 200 ms with silence beside it.
final class CallRecorder {
    private static let patience = AudioFormat.sampleRate / 5
    private let recorder: StereoRecorder
    private let sent: SampleLine
    private let heard: SampleLine

    init(_ recorder: StereoRecorder) {
        self.recorder = recorder
        sent = SampleLine(capacity: 2 * Self.patience)
        heard = SampleLine(capacity: 2 * Self.patience)
    }

    func appendSent(_ samples: UnsafeBufferPointer<Int16>) {
        sent.append(samples)
        flush()
    }

    func appendHeard(_ samples: UnsafeBufferPointer<Int16>) {
        heard.append(samples)
        flush()
    }

    private func flush() {
        if sent.count > Self.patience { heard.padSilence(to: sent.count) }
        if heard.count > Self.patience { sent.padSilence(to: heard.count) }
        let count = min(sent.count, heard.count)
        guard count > 0 else { return }
        recorder.write(left: sent.front(count), right: heard.front(count))
        sent.drop(count)
        heard.drop(count)
    }

    func stop() {
        let count = max(sent.count, heard.count)
        sent.padSilence(to: count)
        heard.padSilence(to: count)
        flush()
        recorder.stop()
    }
}

/// A short queue of samples in one piece of memory; allocates once.
private final class SampleLine {
    private let storage: UnsafeMutableBufferPointer<Int16>
    private(set) var count = 0

    init(capacity: Int) {
        storage = .allocate(capacity: capacity)
        storage.initialize(repeating: 0)
    }

    deinit {
        storage.deallocate()
    }

    func append(_ samples: UnsafeBufferPointer<Int16>) {
        let taken = min(samples.count, storage.count - count)
        for index in 0..<taken { storage[count + index] = samples[index] }
        count += taken
    }

    func padSilence(to length: Int) {
        let end = min(length, storage.count)
        while count < end {
            storage[count] = 0
            count += 1
        }
    }

    func front(_ length: Int) -> UnsafeBufferPointer<Int16> {
        UnsafeBufferPointer(rebasing: storage[0..<min(length, count)])
    }

    func drop(_ length: Int) {
        let dropped = min(length, count)
        for index in dropped..<count { storage[index - dropped] = storage[index] }
        count -= dropped
    }
}
