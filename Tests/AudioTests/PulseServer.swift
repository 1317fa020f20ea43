import Glibc

/// A PulseAudio server of the tests' own, with two null sinks that are paced in real time, and the ALSA
/// configuration that reaches it. Nothing of the user's session is touched.
final class PulseServer {
    /// The packages a machine needs for these tests.
    static let advice =
        "needs PulseAudio: apt-get install --no-install-recommends pulseaudio libasound2-plugins"

    /// Without PulseAudio the tests are skipped on a developer's machine, but never in CI.
    static var shouldRun: Bool { executable != nil || getenv("CI").map { String(cString: $0) } == "true" }

    private static var executable: String? {
        ["/usr/bin/pulseaudio", "/usr/local/bin/pulseaudio"].first { access($0, X_OK) == 0 }
    }

    private(set) var process: pid_t = 0
    private let directory: Scratch

    /// Starts the server; nil when it does not come up.
    ///
    /// ALSA reads its configuration's path from the environment, so every server uses the same one: only one at a
    /// time, in a serialized suite.
    init?(_ directory: Scratch) {
        self.directory = directory
        guard let executable = Self.executable, mkdir(directory.file("run"), 0o700) == 0 || errno == EEXIST else {
            return nil
        }
        let socket = directory.file("run/native")
        unlink(socket)
        // The protocol comes last: a client that can connect finds both sinks.
        let sinks = ["a2b", "b2a"].map {
            "load-module module-null-sink sink_name=\($0) norewinds=1 rate=48000 format=s16le channels=1\n"
        }
        let script = directory.write(
            Array(
                (sinks.joined() + "load-module module-native-protocol-unix auth-anonymous=1 socket=\(socket)\n").utf8),
            to: "lb.pa")
        let environment = [
            "HOME=\(directory.path)", "XDG_RUNTIME_DIR=\(directory.file("run"))",
            "PULSE_RUNTIME_PATH=\(directory.file("run"))", "PATH=/usr/bin:/bin",
        ]
        let arguments = [
            executable, "-n", "-F", script, "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no",
            "--disallow-exit", "--log-target=file:\(directory.file("pulse.log"))",
        ]
        guard Self.spawn(arguments, environment, into: &process) else { return nil }
        let isUp = everyTenMilliseconds(limit: .seconds(10)) { _ in Self.answers(socket) }
        guard isUp else {
            stop()
            return nil
        }
        Self.configure(directory, socket: socket)
    }

    deinit {
        stop()
    }

    /// Kills the server, as a crash would.
    func stop() {
        guard process > 0 else { return }
        kill(process, SIGKILL)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        process = 0
    }

    /// Points ALSA to the server. Must come before the first call of ALSA that needs the names.
    private static func configure(_ directory: Scratch, socket: String) {
        var text = "</usr/share/alsa/alsa.conf>\n"
        for sink in ["a2b", "b2a"] {
            text += "pcm.\(sink) { type pulse server \"unix:\(socket)\" device \"\(sink)\""
            text += " hint { show on description \"Null sink \(sink)\" } }\n"
            text += "pcm.\(sink)mon { type pulse server \"unix:\(socket)\" device \"\(sink).monitor\" }\n"
        }
        let path = directory.write(Array(text.utf8), to: "asound.conf")
        if getenv("ALSA_CONFIG_PATH").map({ String(cString: $0) }) != path { setenv("ALSA_CONFIG_PATH", path, 1) }
    }

    private static func answers(_ path: String) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(100)) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    private static func spawn(_ arguments: [String], _ environment: [String], into process: inout pid_t) -> Bool {
        var argv = arguments.map { strdup($0) } + [nil]
        var envp = environment.map { strdup($0) } + [nil]
        defer { (argv + envp).forEach { free($0) } }
        return posix_spawn(&process, arguments[0], nil, nil, &argv, &envp) == 0
    }
}
