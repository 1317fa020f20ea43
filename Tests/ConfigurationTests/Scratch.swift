import Glibc
import Testing

@testable import Configuration

/// A directory of a test's own, removed with everything in it when the test ends, and the environment variables that
/// lead there.
final class Scratch {
    let path: String

    init() throws {
        var template = Array("/tmp/sinchctl-test-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        try makeDirectory("run", 0o700)
    }

    deinit {
        remove(path)
    }

    var environment: [String: String] {
        ["HOME": path, "XDG_RUNTIME_DIR": path + "/run"]
    }

    func with(_ variables: [String: String]) -> [String: String] {
        environment.merging(variables) { $1 }
    }

    var configFile: String { path + "/.config/sinchctl/config.json" }

    @discardableResult
    func write(_ text: String, to name: String, mode: UInt32 = 0o600) throws -> String {
        let file = name.hasPrefix("/") ? name : path + "/" + name
        if let parent = PrivateDirectory.parent(of: file) { try PrivateDirectory.create(parent) }
        try AtomicFile.write(Array(text.utf8), to: file)
        try #require(chmod(file, mode) == 0)
        return file
    }

    func configure(_ text: String, mode: UInt32 = 0o600) throws {
        try write(text, to: configFile, mode: mode)
    }

    func makeDirectory(_ name: String, _ mode: UInt32) throws {
        try #require(mkdir(path + "/" + name, mode) == 0)
        try #require(chmod(path + "/" + name, mode) == 0)
    }

    func mode(_ file: String) -> UInt32? {
        var status = stat()
        return lstat(file, &status) == 0 ? status.st_mode & 0o7777 : nil
    }

    func load(
        _ variables: [String: String] = [:], profile: String? = nil, overrides: Overrides = Overrides()
    ) throws -> Configuration {
        try Configuration.load(environment: with(variables), profile: profile, overrides: overrides)
    }

    /// The error that loading gives; nil when it succeeds.
    func refusal(
        _ variables: [String: String] = [:], profile: String? = nil, overrides: Overrides = Overrides()
    ) -> ConfigurationError? {
        do {
            _ = try load(variables, profile: profile, overrides: overrides)
            return nil
        } catch {
            return error as? ConfigurationError
        }
    }

    private func remove(_ path: String) {
        if let directory = opendir(path) {
            var names: [String] = []
            while let entry = readdir(directory) {
                let name = withUnsafePointer(to: entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { names.append(name) }
            }
            closedir(directory)
            var status = stat()
            // Do not leave the directory through a link.
            if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
                for name in names { remove(path + "/" + name) }
                rmdir(path)
                return
            }
        }
        unlink(path)
    }
}

let secretText = "ax8hTTQJF0OPXL32r1LHMA=="
let applicationKey = "a32e5a8d-f7d8-411c-9645-9038e8dd051d"

/// The template with every setting that it shows as a comment switched on.
func templateWithExamples() -> String {
    var text = Configuration.template
    for marker in ["// \"", "//   {", "// ]"] { text = text.replacing(marker, with: marker.dropFirst(2)) }
    return text
}
