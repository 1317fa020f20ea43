import Glibc
import Testing
import Token

@testable import Configuration

@Suite struct PathsTests {
    @Test func xdgVariables() throws {
        let scratch = try Scratch()
        let paths = try Paths(
            environment: scratch.with(["XDG_CONFIG_HOME": "/c/", "XDG_STATE_HOME": "/s"]))
        #expect(paths.configFile == "/c/sinchctl/config.json")
        #expect(paths.stateDirectory == "/s/sinchctl")
        #expect(paths.runtimeDirectory == scratch.path + "/run/sinchctl")
        #expect(paths.environmentFile == scratch.path + "/run/sinchctl/environment.json")
        let explicit = try Paths(environment: scratch.with(["SINCHCTL_CONFIG": "my.json"]))
        #expect(explicit.configFile == "my.json")
        #expect(explicit.isConfigFileExplicit)
    }

    @Test func defaultsUnderHome() throws {
        let scratch = try Scratch()
        // Relative and empty values count as not set.
        let paths = try Paths(
            environment: ["HOME": scratch.path + "//", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "relative"])
        #expect(paths.configFile == scratch.path + "/.config/sinchctl/config.json")
        #expect(paths.stateDirectory == scratch.path + "/.local/state/sinchctl")
        #expect(!paths.isConfigFileExplicit)
    }

    @Test func runtimeDirectoryOfSomebodyElse() throws {
        let scratch = try Scratch()
        // One that cannot exist, and one that is no directory; neither is /run/user of this user unless it is there.
        var status = stat()
        let login = "/run/user/\(geteuid())"
        let hasLogin = stat(login, &status) == 0 && status.st_uid == geteuid()
        let expected = hasLogin ? login + "/sinchctl" : scratch.path + "/.local/state/sinchctl/run"
        let file = try scratch.write("", to: "file")
        for directory in ["/nonexistent/a/b", file, "relative", "", "/proc/1/nothing/x"] {
            let paths = try Paths(environment: ["HOME": scratch.path, "XDG_RUNTIME_DIR": directory])
            #expect(paths.runtimeDirectory == expected, "\(directory)")
        }
        // One that is missing but can be made is meant.
        let paths = try Paths(environment: ["HOME": scratch.path, "XDG_RUNTIME_DIR": scratch.path + "/new"])
        #expect(paths.runtimeDirectory == scratch.path + "/new/sinchctl")
        try paths.prepareRuntimeDirectory()
        #expect(scratch.mode(scratch.path + "/new/sinchctl") == 0o700)
    }

    @Test func homeFromTheUserDatabase() throws {
        let paths = try Paths(environment: [:])
        #expect(paths.configFile.hasPrefix("/"))
        #expect(paths.configFile.hasSuffix("/.config/sinchctl/config.json"))
    }

    @Test func directoriesAreMadePrivate() throws {
        let scratch = try Scratch()
        let paths = try Paths(environment: scratch.environment)
        #expect(try paths.prepareRuntimeDirectory() == paths.runtimeDirectory)
        #expect(try paths.prepareStateDirectory() == paths.stateDirectory)
        #expect(scratch.mode(paths.runtimeDirectory) == 0o700)
        #expect(scratch.mode(paths.stateDirectory) == 0o700)
        // A second time is fine.
        try paths.prepareRuntimeDirectory()
    }

    @Test func openOrForeignDirectoriesAreRefused() throws {
        let scratch = try Scratch()
        let paths = try Paths(environment: scratch.environment)
        try scratch.makeDirectory("run/sinchctl", 0o755)
        let error = #expect(throws: ConfigurationError.self) { try paths.prepareRuntimeDirectory() }
        #expect(error?.code == .exposed)
        #expect(error?.hint == "run: chmod 700 \(paths.runtimeDirectory)")
        rmdir(paths.runtimeDirectory)
        // A link would lead elsewhere, also to a directory that is private.
        try scratch.makeDirectory("private", 0o700)
        try #require(symlink(scratch.path + "/private", paths.runtimeDirectory) == 0)
        #expect(throws: ConfigurationError.self) { try paths.prepareRuntimeDirectory() }
        unlink(paths.runtimeDirectory)
        try scratch.write("", to: "run/sinchctl")
        let file = #expect(throws: ConfigurationError.self) { try paths.prepareRuntimeDirectory() }
        #expect(file?.code == .fileKind)
    }

