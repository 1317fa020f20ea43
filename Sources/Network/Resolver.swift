import CSys
import Glibc
import Primitives

/// Finds the addresses of host names with the system's resolver (getaddrinfo: hosts file, DNS, whatever nsswitch.conf
/// says), each look-up on a thread of its own, as getaddrinfo blocks and cannot be cancelled.
public final class Resolver: Sendable {
    typealias LookUp = @Sendable (_ host: String, _ port: UInt16) -> Result<[TransportAddress], NetworkError>

    private let lookUp: LookUp
    private let loop: EventLoop
    private let timeLimit: Duration
    private let maximumLookups: Int
    /// Threads that are inside getaddrinfo now, also those whose caller gave up.
    private let running = Locked(0)

    /// - Parameters:
    ///   - loop: where time limits run and callbacks are called.
    ///   - timeLimit: for one look-up.
    ///   - maximumLookups: how many threads may look up at a time.
    public convenience init(loop: EventLoop, timeLimit: Duration = .seconds(5), maximumLookups: Int = 16) {
        self.init(loop: loop, timeLimit: timeLimit, maximumLookups: maximumLookups, lookUp: Self.systemLookUp)
    }

    /// With another look-up than the system's, for tests; it may block.
    init(loop: EventLoop, timeLimit: Duration, maximumLookups: Int, lookUp: @escaping LookUp) {
        self.lookUp = lookUp
        self.loop = loop
        self.timeLimit = timeLimit
        self.maximumLookups = maximumLookups
    }

    /// The addresses of `host`, in the order in which to try them, without repetition. From any thread.
    ///
    /// Numeric addresses (IPv6 with or without brackets) and `localhost` (RFC 6761: 127.0.0.1, then ::1) are answered
    /// without asking anybody. Throws `.nameNotFound`, `.nameServerFailed`, `.timedOut`, `.limitReached`.
    public func resolve(host: String, port: UInt16) async throws -> [TransportAddress] {
        if let known = Self.knownAddresses(host: host, port: port) { return known }
        return try await withCheckedThrowingContinuation { continuation in
            resolve(host: host, port: port) { continuation.resume(with: $0) }
        }
    }

    /// The same with a callback, which is called on the loop, once, and never from within this call.
    public func resolve(
        host: String, port: UInt16,
        _ completion: @escaping @Sendable (Result<[TransportAddress], NetworkError>) -> Void
    ) {
        if let known = Self.knownAddresses(host: host, port: port) {
            loop.execute { completion(.success(known)) }
            return
        }
        loop.execute { [self] in startLookup(host: host, port: port, completion) }
    }

    /// The addresses that need no look-up; nil for all other names.
    static func knownAddresses(host: String, port: UInt16) -> [TransportAddress]? {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        if let numeric = SocketAddress(numeric: bare, port: port) { return [numeric.transportAddress] }
        var name = host.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        guard name == "localhost" || name.hasSuffix(".localhost") else { return nil }
        return [TransportAddress(host: "127.0.0.1", port: port), TransportAddress(host: "::1", port: port)]
    }

    private func startLookup(
        host: String, port: UInt16,
        _ completion: @escaping @Sendable (Result<[TransportAddress], NetworkError>) -> Void
    ) {
        guard !host.isEmpty, host.utf8.count <= 253, !host.utf8.contains(where: { $0 <= 32 || $0 == 127 }) else {
            completion(.failure(NetworkError(.nameNotFound, "\"\(host.prefix(64))\" is not a host name")))
            return
        }
        let isAllowed = running.withLock { count in
            guard count < maximumLookups else { return false }
            count += 1
            return true
        }
        guard isAllowed else {
            completion(
                .failure(NetworkError(.limitReached, "cannot look up \(host): \(maximumLookups) look-ups are running")))
            return
        }
        let answer = SingleAnswer(completion)
        let limit = loop.schedule(after: timeLimit) { [timeLimit] in
            answer.give(
                .failure(
                    NetworkError(
                        .timedOut, "cannot look up \(host): no answer in \(timeLimit); check the name servers")))
        }
        do {
            try SystemThread.start(name: "resolver") { [self] in
                let result = lookUp(host, port)
                running.withLock { $0 -= 1 }
                loop.execute {
                    limit.cancel()
                    answer.give(result)
                }
            }
        } catch {
            running.withLock { $0 -= 1 }
            limit.cancel()
            answer.give(.failure(error))
        }
    }

    /// Whoever comes first answers. On the loop only.
    private final class SingleAnswer: @unchecked Sendable {
        private var completion: (@Sendable (Result<[TransportAddress], NetworkError>) -> Void)?

        init(_ completion: @escaping @Sendable (Result<[TransportAddress], NetworkError>) -> Void) {
            self.completion = completion
        }

        func give(_ result: Result<[TransportAddress], NetworkError>) {
            let completion = completion
            self.completion = nil
            completion?(result)
        }
    }

    /// Blocks.
    private static func systemLookUp(
        host: String, port: UInt16
    ) -> Result<[TransportAddress], NetworkError> {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let error = getaddrinfo(host, nil, &hints, &list)
        guard error == 0 else {
            // Of EAI_SYSTEM's reasons none says that the name is wrong.
            let isUnknown = error == EAI_NONAME || error == CSYS_EAI_NODATA
            let text = gai_strerror(error).map { String(cString: $0) } ?? "error \(error)"
            return .failure(
                NetworkError(
                    isUnknown ? .nameNotFound : .nameServerFailed,
                    "cannot look up \(host): \(text); check the \(isUnknown ? "name" : "network and name servers")"))
        }
        defer { freeaddrinfo(list) }
        var found: [TransportAddress] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ai_next
            guard let address = entry.pointee.ai_addr else { continue }
            var storage = sockaddr_storage()
            let length = min(Int(entry.pointee.ai_addrlen), MemoryLayout<sockaddr_storage>.size)
            withUnsafeMutableBytes(of: &storage) { target in
                target.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length))
            }
            guard var parsed = SocketAddress(storage) else { continue }
            parsed.port = port
            let text = parsed.transportAddress
            if !found.contains(text) { found.append(text) }
        }
        guard !found.isEmpty else {
            return .failure(NetworkError(.nameNotFound, "\(host) has no IPv4 or IPv6 address; check the name"))
        }
        return .success(found)
    }
}
