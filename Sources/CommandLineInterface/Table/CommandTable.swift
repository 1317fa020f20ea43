/// The command table: the only place where commands, options and their explanations are written down.
enum CommandTable {
    /// The program itself, with every command below it.
    static let root = Command(
        name: "sinchctl",
        summary: "a softphone for the command line, for scripts and for tests",
        discussion: """
            sinchctl registers users, places and answers calls, plays and records sound, and tells by its exit code \
            how a call ended. Clients run in the background, one for each user, until they are terminated.

            With no environment configured, an embedded one (registrar, proxy, the users echo and announcement) runs \
            on this machine's loopback and is started when it is first needed: no account, server or sound card is \
            required.
            """,
        examples: [
            CommandExample("sinchctl start --user bob --auto-answer", "a client for bob that answers every call"),
            CommandExample("sinchctl call bob --user alice --play hello.wav --record heard.wav", "call bob as alice"),
            CommandExample("sinchctl terminate --all", "end every client"),
        ],
        subcommands: clientCommands + callCommands + observingCommands + toolCommands
    )

    /// Options that every command accepts, before or after its name.
    static let globalOptions: [CommandOption] = [
        .flag("json", "print one JSON document on standard output, also on failure"),
        CommandOption(
            long: "profile", kind: .text("NAME"), summary: "the profile of the configuration file to use",
            defaultValue: "default", variable: "SINCHCTL_PROFILE"),
        CommandOption(
            long: "config", kind: .file, summary: "the configuration file to read", variable: "SINCHCTL_CONFIG"),
        CommandOption(
            long: "environment-host", kind: .text("HOST[:PORT]"),
            summary: "the environment to register with; without one, the embedded environment",
            variable: "SINCHCTL_ENVIRONMENT_HOST", profileKey: "environmentHost"),
        CommandOption(
            long: "timeout", kind: .duration, summary: "give up after this time and exit with 124"),
        .flag("quiet", short: "q", "print results and errors only, no progress"),
        CommandOption(
            long: "verbose", short: "v", kind: .flag,
            summary: "log more to standard error; -vv also what is on the wire",
            isRepeatable: true, conflicts: ["quiet"]),
        .flag("no-color", "print without colour; so do NO_COLOR=1, TERM=dumb and a pipe"),
        .flag("help", short: "h", "print what a command does and exit"),
        .flag("version", short: "V", "print the version and exit"),
        .refused("token", because: secretsAdvice),
        .refused("application-secret", because: secretsAdvice),
    ]

    private static let secretsAdvice =
        "arguments are visible to everyone on this machine; use --token-file or --token-fd, or the configuration file"

    /// Finds a command by its path, such as `["jwt", "sign"]`; aliases count.
    static func command(at path: [String]) -> (command: Command, path: [String])? {
        var found = (command: root, path: [String]())
        for name in path {
            guard let next = found.command.subcommand(named: name) else { return nil }
            found = (next, found.path + [next.name])
        }
        return found
    }

    /// Every command that does something, with its path, in the table's order.
    static var leaves: [(path: [String], command: Command)] {
        func collect(_ command: Command, _ path: [String]) -> [(path: [String], command: Command)] {
            command.subcommands.isEmpty
                ? [(path, command)] : command.subcommands.flatMap { collect($0, path + [$0.name]) }
        }
        return collect(root, [])
    }
}
