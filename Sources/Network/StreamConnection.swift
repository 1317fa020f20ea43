import CSys
import Glibc
import Primitives

/// What TCP and Unix connections have in common: a non-blocking stream socket with a bounded send queue, time-outs and
/// an orderly end. See `ByteStream` for the rules about handlers and threads.
public class StreamConnection: ByteStream, @unchecked Sendable {
    /// Limits of one connection.
    public struct Options: Sendable {
        /// How many bytes may wait in the send queue; beyond, the peer is taken for dead and the connection is closed.
        public var sendQueueLimit = 1 << 20
        /// Close with `.timedOut` when nothing was received for this long; nil: never.
        public var idleTimeout: Duration?
        /// How long an orderly close may take to send the queue and to see the peer's end.
        public var closeTimeout: Duration = .seconds(2)
        /// TCP only: silence in seconds before keep-alive probes start (10 s apart, 3 of them).
        public var keepAliveIdleSeconds: Int32 = 30
        /// TCP only: how long sent bytes may stay unacknowledged. When it is shorter than the silence and the probes
        /// together (60 s), the system gives an idle connection up after fewer probes.
        public var unacknowledgedLimit: Duration = .seconds(60)

        /// The defaults.
        public init() {}
    }

    /// Where the connection is in its life.
    public enum State: Sendable, Equatable {
        /// Under way; `onOpen` or `onClose` follows.
        case connecting
        /// Bytes flow.
        case open
        /// `close` was called: the rest of the queue is being sent.
        case closing
        /// Over; `onClose` was called or is about to be.
        case closed
    }

    /// The loop that the connection lives on.
    public let loop: EventLoop
    /// Where the connection is in its life.
    public private(set) var state: State
    /// This side's address; nil before the connection is open, and for Unix sockets.
    public private(set) var localAddress: TransportAddress?
    /// The peer's address; nil for Unix sockets.
    public let remoteAddress: TransportAddress?
    /// Called once when bytes can flow; for an accepted connection after `onConnection` returned.
    public var onOpen: (@Sendable () -> Void)?
    /// Called with what arrived, at most 64 KiB at a time.
    public var onData: (@Sendable ([UInt8]) -> Void)?
    /// Called once, last: nil for an orderly end, else why the connection broke or never opened.
    public var onClose: (@Sendable (NetworkError?) -> Void)?
    /// Called when the peer will send no more (it closed, or shut its sending side) while our side may still answer:
    /// the owner then calls `close`. Without this handler the connection closes by itself, after sending the queue.
    public var onEnd: (@Sendable () -> Void)?
    /// Called when the send queue became empty after it was not: the moment to go on sending.
    public var onDrain: (@Sendable () -> Void)?
    /// Bytes received and sent so far.
    public private(set) var bytesReceived: UInt64 = 0
    /// Bytes that the system took so far.
    public private(set) var bytesSent: UInt64 = 0

    /// Close with `.timedOut` when nothing was received for this long; nil: never. May be changed at any time.
    public var idleTimeout: Duration? {
        didSet {
            lastActivity = loop.now
            armIdleTimer()
        }
    }

    let descriptor: FileDescriptor
    /// What error messages call the peer.
    let peerName: String
    /// Told once when the descriptor is closed; a listener counts its connections with it.
    var onReleased: (@Sendable () -> Void)?

    private let options: Options
    private var queue = SendQueue()
    private var watch: WatchHandle?
    private var interest: IOEvents = []
    private var stopHook: UInt64?
    private var phaseTimer: TimerHandle?
    private var idleTimer: TimerHandle?
    private var lastActivity: MonotonicTime
    private var sawEnd = false
    private var didShutDown = false
    private var isReadingPaused = false
    /// The descriptor left the epoll set while reading is paused.
    private var isSuspended = false

    /// Takes a connected socket, or one that is connecting with a time limit, or a connection that failed at once.
    init(
        loop: EventLoop, descriptor: FileDescriptor, peerName: String, remoteAddress: TransportAddress?,
        options: Options, connectTimeout: Duration?
    ) {
        loop.checkIsolated()
        self.loop = loop
        self.descriptor = descriptor
        self.peerName = peerName
        self.remoteAddress = remoteAddress
        self.options = options
        state = .connecting
        lastActivity = loop.now
        idleTimeout = options.idleTimeout
        // This, too, keeps the connection alive until it is closed, whether its owner holds it or not.
        stopHook = loop.addStopHook { [self] in finish(NetworkError(.closed, "the event loop was stopped")) }
        if let connectTimeout {
            phaseTimer = loop.schedule(after: connectTimeout) { [weak self] in
                guard let self else { return }
                finish(NetworkError(.timedOut, "cannot connect to \(self.peerName): no answer in \(connectTimeout)"))
            }
        }
    }

