import CSys
import Glibc
import Primitives
import SDP
import Synchronization

/// The one real-time thread on which all media of a client flows.
///
/// Streams, devices and codecs belong to this thread from `add` to `remove`. Other threads reach it only through
/// queued commands that wake it; it looks at that queue only when it was woken for it, so its steady state neither
/// locks nor allocates. It asks for SCHED_FIFO, and `scheduling` says what it got.
public final class MediaEngine: Sendable {
    /// How the thread is scheduled: what was asked for is not always granted.
    public enum Scheduling: Sendable, Equatable {
        /// SCHED_FIFO with this priority: other programs' load does not delay media.
        case realTime(priority: Int)
        /// The default time-sharing policy: under load packets may leave late.
        case timeSharing
    }

    /// How the media thread is scheduled.
    public let scheduling: Scheduling
    private let commands: CommandQueue

    /// Starts the thread.
    ///
    /// - Parameter name: the thread's name in `ps` and debuggers; the first 15 bytes are kept.
    public init(name: String = "sinch-media") throws(MediaError) {
        let wakeUp = csys_eventfd_create()
        let epoll = csys_epoll_create()
        guard wakeUp >= 0, epoll >= 0,
            csys_epoll_add(epoll, wakeUp, CSYS_EPOLL_IN, MediaThread.commandToken) >= 0
        else {
            if wakeUp >= 0 { Glibc.close(wakeUp) }
            if epoll >= 0 { Glibc.close(epoll) }
            throw MediaError(.system, "the media thread cannot be set up: is the limit of open files reached?")
        }
        commands = CommandQueue(descriptor: wakeUp)
        let start = ThreadStart(name: name, epoll: epoll, commands: commands)
        guard let scheduling = start.launch() else {
            Glibc.close(epoll)
            throw MediaError(.system, "the media thread cannot be started: is the limit of processes reached?")
        }
        self.scheduling = scheduling
    }

    deinit {
        commands.stop()
    }

    /// Ends the thread after what was asked of it before; streams that still run are closed.
    public func stop() {
        commands.stop()
    }

    /// Runs a closure on the media thread, soon. Not for the steady state: it allocates and locks.
    ///
    /// - Returns: false when the engine was stopped; the closure will not run then.
    @discardableResult
    func perform(_ command: @escaping @Sendable (MediaThread) -> Void) -> Bool {
        commands.append(command)
    }

    /// Starts a stream. Its devices must not be used by anyone else from here on.
    ///
    /// When the engine was stopped, the stream is closed at once.
    public func add(_ stream: MediaStream) {
        if !perform({ thread in thread.add(stream) }) { stream.discard() }
    }

    /// Stops a stream, says goodbye by RTCP and closes its devices; its sockets close when the owner lets go of it.
    ///
    /// - Parameter completion: gets the final statistics once recordings are complete on the disk, on a thread of its
    ///   own; all zero, and at once, when the engine was stopped.
    public func remove(_ stream: MediaStream, completion: @escaping @Sendable (MediaStatistics) -> Void) {
        let isQueued = perform { thread in
            let (statistics, wasRunning) = thread.remove(stream)
            Self.onWaitingThread {
                if wasRunning { stream.discard() }
                completion(statistics)
            }
        }
        if !isQueued { completion(MediaStatistics()) }
    }

    /// Starts a sound on local devices; when the engine was stopped, they are closed at once.
    public func add(_ playback: LocalPlayback) {
        if !perform({ thread in thread.add(playback) }) { playback.discard() }
    }

    /// Stops a sound and closes its devices.
    public func remove(_ playback: LocalPlayback) {
        perform { thread in
            if thread.remove(playback) { Self.onWaitingThread { playback.discard() } }
        }
    }

