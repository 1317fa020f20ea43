import Agent
import Configuration
import Glibc
import Network

/// `sinchctl start --user USER`
@Sendable func runStart(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let options = try parsed.agentOptions(context, user: parsed.string("user") ?? "")
    let configuration = try AgentConfiguration.load(options)
    context.warnAboutSound(options, configuration)
    let started = try AgentLauncher.start(
        options, configuration: configuration, timeout: parsed.duration("timeout") ?? .seconds(30))
    report(started, context)
    return .ok
}

/// `sinchctl start --user USER --foreground`
@Sendable func runForeground(
    _ parsed: ParsedCommand, _ context: CommandContext
) async throws(CommandFailure) -> ExitCode {
    let user = parsed.string("user") ?? ""
    let options = try parsed.agentOptions(context, user: user)
    let service = SystemdNotifier()
    let result = await AgentProcess.run(options: options, pipe: nil) { status in
        report(status, context)
        service.notify("READY=1\nSTATUS=registered as \(user)")
    }
    return try result.get()
}

private func report(_ status: AgentValue, _ context: CommandContext) {
    context.output.agentResult(status) {
        let delay = status["registration"]?["delayMs"]?.double.map { " in \(Numbers.milliseconds($0))" } ?? ""
        let place = status["signalling"]?["remote"]?.string.map { " at \($0)" } ?? ""
        return "\(status["user"]?.string ?? "the client") is registered\(place)\(delay)"
    }
}

/// `sinchctl register --user USER`
@Sendable func runRegister(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> ExitCode {
    var options = try parsed.agentOptions(context, user: parsed.string("user") ?? "")
    options.capture = "silence"
    options.playback = "null"
    options.parent = getpid()
    let configuration = try AgentConfiguration.load(options)
    let status = try AgentLauncher.start(
        options, configuration: configuration, timeout: parsed.duration("timeout") ?? .seconds(30))
    let channel = try AgentChannel.connect(user: options.user, paths: configuration.paths)
    try channel.terminate(within: .seconds(5))
    report(status, context)
    return .ok
}

/// The process that `start` leaves behind; not a command of the table.
func runAgentProcess() async -> ExitCode {
    let pipe = ReadinessPipe.takeFromEnvironment()
    guard let options = AgentProcess.takeOptions() else {
        _ = Output.write("sinchctl: agent-process is started by 'sinchctl start', not by hand\n", to: 2)
        return .usage
    }
    switch await AgentProcess.run(options: options, pipe: pipe, ready: { _ in }) {
    case .success(let exit): return exit
    case .failure(let failure):
        _ = Output.write("sinchctl: \(failure.description)\n", to: 2)
        return failure.exit
    }
}

/// Tells systemd how a foreground client stands (sd_notify(3)): datagrams to the socket that it names.
struct SystemdNotifier {
    func notify(_ state: String) {
        guard let path = ProcessEnvironment.all["NOTIFY_SOCKET"], path.utf8.count < 108 else { return }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            room.copyBytes(from: Array(path.utf8))
            // A name in the abstract name space begins with NUL, written as @.
            if path.hasPrefix("@") { room[0] = 0 }
        }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.utf8.count)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                sendto(descriptor, state, state.utf8.count, Int32(MSG_NOSIGNAL), address, length)
            }
        }
    }
}

extension CommandContext {
    /// One line when no device was named and the machine has no sound: calls will be silent.
    func warnAboutSound(_ options: AgentOptions, _ configuration: Configuration) {
        guard options.overrides["--capture"] == nil, options.overrides["--playback"] == nil,
            configuration.profile.capture == nil, configuration.profile.playback == nil,
            !SoundPresence.isLikely(environment)
        else { return }
        output.warning(
            "this machine has no sound device, so calls send silence; "
                + "use --play FILE, or --capture tone:440 --playback null, to be heard without one")
    }
}