    // MARK: For the owner

    /// Queues bytes in order; see `ByteStream`.
    @discardableResult
    public func send(_ bytes: [UInt8]) -> Bool {
        loop.checkIsolated()
        guard state == .open || state == .connecting else { return false }
        guard queue.byteCount + bytes.count <= options.sendQueueLimit else {
            finish(
                NetworkError(
                    .sendQueueFull,
                    "closed the connection to \(peerName): it does not read, \(queue.byteCount) bytes are waiting"))
            return false
        }
        let wasEmpty = queue.isEmpty
        queue.append(bytes)
        if wasEmpty, state == .open { flush() }
        return state != .closed
    }

    /// Bytes accepted by `send` that the system has not taken yet.
    public var queuedBytes: Int { queue.byteCount }

    /// Sends what is queued, then ends the stream: `onClose(nil)` follows when the peer has seen the end, or after the
    /// close time limit. A second call does nothing.
    public func close() {
        loop.checkIsolated()
        switch state {
        case .connecting:
            finish(nil)
        case .open:
            state = .closing
            isReadingPaused = false
            idleTimer?.cancel()
            phaseTimer = loop.schedule(after: options.closeTimeout) { [weak self] in self?.finish(nil) }
            flush()
        case .closing, .closed:
            return
        }
    }

    /// Ends the stream at once; over TCP the peer sees a reset. `onClose` gets `error`.
    public func abort(_ error: NetworkError? = nil) {
        loop.checkIsolated()
        guard state != .closed else { return }
        resetOnClose()
        finish(error)
    }

    /// Stops reading, so that the peer's sending is held up; the system's buffers fill and its window closes.
    public func pauseReading() {
        loop.checkIsolated()
        isReadingPaused = true
        updateInterest()
    }

    /// Reads again.
    public func resumeReading() {
        loop.checkIsolated()
        guard isReadingPaused else { return }
        isReadingPaused = false
        lastActivity = loop.now
        updateInterest()
    }

    // MARK: For subclasses and listeners

    /// Makes the next close of the descriptor a reset, where the transport knows such a thing.
    func resetOnClose() {}

    /// Called when the socket is connected; may refuse the peer.
    func verifyPeer() throws(NetworkError) {}

    /// Starts waiting for the connection that the system makes.
    func beginConnecting(_ result: Int32) {
        let number = result < 0 ? NetworkError.errorNumber(result) : 0
        if number == EAGAIN {
            // Only Unix sockets say this.
            finish(
                NetworkError(
                    .limitReached, "cannot connect to \(peerName): too many connections wait there; try again"))
        } else if number != 0, number != EINPROGRESS {
            finish(NetworkError(errno: number, "connect to \(peerName)"))
        } else {
            startWatching(.write)
        }
    }

    /// Starts a connection that a listener accepted, after the owner has set its handlers.
    func beginAccepted() {
        guard state == .connecting else { return }
        becomeOpen()
        if state == .open { startWatching(.read) }
    }

    private func startWatching(_ events: IOEvents) {
        do {
            interest = events
            watch = try loop.watch(fd: descriptor.number, events: events) { [self] in handle($0) }
        } catch {
            finish(error)
        }
    }

    /// Ends the connection. Runs at most once; the owner hears of it after the current call returned.
    func finish(_ error: NetworkError?) {
        guard state != .closed else { return }
        state = .closed
        watch?.cancel()
        watch = nil
        phaseTimer?.cancel()
        idleTimer?.cancel()
        if let stopHook { loop.removeStopHook(stopHook) }
        descriptor.close()
        queue = SendQueue()
        onReleased?()
        onReleased = nil
        loop.execute { [self] in
            let handler = onClose
            (onOpen, onData, onClose, onEnd, onDrain) = (nil, nil, nil, nil, nil)
            handler?(error)
        }
    }

    // MARK: Events

    private func handle(_ events: IOEvents) {
        if state == .connecting {
            finishConnecting()
            return
        }
        if events.contains(.write) { flush(fromLoop: true) }
        if state == .closed { return }
        if !events.isDisjoint(with: [.read, .hangUp, .error]) {
            if sawEnd {
                // Both directions are over, or an error is pending: nothing can follow.
                if !events.isDisjoint(with: [.hangUp, .error]) { finish(pendingError()) }
            } else if isReadingPaused {
                // These two cannot be masked: leave the set until the owner reads again, then all comes in order.
                watch?.cancel()
                watch = nil
                isSuspended = true
            } else {
                receive()
            }
        }
    }