    /// Only root can give a directory away.
    @Test(.enabled(if: geteuid() == 0)) func directoriesOfAnotherUser() throws {
        let scratch = try Scratch()
        let paths = try Paths(environment: scratch.environment)
        try scratch.makeDirectory("run/sinchctl", 0o700)
        try #require(chown(paths.runtimeDirectory, 65_534, 65_534) == 0)
        let error = #expect(throws: ConfigurationError.self) { try paths.prepareRuntimeDirectory() }
        #expect(error?.code == .exposed)
        #expect(error?.message.contains("65534") == true)
        // As after `su`: the variable still names the directory of the user before.
        try #require(chown(scratch.path + "/run", 65_534, 65_534) == 0)
        #expect(try Paths(environment: scratch.environment).runtimeDirectory != paths.runtimeDirectory)
    }

    @Test func socketPaths() throws {
        let scratch = try Scratch()
        let paths = try Paths(environment: scratch.environment)
        let room = Paths.maxSocketPathBytes - paths.runtimeDirectory.utf8.count - 1
        #expect(try paths.socketPath(String(repeating: "a", count: room)).utf8.count == 107)
        let error = #expect(throws: ConfigurationError.self) {
            try paths.socketPath(String(repeating: "a", count: room + 1))
        }
        #expect(error?.code == .pathTooLong)
        // Bytes count, not characters.
        #expect(throws: ConfigurationError.self) { try paths.socketPath(String(repeating: "é", count: room / 2 + 1)) }
    }
}

@Suite struct AtomicFileTests {
    @Test func writesAndReplaces() throws {
        let scratch = try Scratch()
        let file = scratch.path + "/file"
        try AtomicFile.write([1, 2, 3], to: file)
        #expect(try ProtectedFile.read(file, limit: 10)?.bytes == [1, 2, 3])
        #expect(scratch.mode(file) == 0o600)
        let long = [UInt8](repeating: 7, count: 100_000)
        try AtomicFile.write(long, to: file)
        #expect(try ProtectedFile.read(file, limit: 100_000)?.bytes == long)
        #expect(throws: ConfigurationError.self) { try ProtectedFile.read(file, limit: 99_999) }
        try AtomicFile.write([], to: file)
        #expect(try ProtectedFile.read(file, limit: 10)?.bytes == [])
        #expect(files(in: scratch.path) == ["file", "run"])
    }

    @Test func leavesAnExistingFileAlone() throws {
        let scratch = try Scratch()
        let file = scratch.path + "/file"
        try AtomicFile.write([1], to: file, replacing: false)
        let error = #expect(throws: ConfigurationError.self) { try AtomicFile.write([2], to: file, replacing: false) }
        #expect(error?.code == .exists)
        #expect(try ProtectedFile.read(file, limit: 10)?.bytes == [1])
        #expect(files(in: scratch.path) == ["file", "run"])
    }

    @Test func failuresLeaveNothingBehind() throws {
        let scratch = try Scratch()
        for path in ["/missing/file", "/run", "/run/", "/", "/."] {
            #expect(throws: ConfigurationError.self) { try AtomicFile.write([1], to: scratch.path + path) }
        }
        #expect(throws: ConfigurationError.self) { try AtomicFile.write([1], to: "") }
        #expect(files(in: scratch.path) == ["run"])
        #expect(files(in: scratch.path + "/run") == [])
    }

    private func files(in directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}

@Suite struct EnvironmentFileTests {
    private func example(_ process: ProcessIdentity = .current()) throws -> EnvironmentFile {
        EnvironmentFile(
            process: process, host: "127.0.0.1", port: 45_060, transports: [.udp, .tcp], realm: "sinchctl.localhost",
            applicationKey: applicationKey, applicationSecret: try ApplicationSecret(base64: secretText),
            startedAt: 1_700_000_000, version: "0.1.0+abc")
    }

