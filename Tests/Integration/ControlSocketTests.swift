import Configuration
import Agent
import FoundationEssentials
import Glibc
import Network
import Testing

/// What arrives at a control socket: everything but what the protocol says.
struct ControlSocketTests {
    /// Sends lines and returns the answers that come, until nothing comes or the agent closes.
    private func talk(_ socket: String, _ bytes: [UInt8], answers: Int) throws -> [JSONValue] {
        let client = try RawClient(socket)
        defer { client.close() }
        client.send(bytes)
        return client.answers(answers)
    }

    private func error(_ answer: JSONValue?) -> Int64? { answer?["error"]?["code"]?.integer }

    @Test func nonsenseIsAnsweredAndSurvived() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            let socket = world.runtime + "/" + (world.sockets.first ?? "")
            func talk(_ text: String, answers: Int = 1) throws -> [JSONValue] {
                try self.talk(socket, Array(text.utf8), answers: answers)
            }
            #expect(error(try talk("hello?\n").first) == -32_700)
            #expect(error(try talk("{\"jsonrpc\":\n").first) == -32_700)
            #expect(error(try self.talk(socket, [0xFF, 0xFE, 0x00, 0x0A], answers: 1).first) == -32_700)
            #expect(error(try talk("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}]\n").first) == -32_600)
            #expect(error(try talk("42\n").first) == -32_600)
            #expect(error(try talk("{}\n").first) == -32_600)
            #expect(error(try talk("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"status\"}\n").first) == -32_600)
            #expect(error(try talk("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"status\"}\n").first) == -32_600)
            #expect(error(try talk("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}\n").first) == -32_600)
            let unknown = try talk("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"fly\"}\n").first
            #expect(error(unknown) == -32_601 && unknown?["id"] == .string("x"))
            for method in ["call", "answer", "hangup", "wait"] {
                for params in [
                    "", ",\"params\":[]", ",\"params\":7", ",\"params\":{\"call\":7,\"for\":7,\"destination\":[]}",
                ] {
                    let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(method)\"\(params)}\n"
                    let answer = try talk(text).first
                    if method == "wait" {
                        #expect(answer?["result"] != nil || error(answer) != nil, "\(text)")
                    } else {
                        #expect(error(answer) != nil, "\(text)")
                    }
                }
            }
            // Blank lines and CRLF are no matter; a notification is not answered; answers come in the requests' order.
            let several = try talk(
                "\r\n\n{\"jsonrpc\":\"2.0\",\"method\":\"status\"}\n"
                    + (1...20).map { "{\"jsonrpc\":\"2.0\",\"id\":\($0),\"method\":\"hello\"}\r\n" }.joined(),
                answers: 20)
            #expect(several.compactMap { $0["id"]?.integer } == Array(1...20))
            // Nesting without end is no way to exhaust the stack.
            let deep = String(repeating: "[", count: 60_000)
            #expect(error(try talk(deep + "\n").first) == -32_600)
            // Half a line, and the end.
            _ = try talk("{\"jsonrpc\":\"2.0\",\"id\":1,\"me", answers: 0)
            #expect(try await world.status("alice")["registration"]?["state"]?.string == "registered")
        }
    }

    @Test func endlessLineEndsItsConnectionOnly() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            let socket = world.runtime + "/" + (world.sockets.first ?? "")
            let pid = try await world.pid("alice")
            let before = residentKilobytes(pid)
            let client = try RawClient(socket)
            let chunk = [UInt8](repeating: UInt8(ascii: "a"), count: 65_536)
            var sent = 0
            while sent < 10_000_000, client.send(chunk) { sent += chunk.count }
            #expect(client.answers(1).first.flatMap { error($0) } == -32_600)
            #expect(client.isAtEnd, "the agent hangs up")
            client.close()
            #expect(residentKilobytes(pid) < before + 8_000)
            _ = try await world.status("alice")
        }
    }

    @Test func floodOfRequestsIsBounded() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            let socket = world.runtime + "/" + (world.sockets.first ?? "")
            let pid = try await world.pid("alice")
            let before = residentKilobytes(pid)
            let client = try RawClient(socket)
            let wait = Array(
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"wait\",\"params\":{\"for\":\"incoming\"}}\n".utf8)
            let lines = Array(repeatElement(wait, count: 500).joined())
            // Nobody reads the refusals: they are not kept without limit either.
            for _ in 0..<100 { guard client.send(lines) else { break } }
            _ = try await world.status("alice")
            #expect(residentKilobytes(pid) < before + 24_000)
            client.close()
            _ = try await world.status("alice")
        }
    }

    @Test func thousandConnectionsDoNotKeepACommandOut() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            let socket = world.runtime + "/" + (world.sockets.first ?? "")
            let pid = try await world.pid("alice")
            let before = residentKilobytes(pid)
            var clients: [RawClient] = []
            for _ in 0..<1_000 {
                if let client = try? RawClient(socket) { clients.append(client) }
            }
            #expect(clients.count > 64)
            let status = try await world.run("status", "--user", "alice", "--json", within: .seconds(10))
            #expect(status.exit == 0, "\(status.errors)")
            #expect(status.duration < .seconds(3))
            #expect(openDescriptors(pid) < 128)
            #expect(residentKilobytes(pid) < before + 16_000)
            for client in clients { client.close() }
            _ = try await world.status("alice")
        }
    }

    @Test func socketIsForItsOwnerOnly() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            for path in [world.runtime, world.runtime + "/" + (world.sockets.first ?? "")] {
                var status = stat()
                #expect(lstat(path, &status) == 0)
                #expect(status.st_mode & 0o077 == 0, "\(path)")
            }
        }
    }

    private func residentKilobytes(_ pid: pid_t) -> Int {
        let line = readFile("/proc/\(pid)/status").split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return line.flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") }
            ?? Int(line?.filter(\.isNumber) ?? "") ?? 0
    }

    private func openDescriptors(_ pid: pid_t) -> Int {
        guard let directory = opendir("/proc/\(pid)/fd") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        return count
    }
}

/// A client of the control socket that says what it likes; no call of it waits for more than two seconds.
private final class RawClient {
    private var descriptor: Int32
    private var received: [UInt8] = []

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else {
            close()
            throw TestFailure("cannot connect to \(path): \(String(cString: strerror(errno)))")
        }
    }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// So many answers, or those that came before the end or the time limit.
    func answers(_ count: Int) -> [JSONValue] {
        var answers: [JSONValue] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while answers.count < count {
            if let end = received.firstIndex(of: 0x0A) {
                if let answer = try? JSONDecoder().decode(JSONValue.self, from: Data(received[..<end])) {
                    answers.append(answer)
                }
                received.removeSubrange(...end)
                continue
            }
            let length = recv(descriptor, &chunk, chunk.count, 0)
            guard length > 0 else { break }
            received += chunk[0..<length]
        }
        return answers
    }

    /// Whether the agent has ended the connection.
    var isAtEnd: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, 0) == 0 || errno == ECONNRESET
    }

    func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }

    deinit { close() }
}