    private func pendingError() -> NetworkError? {
        let number = csys_socket_error(descriptor.number)
        // After an orderly close a reset has nothing left to break.
        if number == 0 || state == .closing && queue.isEmpty { return nil }
        return NetworkError(errno: number, "go on with \(peerName)")
    }

    private func finishConnecting() {
        let number = csys_socket_error(descriptor.number)
        if number != 0 {
            finish(NetworkError(errno: number, "connect to \(peerName)"))
            return
        }
        phaseTimer?.cancel()
        phaseTimer = nil
        becomeOpen()
        if state == .open { updateInterest() }
    }

    private func becomeOpen() {
        if let remote = remoteAddress {
            let local = try? descriptor.localSocketAddress().transportAddress
            // With both ends on this machine a connect to a free port in the ephemeral range can meet itself.
            if local == remote {
                finish(NetworkError(.connectionRefused, "cannot connect to \(peerName): nobody listens there"))
                return
            }
            localAddress = local
        }
        do {
            try verifyPeer()
        } catch {
            finish(error)
            return
        }
        state = .open
        lastActivity = loop.now
        armIdleTimer()
        onOpen?()
        if state == .open, !queue.isEmpty { flush() }
    }

    /// One read a wake-up: whoever sends much waits its turn like all others.
    private func receive() {
        let count = csys_recv(descriptor.number, loop.scratch.baseAddress, loop.scratch.count)
        if count > 0 {
            lastActivity = loop.now
            bytesReceived &+= UInt64(count)
            // Data that comes after our close is read only to let the peer see an orderly end.
            if state == .open { onData?([UInt8](UnsafeRawBufferPointer(rebasing: loop.scratch[..<count]))) }
        } else if count == 0 {
            sawEnd = true
            if state == .closing {
                flush()
            } else if let onEnd {
                updateInterest()
                onEnd()
            } else {
                close()
            }
        } else {
            let number = NetworkError.errorNumber(count)
            if number == EAGAIN || number == EINTR { return }
            if state == .closing, queue.isEmpty {
                finish(nil)
            } else {
                finish(NetworkError(errno: number, "read from \(peerName)"))
            }
        }
    }

    /// Gives the queue to the system as far as it goes, and moves an orderly close on.
    private func flush(fromLoop: Bool = false) {
        let hadBytes = !queue.isEmpty
        while !queue.isEmpty {
            let result = queue.withFirstBytes { csys_send(descriptor.number, $0.baseAddress, $0.count) }
            if result >= 0 {
                queue.consume(result)
                bytesSent &+= UInt64(result)
                continue
            }
            let number = NetworkError.errorNumber(result)
            if number == EINTR { continue }
            if number == EAGAIN { break }
            finish(NetworkError(errno: number, "send to \(peerName)"))
            return
        }
        if queue.isEmpty, state == .closing {
            if sawEnd {
                finish(nil)
                return
            }
            if !didShutDown {
                didShutDown = true
                _ = shutdown(descriptor.number, Int32(SHUT_WR))
            }
        }
        updateInterest()
        if fromLoop, hadBytes, queue.isEmpty { onDrain?() }
    }

    private func updateInterest() {
        guard state == .open || state == .closing else { return }
        var events: IOEvents = []
        if !sawEnd, !isReadingPaused { events.insert(.read) }
        if !queue.isEmpty { events.insert(.write) }
        if isSuspended {
            guard !events.isEmpty else { return }
            isSuspended = false
            startWatching(events)
        } else if events != interest {
            interest = events
            watch?.update(events: events)
        }
    }

    // MARK: Idle time-out

    private func armIdleTimer() {
        idleTimer?.cancel()
        idleTimer = nil
        guard let idleTimeout, state == .open else { return }
        idleTimer = loop.schedule(at: lastActivity + idleTimeout) { [weak self] in self?.checkIdle() }
    }

    /// Activity only notes the time; the timer that fires early is set again, so traffic does not touch the heap.
    private func checkIdle() {
        guard let idleTimeout, state == .open else { return }
        if loop.now - lastActivity < idleTimeout {
            armIdleTimer()
        } else {
            finish(NetworkError(.timedOut, "closed the connection to \(peerName): nothing received in \(idleTimeout)"))
        }
    }
}
