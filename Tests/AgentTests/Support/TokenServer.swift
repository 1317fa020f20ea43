import Configuration
import Glibc
import Network
import Testing

/// The backend of `token_server.py`, on a port of its own.
final class TokenServer {
    let port: String
    private let process: DetachedProcess

    init(certificate: String? = nil, key: String? = nil) throws {
        let script = String(#filePath.prefix(upTo: try #require(#filePath.lastIndex(of: "/")))) + "/token_server.py"
        process = try ChildProcess.spawnDetached(
            executable: "python3", arguments: [script] + [certificate, key].compactMap(\.self),
            environment: ProcessEnvironment.all)
        port = String(decoding: try process.waitUntilReady(timeout: .seconds(20)), as: UTF8.self)
    }

    deinit {
        process.kill(SIGKILL)
        var status: Int32 = 0
        waitpid(process.processID, &status, 0)
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
