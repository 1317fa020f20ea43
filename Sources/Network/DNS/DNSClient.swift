import CCares
import DNS
import Primitives

/// Asks name servers for NAPTR, SRV, A and AAAA records on an event loop, without threads, and keeps answers for as long as
/// they hold.
///
/// What this machine knows itself (`localhost`, the hosts file) is answered without asking anybody, as the system's own
/// resolver does. Confined to its event loop: every method must be called on it.
public final class DNSClient: @unchecked Sendable {
    // @unchecked: all state is touched on `loop` only, which each entry point checks.

    /// Where and how to ask.
    public struct Options: Sendable {
        /// The name servers; nil for the system's.
        public var servers: [TransportAddress]?
        /// Where the system's name servers are written (resolv.conf(5)).
        public var resolverFile = "/etc/resolv.conf"
        /// The port of the system's name servers, for tests: the file does not say it.
        var port: UInt16 = 53
        /// Where names are written that need no name server (hosts(5)).
        public var hostsFile = "/etc/hosts"
        /// For the first try; each further round over the servers waits twice as long.
        public var tryTimeout: Duration = .milliseconds(1_500)
        /// Rounds over the servers.
        public var tries = 2
        /// For a question altogether, however many servers there are.
        public var timeLimit: Duration = .seconds(5)
        /// Different questions that may wait for their answers at a time.
        public var maximumQuestions = 64
        /// Answers that are kept.
        public var cacheCapacity = 256

        /// The system's name servers and moderate limits.
        public init() {}
    }

    private typealias Completion = @Sendable (DNSAnswer) -> Void

    /// A question under way and who waits for its answer.
    private struct Waiting {
        var completions: [Completion]
        var limit: TimerHandle
        /// Tells this asking from a later one of the same question.
        var number: UInt64
    }

    private let loop: EventLoop
    private let options: Options
    private var cache: DNSCache
    private var hosts = HostsTable()
    private var hostsVersion: FileVersion?
    private var channel: AresChannel?
    /// The name servers' file as it was when last looked at, and when the channel was made.
    private var serversVersion: FileVersion?
    private var channelVersion: FileVersion?
    /// Questions that c-ares works on, also those whose limit has passed.
    private var running = 0
    private var waiting: [DNSQuestion: Waiting] = [:]
    private var nextNumber: UInt64 = 0
    private var stopHook: UInt64?
    private var isClosed = false

    /// Creates a client; nothing is opened or read before the first question. From any thread.
    public init(loop: EventLoop, options: Options = Options()) {
        self.loop = loop
        self.options = options
        cache = DNSCache(capacity: options.cacheCapacity)
    }

    /// With the system's name servers or given ones, and the usual limits. From any thread.
    public convenience init(loop: EventLoop, servers: [TransportAddress]? = nil) {
        var options = Options()
        options.servers = servers
        self.init(loop: loop, options: options)
    }

    deinit {
        guard let channel else { return }
        loop.execute { channel.close() }
    }

    /// Asks a question. `completion` is called once, on the loop, and never from within this call. On the loop only.
    public func query(_ question: DNSQuestion, completion: @escaping @Sendable (DNSAnswer) -> Void) {
        loop.checkIsolated()
        if let known = knownAnswer(to: question) {
            loop.execute { completion(known) }
        } else if waiting[question] != nil {
            waiting[question]?.completions.append(completion)
        } else {
            ask(question, completion)
        }
    }

    /// Forgets all answers, because the network is another one now. On the loop only.
    public func forgetAnswers() {
        loop.checkIsolated()
        cache.removeAll()
    }

    /// Ends all questions with `.failed(.closed)` and closes the sockets. On the loop only.
    public func close() {
        loop.checkIsolated()
        guard !isClosed else { return }
        isClosed = true
        if let stopHook { loop.removeStopHook(stopHook) }
        for question in Array(waiting.keys) { finish(question, .failed(.closed)) }
        channel?.close()
        channel = nil
    }

    // MARK: Inside

    private func knownAnswer(to question: DNSQuestion) -> DNSAnswer? {
        if isClosed { return .failed(.closed) }
        guard question.hasValidName else { return .failed(.invalidName) }
        refreshHosts()
        refreshServers()
        return LocalNames.answer(to: question, hosts: hosts) ?? cache.answer(to: question, at: loop.now)
    }

