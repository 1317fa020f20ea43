import CSys
import Glibc
import Primitives

/// What TCP and Unix listeners have in common: accepting within limits, and living through a shortage of descriptors.
public class StreamListener: @unchecked Sendable {
    /// Limits of a listener and of the connections that it accepts.
    public struct Options: Sendable {
        /// More connections than this at a time are closed as soon as they come.
        public var maximumConnections = 1_024
        /// TCP only: the same for one remote address, so that one host cannot take all places.
        public var maximumConnectionsPerHost = 1_024
        /// How many finished handshakes the system keeps for us.
        public var backlog: Int32 = 511
        /// The options of each accepted connection.
        public var connection = StreamConnection.Options()

        /// The defaults.
        public init() {}
    }

    /// What happened so far.
    public struct Statistics: Sendable, Equatable {
        /// Connections handed to the owner.
        public var accepted: UInt64 = 0
        /// Connections closed at once because a limit was reached.
        public var overLimit: UInt64 = 0
        /// Unix only: connections closed at once because another user made them.
        public var untrusted: UInt64 = 0
        /// Connections closed because the process had no descriptor left.
        public var outOfDescriptors: UInt64 = 0
        /// Connections open now.
        public var open = 0
    }

    /// The loop that the listener and its connections live on.
    public let loop: EventLoop
    /// What happened so far. On the loop only.
    public private(set) var statistics = Statistics()
    /// Whether `close` was called.
    public private(set) var isClosed = false

    let descriptor: FileDescriptor
    let options: Options
    private var watch: WatchHandle?
    private var stopHook: UInt64?
    private var retry: TimerHandle?
    /// Given up for a moment when the process has no descriptor left, so that the waiting connection can be accepted
    /// and closed. Otherwise it would stay in the backlog and wake the loop for ever.
    private var reserve: FileDescriptor?

    /// At most so many connections a wake-up, then others have their turn.
    private static let batch = 32

    init(loop: EventLoop, descriptor: FileDescriptor, name: String, options: Options) throws(NetworkError) {
        loop.checkIsolated()
        self.loop = loop
        self.descriptor = descriptor
        self.options = options
        try NetworkError.check(
            listen(descriptor.number, options.backlog) == 0 ? 0 : 0 &- errno, "listen on \(name)",
            hint: "choose another address or port")
        reserve = Self.openReserve()
        watch = try loop.watch(fd: descriptor.number, events: .read) { [self] _ in acceptWaiting() }
        stopHook = loop.addStopHook { [self] in close() }
    }

    /// Stops accepting. Connections that were accepted stay open. On the loop only; a second call does nothing.
    public func close() {
        loop.checkIsolated()
        guard !isClosed else { return }
        isClosed = true
        watch?.cancel()
        watch = nil
        retry?.cancel()
        if let stopHook { loop.removeStopHook(stopHook) }
        willClose()
        descriptor.close()
        reserve = nil
    }

    // MARK: For subclasses

    /// Called before the descriptor is closed.
    func willClose() {}

    /// Takes over an accepted socket: makes a connection, or says why not.
    func admit(_ socket: FileDescriptor, _ storage: sockaddr_storage) -> Admission { .overLimit }

    /// Called when an admitted connection was released.
    func released(_ connection: StreamConnection) {}

    enum Admission {
        case admitted(StreamConnection, announce: () -> Void)
        case overLimit
        case untrusted
    }

    // MARK: Accepting

    private static func openReserve() -> FileDescriptor? {
        try? FileDescriptor(csys_open("/dev/null", O_RDONLY, 0), "open /dev/null")
    }

    private func acceptWaiting() {
        for _ in 0..<Self.batch where !isClosed {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let result = csys_accept(descriptor.number, &storage, &length)
            if result >= 0 {
                accepted(FileDescriptor(owning: result), storage)
                continue
            }
            switch NetworkError.errorNumber(result) {
            case EAGAIN: return
            case EMFILE, ENFILE: shedOne()
            case ENOBUFS, ENOMEM: return pause()
            default: continue  // The peer gave up in between (ECONNABORTED and kin): the next one.
            }
        }
    }

    private func accepted(_ socket: FileDescriptor, _ storage: sockaddr_storage) {
        guard statistics.open < options.maximumConnections else {
            statistics.overLimit &+= 1
            return
        }
        switch admit(socket, storage) {
        case .overLimit: statistics.overLimit &+= 1
        case .untrusted: statistics.untrusted &+= 1
        case .admitted(let connection, let announce):
            statistics.accepted &+= 1
            statistics.open += 1
            connection.onReleased = { [self, unowned connection] in
                statistics.open -= 1
                released(connection)
            }
            announce()
            connection.beginAccepted()
        }
    }

    /// Accepts one connection with the descriptor kept for this, and closes it.
    private func shedOne() {
        guard reserve != nil else { return pause() }
        reserve = nil
        let result = csys_accept(descriptor.number, nil, nil)
        if result >= 0 {
            FileDescriptor(owning: result).close()
            statistics.outOfDescriptors &+= 1
        }
        reserve = Self.openReserve()
        if result < 0, NetworkError.errorNumber(result) != EAGAIN { pause() }
    }

    /// Looks away for a moment: what is short now cannot be had by asking in a circle.
    private func pause() {
        guard retry == nil, !isClosed else { return }
        watch?.update(events: [])
        retry = loop.schedule(after: .milliseconds(100)) { [weak self] in
            guard let self, !isClosed else { return }
            retry = nil
            if reserve == nil { reserve = Self.openReserve() }
            watch?.update(events: .read)
        }
    }
}