    /// Runs a closure where waiting for a disk or a sound server delays nobody's call.
    private static func onWaitingThread(_ work: @escaping @Sendable () -> Void) {
        let task = Unmanaged.passRetained(DetachedTask(work))
        var identifier = pthread_t()
        let status = pthread_create(
            &identifier, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<DetachedTask>.fromOpaque(context).takeRetainedValue().work()
                return nil
            }, task.toOpaque())
        guard status == 0 else {
            // No thread to be had: better a late packet than a device that stays open.
            task.takeRetainedValue().work()
            return
        }
        pthread_detach(identifier)
    }

    /// Reads a stream's statistics.
    ///
    /// - Parameter completion: gets them on the media thread, or at once (all zero) when the engine was stopped.
    public func statistics(of stream: MediaStream, completion: @escaping @Sendable (MediaStatistics) -> Void) {
        if !perform({ thread in completion(stream.snapshot(at: thread.now)) }) {
            completion(MediaStatistics())
        }
    }

    /// Mutes or unmutes what a stream sends; silence is sent instead, so that the other side sees a live stream.
    public func setMuted(_ muted: Bool, of stream: MediaStream) {
        perform { _ in stream.isMuted = muted }
    }

    /// Sends keys (`0`–`9`, `*`, `#`, `A`–`D`) as telephone events (RFC 4733), 100 ms each; `MediaEvent.keysSent` follows.
    ///
    /// - Parameter completion: gets on the media thread whether they will be sent: false when the peer takes none, a
    ///   character is no key, too many wait, or the engine was stopped.
    public func send(
        keys: String, of stream: MediaStream, completion: @escaping @Sendable (Bool) -> Void
    ) {
        if !perform({ _ in completion(stream.send(keys: keys)) }) { completion(false) }
    }

    /// Follows a new offer and answer within the call, the first answer included: hold, resume, another address.
    public func update(_ stream: MediaStream, to audio: NegotiatedAudio, phase: MediaStream.Phase = .talking) {
        perform { thread in stream.renegotiate(audio, phase: phase, at: thread.now) }
    }
}

/// A closure in the form that a thread's start takes.
private final class DetachedTask: Sendable {
    let work: @Sendable () -> Void

    init(_ work: @escaping @Sendable () -> Void) {
        self.work = work
    }
}

/// What the new thread is given, and what it reports back before `MediaEngine.init` returns.
private final class ThreadStart: Sendable {
    private static let unknown: Int32 = -1

    private let name: String
    private let epoll: Int32
    private let commands: CommandQueue
    /// The real-time priority that was granted, 0 for time-sharing.
    private let granted = Atomic<Int32>(ThreadStart.unknown)

    init(name: String, epoll: Int32, commands: CommandQueue) {
        self.name = name
        self.epoll = epoll
        self.commands = commands
    }

    /// Starts the thread and waits until it knows how it is scheduled.
    func launch() -> MediaEngine.Scheduling? {
        var identifier = pthread_t()
        let context = Unmanaged.passRetained(self)
        // The closure captures nothing and belongs to no actor: see the isolation trap of threads made in C.
        let status = pthread_create(
            &identifier, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<ThreadStart>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context.toOpaque())
        guard status == 0 else {
            context.release()
            return nil
        }
        pthread_detach(identifier)
        var priority = granted.load(ordering: .acquiring)
        while priority == Self.unknown {
            sched_yield()
            priority = granted.load(ordering: .acquiring)
        }
        return priority > 0 ? .realTime(priority: Int(priority)) : .timeSharing
    }

    private func run() {
        _ = csys_thread_set_name(name)
        // Above ordinary programs, below the kernel's own threads and what audio servers take.
        _ = csys_thread_set_fifo(10)
        granted.store(max(0, csys_thread_realtime_priority()), ordering: .releasing)
        let thread = MediaThread(epoll: epoll)
        while true {
            if thread.wait() {
                let (pending, isLast) = commands.take()
                for command in pending { command(thread) }
                if isLast { break }
            }
            thread.process()
        }
        thread.close()
    }
}