    @Test func comesBack() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/environment.json"
        #expect(try EnvironmentFile.read(path) == nil)
        let file = try example()
        try file.write(to: path)
        #expect(scratch.mode(path) == 0o600)
        #expect(try EnvironmentFile.read(path) == file)
        #expect(try EnvironmentFile.running(path) == file)
        #expect(file.pid == getpid())
        #expect(EnvironmentFile.removeOwn(path))
        #expect(try EnvironmentFile.read(path) == nil)
    }

    @Test func staleFiles() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/environment.json"
        let current = ProcessIdentity.current()
        let ticks = try #require(current.startTicks)
        let stale = [
            // The same number, but another process: started at another time, or before the machine was.
            ProcessIdentity(pid: current.pid, startTicks: ticks + 1, bootID: current.bootID),
            ProcessIdentity(pid: current.pid, startTicks: ticks, bootID: "another boot"),
            ProcessIdentity(pid: 0, startTicks: nil, bootID: nil),
            ProcessIdentity(pid: -1, startTicks: nil, bootID: nil),
            ProcessIdentity(pid: .max, startTicks: nil, bootID: nil),
        ]
        for process in stale {
            try example(process).write(to: path)
            #expect(try EnvironmentFile.read(path)?.isRunning == false, "\(process)")
            #expect(try EnvironmentFile.running(path) == nil)
            // Not ours: left alone.
            #expect(!EnvironmentFile.removeOwn(path))
        }
        #expect(ProcessIdentity(pid: 1, startTicks: nil, bootID: nil).isRunning)
    }

    @Test func endedProcessIsNotRunning() throws {
        // A child that ended: first not waited for (a zombie), then gone.
        var pid: pid_t = 0
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("/bin/true"), nil]
        defer { free(arguments[0]) }
        try #require(posix_spawn(&pid, "/bin/true", nil, nil, &arguments, nil) == 0)
        var information = siginfo_t()
        try #require(waitid(P_PID, UInt32(pid), &information, WEXITED | WNOWAIT) == 0)
        let identity = ProcessIdentity(pid: pid, startTicks: nil, bootID: nil)
        #expect(!identity.isRunning)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        #expect(!identity.isRunning)
    }

    @Test func exposedFileIsRefused() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/environment.json"
        try example().write(to: path)
        chmod(path, 0o644)
        let error = #expect(throws: ConfigurationError.self) { try EnvironmentFile.read(path) }
        #expect(error?.code == .exposed)
    }

    @Test func damagedFilesAreRefused() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/environment.json"
        try example().write(to: path)
        let text = String(decoding: try #require(try ProtectedFile.read(path, limit: 10_000)).bytes, as: UTF8.self)
        for (old, new) in [
            ("45060", "450600"), ("45060", "\"45060\""), ("45060", "-1"), ("\"pid\"", "\"pit\""),
            ("\"pid\": \(getpid())", "\"pid\": 99999999999"), (secretText, "short"), ("\"udp\", \"tcp\"", "\"sctp\""),
            ("\"127.0.0.1\"", "\"\""), ("}", ""), ("{", "["), ("1700000000", "1.5"),
        ] {
            let damaged = text.replacing(old, with: new)
            try #require(damaged != text)
            try scratch.write(damaged, to: path)
            let error = #expect(throws: ConfigurationError.self, "\(new)") { try EnvironmentFile.read(path) }
            #expect(error?.hint?.contains("rm \(path)") == true)
            #expect(error?.description.contains("ax8h") == false)
        }
        try scratch.write(String(repeating: " ", count: 20_000), to: path)
        #expect(throws: ConfigurationError.self) { try EnvironmentFile.read(path) }
    }

    @Test func printingShowsNoSecret() throws {
        var dumped = ""
        dump(try example(), to: &dumped)
        #expect(!dumped.contains("ax8h"))
        #expect(dumped.contains("45060"))
    }
}
