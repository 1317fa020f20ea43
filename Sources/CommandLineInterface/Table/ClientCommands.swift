extension CommandTable {
    /// Commands that start and end clients.
    static let clientCommands = [start, register, terminate]

    private static let start = Command(
        name: "start", group: .client,
        summary: "start a client that stays registered in the background",
        discussion: """
            Starts a client for a user and returns 0 once it is registered, or the reason why it is not. The client \
            lives on in the background, takes calls and obeys the other commands, until it is terminated. There is \
            one client for each user: starting it again tells so and changes nothing.
            """,
        options: [
            CommandOption(
                long: "user", short: "u", kind: .user, summary: "the user to register", isRequired: true,
                variable: "SINCHCTL_USER"),
            CommandOption(long: "display-name", kind: .text("NAME"), summary: "the name that called users see"),
            .flag("auto-answer", "answer every incoming call at once"),
            .flag(
                "accept-transfers",
                "let the other side of a call transfer it: this client then calls whom it is told to call"),
            .flag("foreground", "stay in the foreground until interrupted, for systemd and containers"),
            .capture, .playback, .play, .record,
            CommandOption(
                long: "max-calls", kind: .integer("N", 1...64), summary: "answer further calls with busy",
                defaultValue: "4"),
            CommandOption(
                long: "timeout", kind: .duration, summary: "give up when not registered after this time",
                defaultValue: "30s"),
            .tokenFileSetting, .tokenDescriptor,
        ],
        examples: [
            CommandExample("sinchctl start --user alice", "a client that uses the machine's sound"),
            CommandExample(
                "sinchctl start --user bob --auto-answer --play hello.wav --record heard.wav",
                "a client that answers, plays a file and records"),
        ],
        exitCodes: [
            .unreachable, .registrationRefused, .configuration, .tls, .network, .timeout, .inputMissing,
            .dataUnusable, .cannotCreate,
        ]
    )

    private static let register = Command(
        name: "register", group: .client,
        summary: "check that a user can register, then un-register",
        discussion: """
            Registers a user once, shows how long it took and what the environment granted, and un-registers. No \
            client stays behind. Use it to check a configuration, a token or an environment.
            """,
        options: [
            CommandOption(
                long: "user", short: "u", kind: .user, summary: "the user to register", isRequired: true,
                variable: "SINCHCTL_USER"),
            CommandOption(
                long: "timeout", kind: .duration, summary: "give up when not registered after this time",
                defaultValue: "30s"),
            .tokenFileSetting, .tokenDescriptor,
        ],
        examples: [
            CommandExample("sinchctl register --user alice --json", "does alice's registration work, and how fast")
        ],
        exitCodes: [
            .unreachable, .registrationRefused, .configuration, .tls, .network, .dataUnusable, .inputMissing, .timeout,
        ]
    )

    private static let terminate = Command(
        name: "terminate", aliases: ["stop"], group: .client,
        summary: "end a client: hang up, un-register, exit",
        discussion: """
            Ends a client gracefully: its calls are hung up, its registration is removed, and the command returns \
            when the process is gone. With --all every client of this user of the machine is ended. The embedded \
            environment goes on for the next client; sinchctl environment stop ends it.
            """,
        options: [
            CommandOption(
                long: "user", short: "u", aliases: ["as"], kind: .user,
                summary: "the user whose client ends; not needed when only one is running", conflicts: ["all"]),
            .flag("all", "end every client", conflicts: ["user"]),
            CommandOption(
                long: "timeout", kind: .duration, summary: "end a client by force that takes longer",
                defaultValue: "10s"),
        ],
        examples: [
            CommandExample("sinchctl terminate --user bob", "end bob's client"),
            CommandExample("sinchctl terminate --all", "end every client"),
        ],
        exitCodes: [.unreachable, .timeout]
    )
}
