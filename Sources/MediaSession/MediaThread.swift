import CSys
import Glibc
import Primitives

/// Something that the media thread keeps going: a call's stream, a sound that is played.
protocol MediaWork: AnyObject {
    /// Does what is due; returns when to be called again.
    func process(at now: MonotonicTime) -> MonotonicTime
    /// Closes what it works with, once the thread has let go of it; may block.
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
        var earliest: MonotonicTime?
        for stream in streams {
            let next = stream.process(at: now)
            if next < earliest ?? .distantFuture { earliest = next }
        }
        for work in others {
            let next = work.process(at: now)
            if next < earliest ?? .distantFuture { earliest = next }
        }
        deadline = earliest
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

    func remove(_ stream: MediaStream) -> MediaStatistics {
        let statistics = stream.snapshot(at: now)
        guard let index = streams.firstIndex(where: { $0 === stream }) else { return statistics }
        streams.remove(at: index)
        _ = csys_epoll_remove(epoll, stream.port.rtp)
        _ = csys_epoll_remove(epoll, stream.port.rtcp)
        stream.finish(at: now)
        return statistics
    }

    func add(_ work: any MediaWork) {
        others.append(work)
    }

    func remove(_ work: any MediaWork) {
        guard let index = others.firstIndex(where: { $0 === work }) else { return }
        others.remove(at: index)
    }

    func close() {
        // The thread's last act keeps nobody waiting, so devices may be closed here.
        for work in others {
            remove(work)
            work.discard()
        }
        for stream in streams {
            _ = remove(stream)
            stream.discard()
        }
        Glibc.close(epoll)
    }
}
