import Glibc
import Primitives
import Testing

@testable import Network

/// All network tests: one at a time, as some count the process's descriptors and all share two processors. A test that
/// waits for an event that never comes fails by the limit.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct NetworkTests {}

/// Events on their way from handlers to a test, which waits for each.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var waiting: CheckedContinuation<Element, Never>?
    }

    private let state = Locked(State())

    func put(_ element: Element) {
        let waiting = state.withLock { state -> CheckedContinuation<Element, Never>? in
            if let waiting = state.waiting {
                state.waiting = nil
                return waiting
            }
            state.elements.append(element)
            return nil
        }
        waiting?.resume(returning: element)
    }

    func next() async -> Element {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> Element? in
                if !state.elements.isEmpty { return state.elements.removeFirst() }
                state.waiting = continuation
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    /// What came and was not taken.
    var rest: [Element] { state.withLock { $0.elements } }
}

/// Runs a test with a loop and ends the loop whatever happens.
func withLoop<Result>(_ body: (EventLoop) async throws -> Result) async throws -> Result {
    let loop = try EventLoop(name: "test")
    defer { loop.stop() }
    return try await body(loop)
}

/// The descriptors that the process has open.
func openDescriptors() throws -> Int {
    let directory = try #require(opendir("/proc/self/fd"))
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return count
}

/// A private directory that is removed with what is in it.
final class ScratchDirectory: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/network-test-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
        path = try #require(made)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    deinit {
        if let directory = opendir(path) {
            while let entry = readdir(directory) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { unlink(file(name)) }
            }
            closedir(directory)
        }
        rmdir(path)
    }
}

/// What a stream told its owner.
enum StreamEvent: Sendable, Equatable {
    case open
    case data([UInt8])
    case end
    case drain
    case closed(NetworkError.Code?)
}

extension StreamConnection {
    /// Sends all of the stream's events to an inbox. On the loop.
    func report(to inbox: Inbox<StreamEvent>, halfClose: Bool = false) {
        onOpen = { inbox.put(.open) }
        onData = { inbox.put(.data($0)) }
        onClose = { inbox.put(.closed($0?.code)) }
        onDrain = { inbox.put(.drain) }
        if halfClose { onEnd = { inbox.put(.end) } }
    }
}

extension ByteStream {
    /// Sends what every stream can tell to an inbox. On the loop.
    func reportStream(to inbox: Inbox<StreamEvent>, failures: Inbox<NetworkError>? = nil) {
        onOpen = { inbox.put(.open) }
        onData = { inbox.put(.data($0)) }
        onClose = { error in
            if let error { failures?.put(error) }
            inbox.put(.closed(error?.code))
        }
    }
}

extension Inbox where Element == StreamEvent {
    /// Collects data until `count` bytes came; fails on any other event.
    func bytes(_ count: Int) async throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            switch await next() {
            case .data(let bytes): all += bytes
            case .drain: continue
            case let other:
                Issue.record("\(other) after \(all.count) of \(count) bytes")
                return all
            }
        }
        return all
    }

    /// The next event that is no data and no drain.
    func nextChange() async -> StreamEvent {
        while true {
            let event = await next()
            if case .data = event { continue }
            if event == .drain { continue }
            return event
        }
    }
}

/// Any port of 127.0.0.1.
let anyLoopback = TransportAddress(host: "127.0.0.1", port: 0)

/// A repeatable pattern whose period is prime, so that swapped blocks show.
func pattern(_ count: Int) -> [UInt8] {
    let period = [UInt8](0...250)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + period.count)
    while bytes.count < count { bytes += period }
    bytes.removeLast(bytes.count - count)
    return bytes
}

/// A listener on loopback whose connections report to one inbox.
struct ReportingServer: Sendable {
    let listener: TCPListener
    let events = Inbox<StreamEvent>()
    let connections = Inbox<TCPConnection>()

    /// On the loop.
    init(
        _ loop: EventLoop, options: TCPListener.Options = .init(), halfClose: Bool = false
    ) throws {
        listener = try TCPListener(loop: loop, bind: anyLoopback, options: options)
        listener.onConnection = { [events, connections] connection in
            connection.report(to: events, halfClose: halfClose)
            connections.put(connection)
        }
    }
}
