import CCares
import Glibc
import Primitives

/// One c-ares channel on an event loop: its sockets are watched and its time-outs run there. On the loop only.
///
/// What c-ares does: name servers and their order, sockets, ids and source ports, time-outs, the next server, TCP for
/// truncated answers, and dropping what does not belong to a question. It calls back from within its own functions, so
/// nothing of this class may be destroyed there.
final class AresChannel: @unchecked Sendable {
    // @unchecked: owned by a DNSClient and touched on its loop only.

    /// Gets the bytes of a name server's message, or c-ares's status when there is none.
    typealias Completion = (_ status: Int32, _ message: [UInt8]?) -> Void

    private final class Query {
        let completion: Completion
        init(_ completion: @escaping Completion) { self.completion = completion }
    }

    private let loop: EventLoop
    private var channel: ares_channel?
    private var watches: [Int32: WatchHandle] = [:]
    private var timer: TimerHandle?
    private var timerDeadline: MonotonicTime?

    /// The library's own state; never undone, as nobody knows who else uses it.
    private static let libraryStatus = ares_library_init(ARES_LIB_INIT_ALL)
    /// What a datagram may hold without being fragmented on the way (the value agreed on at DNS flag day 2020).
    private static let datagramBytes: Int32 = 1_232

    /// Reads the system's configuration, unless servers are given.
    init(loop: EventLoop, options wanted: DNSClient.Options) throws(NetworkError) {
        self.loop = loop
        try Self.check(Self.libraryStatus, "start the DNS library")
        var options = ares_options()
        // Names are complete unless `search` is asked for; HOSTALIASES of the environment is for terminals.
        options.flags = ARES_FLAG_NOALIASES | ARES_FLAG_EDNS
        options.ednspsz = Self.datagramBytes
        options.timeout = Int32(clamping: wanted.tryTimeout.wholeNanoseconds / 1_000_000)
        options.tries = Int32(clamping: wanted.tries)
        options.udp_port = wanted.port
        options.tcp_port = wanted.port
        options.sock_state_cb = { context, descriptor, isReading, isWriting in
            guard let context else { return }
            Unmanaged<AresChannel>.fromOpaque(context).takeUnretainedValue()
                .watch(descriptor, reading: isReading != 0, writing: isWriting != 0)
        }
        options.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
        let mask =
            ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_EDNSPSZ
            | ARES_OPT_RESOLVCONF | ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT
        // Given servers: nothing of the system's configuration shall matter.
        let status = (wanted.servers == nil ? wanted.resolverFile : "/dev/null").withCString { path in
            options.resolvconf_path = UnsafeMutablePointer(mutating: path)
            return ares_init_options(&channel, &options, mask)
        }
        try Self.check(status, "read the name servers' addresses from \(wanted.resolverFile)")
        if let servers = wanted.servers {
            let list = servers.map(\.description).joined(separator: ",")
            let status = ares_set_servers_ports_csv(channel, list)
            if status != ARES_SUCCESS { close() }
            try Self.check(status, "use the name servers \(list)")
        }
    }

    private static func check(_ status: Int32, _ action: String) throws(NetworkError) {
        guard status != ARES_SUCCESS else { return }
        throw NetworkError(.nameServerFailed, "cannot \(action): \(text(status))")
    }

    /// c-ares's words for a status.
    static func text(_ status: Int32) -> String {
        ares_strerror(status).map { String(cString: $0) } ?? "error \(status)"
    }

    /// Asks for records; the name must be valid. `completion` may be called before this returns.
    ///
    /// - Parameter search: whether the system's search list applies to the name.
    func ask(_ name: String, type: UInt16, search: Bool, _ completion: @escaping Completion) {
        guard let channel else {
            completion(ARES_EDESTRUCTION, nil)
            return
        }
        let callback: ares_callback = { context, status, _, bytes, length in
            guard let context else { return }
            let query = Unmanaged<Query>.fromOpaque(context).takeRetainedValue()
            let message = bytes.map { Array(UnsafeBufferPointer(start: $0, count: max(0, Int(length)))) }
            query.completion(status, message)
        }
        let context = Unmanaged.passRetained(Query(completion)).toOpaque()
        let classInternet: Int32 = 1
        if search {
            ares_search(channel, name, classInternet, Int32(type), callback, context)
        } else {
            ares_query(channel, name, classInternet, Int32(type), callback, context)
        }
        arm()
    }

    /// Ends all questions with `ARES_EDESTRUCTION` and closes all sockets. Not from within a completion.
    func close() {
        guard let old = channel else { return }
        channel = nil
        ares_destroy(old)
        timer?.cancel()
        timer = nil
        for (_, watch) in watches { watch.cancel() }
        watches = [:]
    }

    // MARK: Sockets and time

    /// c-ares opened a socket, waits for something else on it, or is about to close it.
    private func watch(_ descriptor: Int32, reading: Bool, writing: Bool) {
        var events: IOEvents = []
        if reading { events.insert(.read) }
        if writing { events.insert(.write) }
        if events.isEmpty {
            watches.removeValue(forKey: descriptor)?.cancel()
        } else if let watch = watches[descriptor] {
            watch.update(events: events)
        } else {
            // Without a watch (out of memory, loop stopped) the question ends by its time-out.
            watches[descriptor] = try? loop.watch(fd: descriptor, events: events) { [weak self] ready in
                self?.process(descriptor, ready)
            }
        }
    }

    private func process(_ descriptor: Int32, _ ready: IOEvents) {
        guard let channel else { return }
        // An error is read like data: c-ares finds it when it tries.
        let isReadable = !ready.isDisjoint(with: [.read, .error, .hangUp])
        let isWritable = ready.contains(.write)
        ares_process_fd(channel, isReadable ? descriptor : ARES_SOCKET_BAD, isWritable ? descriptor : ARES_SOCKET_BAD)
        arm()
    }

    /// Sets the timer to when c-ares wants to be called next.
    private func arm() {
        guard let channel else { return }
        var time = timeval()
        guard ares_timeout(channel, nil, &time) != nil else {
            timer?.cancel()
            timer = nil
            return
        }
        // A little later than asked, as c-ares counts in microseconds and would find nothing to do.
        let delay = Duration.seconds(time.tv_sec) + .microseconds(Int64(time.tv_usec) + 100)
        timer?.cancel()
        timer = loop.schedule(after: delay) { [weak self] in
            guard let self, let channel = self.channel else { return }
            ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD)
            self.arm()
        }
    }
}
