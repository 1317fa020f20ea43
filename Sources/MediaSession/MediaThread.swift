import CSys
import Glibc
import Primitives

/// Something that the media thread keeps going: a call's stream, a sound that is played.
protocol MediaWork: AnyObject {
    /// Does what is due; returns when to be called again.
    func process(at now: MonotonicTime) -> MonotonicTime
    /// The thread has let go of it; called on a thread that may wait for devices.
    func discard()
}

/// What runs on the media thread: waits for packets or the next frame, and moves every stream on.
final class MediaThread {
    /// What the command queue's descriptor is registered with; streams have tokens above it.
    static let commandToken: UInt64 = 0

    private let epoll: Int32
    private var streams: [MediaStream] = []
    private var others: [any MediaWork] = []
    private var nextToken: UInt64 = 1
    private let events: UnsafeMutableBufferPointer<csys_epoll_event>
    private var ready = 0
    private var deadline: MonotonicTime?

    init(epoll: Int32) {
        self.epoll = epoll
        events = .allocate(capacity: 64)
        events.initialize(repeating: csys_epoll_event())
    }

    deinit {
        events.deallocate()
    }

    var now: MonotonicTime { MonotonicTime(nanoseconds: csys_monotonic_now()) }

    /// Sleeps until a packet, a command or the next deadline; true when there are commands.
    func wait() -> Bool {
        let timeout = deadline.map { max(0, ($0 - now).wholeNanoseconds) } ?? -1
        ready = max(0, Int(csys_epoll_wait(epoll, events.baseAddress, Int32(events.count), timeout)))
        var hasCommands = false
        for index in 0..<ready where events[index].token == Self.commandToken { hasCommands = true }
        return hasCommands
    }

    /// Receives what has arrived and does what is due.
    func process() {
        for index in 0..<ready {
            let token = events[index].token
            for stream in streams where stream.token == token || stream.token == token &- 1 {
                stream.receive(isControl: stream.token != token, at: now)
            }
        }
        ready = 0
        let now = now
        var earliest = MonotonicTime.distantFuture
        for stream in streams {
            // A packet that woke the thread is no reason to look at every stream.
            if stream.due <= now { stream.due = stream.process(at: now) }
            if stream.due < earliest { earliest = stream.due }
        }
        for work in others {
            let next = work.process(at: now)
            if next < earliest { earliest = next }
        }
        deadline = streams.isEmpty && others.isEmpty ? nil : earliest
    }

    func add(_ stream: MediaStream) {
        stream.token = nextToken
        // Two tokens a stream: RTP and RTCP.
        nextToken &+= 2
        _ = csys_epoll_add(epoll, stream.port.rtp, CSYS_EPOLL_IN, stream.token)
        _ = csys_epoll_add(epoll, stream.port.rtcp, CSYS_EPOLL_IN, stream.token &+ 1)
        streams.append(stream)
        stream.begin(at: now)
    }

    /// Takes a stream off the thread.
    ///
    /// - Returns: its final statistics, and whether it was there: then its devices are still to be closed.
    func remove(_ stream: MediaStream) -> (statistics: MediaStatistics, wasRunning: Bool) {
        let index = streams.firstIndex { $0 === stream }
        if let index {
            streams.remove(at: index)
            _ = csys_epoll_remove(epoll, stream.port.rtp)
            _ = csys_epoll_remove(epoll, stream.port.rtcp)
            stream.finish(at: now)
        }
        return (stream.snapshot(at: now), index != nil)
    }

    func add(_ work: any MediaWork) {
        others.append(work)
    }

    /// Takes a sound off the thread; false when it was not there.
    func remove(_ work: any MediaWork) -> Bool {
        guard let index = others.firstIndex(where: { $0 === work }) else { return false }
        others.remove(at: index)
        return true
    }

    /// Ends everything that still runs.
    func close() {
        for work in others where remove(work) { work.discard() }
        for stream in streams {
            _ = remove(stream)
            stream.discard()
        }
        Glibc.close(epoll)
    }
}
