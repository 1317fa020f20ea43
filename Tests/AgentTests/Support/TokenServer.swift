import Configuration
import Glibc
import Network
import Testing

/// The backend of `token_server.py`, on a port of its own.
final class TokenServer {
    let port: String
    private let process: DetachedProcess
    private let loop: EventLoop

    static func start(certificate: String? = nil, key: String? = nil) async throws -> TokenServer {
        let script = String(#filePath.prefix(upTo: try #require(#filePath.lastIndex(of: "/")))) + "/token_server.py"
        let loop = try EventLoop(name: "token-server")
        let process = try ChildProcess.spawnDetached(
            executable: "python3", arguments: [script] + [certificate, key].compactMap(\.self),
            environment: ProcessEnvironment.all)
        // On a loop: the threads of the tests are few, and must not wait. The loop also collects the process's end.
        let line = try await process.waitUntilReady(on: loop, timeout: .seconds(60))
        return TokenServer(port: String(decoding: line, as: UTF8.self), process: process, loop: loop)
    }

    private init(port: String, process: DetachedProcess, loop: EventLoop) {
        self.port = port
        self.process = process
        self.loop = loop
    }

    deinit {
        process.kill(SIGKILL)
        loop.stop()
    }
}

/// A directory for the time of a test, with everything in it.
func withScratchDirectory(_ body: (String) async throws -> Void) async throws {
    var template = Array("/tmp/agent-tests.XXXXXX".utf8CString)
    let path = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer {
        for name in (try? names(in: path)) ?? [] { unlink(path + "/" + name) }
        rmdir(path)
    }
    try await body(path)
}

private func names(in path: String) throws -> [String] {
    let handle = try #require(opendir(path))
    defer { closedir(handle) }
    var names: [String] = []
    while let entry = readdir(handle) {
        names.append(
            withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            })
    }
    return names
}
