import Configuration

/// Executes one command of the table.
enum CommandHandler: Sendable {
    /// Done before anything else could happen: no concurrency runtime is started for it.
    case immediate(@Sendable (ParsedCommand, CommandContext) throws(CommandFailure) -> ExitCode)
    /// Waits for something.
    case asynchronous(@Sendable (ParsedCommand, CommandContext) async throws(CommandFailure) -> ExitCode)
    /// One or the other, as the options say.
    indirect case chosen(@Sendable (ParsedCommand) -> CommandHandler)

    /// The handler for this command line.
    func resolved(_ parsed: ParsedCommand) -> CommandHandler {
        if case .chosen(let choose) = self { choose(parsed) } else { self }
    }
}

/// What a command can see of the world around it; tests make their own.
struct CommandContext: Sendable {
    /// The process's environment variables.
    var environment: [String: String]
    /// Where everything is printed.
    var output: Output
    /// The file descriptor that stands for standard input.
    var standardInput: Int32 = 0
    /// The wall clock: whole seconds since 1970.
    var now: @Sendable () -> Int64
    /// The directory that relative paths start from.
    var currentDirectory: String

    /// A path that means the same to a process with another working directory.
    func absolute(path: String) -> String {
        path.hasPrefix("/") || path == "-" ? path : "\(currentDirectory)/\(path)"
    }

    /// A device name that means the same to a process with another working directory.
    func absolute(device: String) -> String {
        device.hasPrefix("file:") ? "file:" + absolute(path: String(device.dropFirst(5))) : device
    }
}

/// The handlers of all commands, by the command's full name.
struct CommandHandlers: Sendable {
    private var handlers: [String: CommandHandler]

    init(_ handlers: [String: CommandHandler]) {
        self.handlers = handlers
    }

    /// The handler of a command such as `jwt sign`.
    subscript(name: String) -> CommandHandler? {
        handlers[name]
    }

    /// The names that have a handler.
    var names: Set<String> { Set(handlers.keys) }

    /// Every command of this program.
    static let all = CommandHandlers([
        "help": .immediate(runHelp),
        "version": .immediate(runVersion),
        "completion": .immediate(runCompletion),
        "jwt sign": .immediate(runTokenSign),
        "jwt inspect": .immediate(runTokenInspect),
        "jwt verify": .immediate(runTokenVerify),
        "config init": .immediate(runConfigurationInit),
        "config show": .immediate(runConfigurationShow),
        "config check": .immediate(runConfigurationCheck),
        "devices": .immediate(runDevices),
        "verify": .immediate(runVerify),
        "start": .chosen { $0.flag("foreground") ? .asynchronous(runForeground) : .immediate(runStart) },
        "register": .immediate(runRegister),
        "terminate": .immediate(runTerminate),
        "call": .immediate(runCall),
        "answer": .immediate(runAnswer),
        "hangup": .immediate(runHangup),
        "hold": .immediate(runHold),
        "resume": .immediate(runResume),
        "dtmf": .immediate(runDTMF),
        "transfer": .immediate(runTransfer),
        "mute": .immediate(runMute),
        "unmute": .immediate(runUnmute),
        "status": .immediate(runStatus),
        "calls": .immediate(runCalls),
        "events": .immediate(runEvents),
        "wait": .immediate(runWait),
        "environment run": .asynchronous(runEnvironment),
        "environment start": .immediate(runEnvironmentStart),
        "environment status": .immediate(runEnvironmentStatus),
        "environment stop": .immediate(runEnvironmentStop),
    ])
}