    private func refreshHosts() {
        let version = FileVersion(of: options.hostsFile)
        guard version != hostsVersion else { return }
        hostsVersion = version
        let bytes = FileVersion.contents(of: options.hostsFile, maximumBytes: 1 << 20)
        hosts = HostsTable(parsing: bytes) { SocketAddress(numeric: $0, port: 0) != nil }
    }

    /// Other name servers than before mean another network, where other answers hold.
    private func refreshServers() {
        guard options.servers == nil else { return }
        let version = FileVersion(of: options.resolverFile)
        guard version != serversVersion else { return }
        serversVersion = version
        cache.removeAll()
    }

    private func ask(_ question: DNSQuestion, _ completion: @escaping Completion) {
        // What c-ares still works on counts, whoever gave up waiting for it.
        guard running < options.maximumQuestions else {
            loop.execute { completion(.failed(.tooManyQuestions)) }
            return
        }
        let channel: AresChannel
        do {
            channel = try currentChannel()
        } catch {
            loop.execute { completion(.failed(.noServer(error.message))) }
            return
        }
        nextNumber &+= 1
        let number = nextNumber
        let limit = loop.schedule(after: options.timeLimit) { [weak self] in
            self?.finish(question, .failed(.timedOut))
        }
        waiting[question] = Waiting(completions: [completion], limit: limit, number: number)
        running += 1
        let isAddress = question.type == .a || question.type == .aaaa
        let search = isAddress && question.name.utf8.last != UInt8(ascii: ".")
        channel.ask(question.name, type: question.type.rawValue, search: search) { [weak self] status, message in
            self?.running -= 1
            self?.received(status, message, to: question, number)
        }
    }

    private func received(_ status: Int32, _ message: [UInt8]?, to question: DNSQuestion, _ number: UInt64) {
        let reply = Self.reply(status, message, question.type)
        // Late answers are worth keeping too.
        cache.store(reply, to: question, at: loop.now)
        guard waiting[question]?.number == number else { return }
        finish(question, reply.answer)
    }

    /// Tells all who wait, after the present call.
    private func finish(_ question: DNSQuestion, _ answer: DNSAnswer) {
        guard let entry = waiting.removeValue(forKey: question) else { return }
        entry.limit.cancel()
        for completion in entry.completions { loop.execute { completion(answer) } }
    }

    private static func reply(_ status: Int32, _ message: [UInt8]?, _ type: DNSQuestion.RecordType) -> DNSReply {
        switch (status, message) {
        case (ARES_SUCCESS, .some(let message)), (ARES_ENODATA, .some(let message)),
            (ARES_ENOTFOUND, .some(let message)):
            return DNSMessageReader.read(message, for: type)
        case (ARES_ENODATA, nil):
            return DNSReply(.noData)
        case (ARES_ENOTFOUND, nil):
            return DNSReply(.noSuchName)
        case (ARES_ETIMEOUT, _):
            return DNSReply(.failed(.timedOut))
        case (ARES_EDESTRUCTION, _), (ARES_ECANCELLED, _):
            return DNSReply(.failed(.closed))
        case (ARES_EBADRESP, _), (ARES_EFORMERR, _):
            return DNSReply(.failed(.malformed(AresChannel.text(status))))
        case (ARES_ECONNREFUSED, _):
            // c-ares says so too when every server answered with an error.
            return DNSReply(.failed(.noServer("none could be reached, or each reported an error")))
        default:
            return DNSReply(.failed(.noServer(AresChannel.text(status))))
        }
    }

    /// The channel; a new one when the system's name servers were changed, as c-ares reads them once only, and the old one
    /// has nothing to do.
    private func currentChannel() throws(NetworkError) -> AresChannel {
        if let channel, channelVersion == serversVersion || running > 0 { return channel }
        channel?.close()
        channel = nil
        let made = try AresChannel(
            loop: loop, options: options)
        channel = made
        channelVersion = serversVersion
        if stopHook == nil { stopHook = loop.addStopHook { [weak self] in self?.close() } }
        return made
    }
}
