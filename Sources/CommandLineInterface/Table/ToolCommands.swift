extension CommandTable {
    /// Commands around the configuration, tokens, the environment, and sinchctl itself.
    static let toolCommands = [jwt, config, environment, completion, help, version]

    private static let tokenArgument = CommandArgument(
        name: "TOKEN", kind: .text("TOKEN"), summary: "the token; - or nothing is standard input", isOptional: true)

    private static let jwt = Command(
        name: "jwt",
        summary: "sign, read and check registration tokens",
        discussion: """
            A registration token is a JWT (HS256) that a backend signs with the application's secret and that lets \
            one user register.
            """,
        subcommands: [
            Command(
                name: "sign",
                summary: "sign a token with the secret of the configuration file",
                discussion: """
                    Prints a token for a user, signed with the profile's applicationKey and applicationSecret. It is \
                    for development: in production the secret stays in a backend.
                    """,
                options: [
                    CommandOption(
                        long: "user", short: "u", kind: .user, summary: "the user whom the token lets register",
                        isRequired: true, variable: "SINCHCTL_USER"),
                    CommandOption(
                        long: "ttl", kind: .duration(atLeastSeconds: 60), summary: "how long the token is valid",
                        defaultValue: "10m"),
                    CommandOption(
                        long: "instance-ttl", kind: .duration(atLeastSeconds: 172_800),
                        summary: "how long a registration made with it may last, at least 48h; else for ever"),
                    CommandOption(
                        long: "nonce", kind: .text("TEXT"), summary: "a text that no other token has; else a random one"
                    ),
                ],
                examples: [CommandExample("sinchctl jwt sign --user alice --ttl 10m", "a token for alice")],
                exitCodes: [.configuration]
            ),
            Command(
                name: "inspect",
                summary: "show what a token says, without checking its signature",
                arguments: [tokenArgument],
                options: [.tokenFile, .tokenDescriptor],
                examples: [
                    CommandExample("sinchctl jwt sign --user alice | sinchctl jwt inspect", "what a new token says")
                ],
                exitCodes: [.dataUnusable, .inputMissing]
            ),
            Command(
                name: "verify",
                summary: "check a token's signature and times with the secret of the configuration file",
                arguments: [tokenArgument],
                options: [.tokenFile, .tokenDescriptor],
                examples: [CommandExample("sinchctl jwt verify --token-file alice.jwt", "would it be accepted")],
                exitCodes: [.dataUnusable, .inputMissing, .configuration]
            ),
        ]
    )

    private static let config = Command(
        name: "config",
        summary: "make, show and check the configuration file",
        discussion: """
            The configuration file is JSON5: comments are allowed. It is not needed for calls in the embedded \
            environment.
            """,
        subcommands: [
            Command(
                name: "init",
                summary: "write a configuration file to start from",
                discussion: """
                    Writes a file with every setting explained and none of them set, readable by you only. A file \
                    that exists is left alone.
                    """,
                examples: [CommandExample("sinchctl config init", "write the file and say where it is")],
                exitCodes: [.cannotCreate]
            ),
            Command(
                name: "show",
                summary: "show the settings in force and where each comes from",
                discussion: "Secrets are never shown, only whether there is one.",
                examples: [CommandExample("sinchctl config show --profile staging", "another profile's settings")],
                exitCodes: [.configuration]
            ),
            Command(
                name: "check",
                summary: "check the configuration file",
                discussion: "Reads the file as every command does and tells what is wrong with it.",
                examples: [CommandExample("sinchctl config check && echo good", "use the exit code")],
                exitCodes: [.configuration]
            ),
        ]
    )

    private static let environment = Command(
        name: "environment",
        summary: "run the embedded environment",
        discussion: """
            The embedded environment is a registrar and proxy for this machine, with the users echo and \
            announcement. It is started by itself when no environment is configured; these commands are for those \
            who want it to run by itself or on another address.
            """,
        subcommands: [
            Command(
                name: "run",
                summary: "run it in the foreground until interrupted",
                options: [bindOption, portOption],
                examples: [CommandExample("sinchctl environment run --port 5060", "on the port of SIP")],
                exitCodes: [.network, .configuration, .usage]
            ),
            Command(
                name: "start",
                summary: "start it in the background",
                discussion: "Returns when it can be used; says so when it already runs.",
                options: [bindOption, portOption],
                examples: [CommandExample("sinchctl environment start", "before the first client")],
                exitCodes: [.network, .configuration]
            ),
            Command(
                name: "status",
                summary: "show whether it runs, and where",
                examples: [CommandExample("sinchctl environment status --json", "for a script")],
                exitCodes: [.unreachable]
            ),
            Command(
                name: "stop",
                summary: "end it",
                discussion: "Clients that are registered lose their registration and try again until it is back.",
                examples: [CommandExample("sinchctl environment stop", "end the environment")],
                exitCodes: [.unreachable]
            ),
        ]
    )

    private static let bindOption = CommandOption(
        long: "bind", kind: .text("ADDRESS"),
        summary: "the numeric address to listen on; other than loopback, it can be reached from the network",
        defaultValue: "127.0.0.1")

    private static let portOption = CommandOption(
        long: "port", kind: .integer("PORT", 0...65_535), summary: "the port to listen on; 0 takes a free one",
        defaultValue: "0")

    private static let completion = Command(
        name: "completion",
        summary: "print the completion script for a shell",
        discussion: "The script completes commands, options and their values.",
        arguments: [
            CommandArgument(
                name: "SHELL", kind: .choice("SHELL", ["bash", "zsh", "fish"]), summary: "bash, zsh or fish")
        ],
        examples: [
            CommandExample("source <(sinchctl completion bash)", "in bash, for this session"),
            CommandExample(
                "sinchctl completion fish > ~/.config/fish/completions/sinchctl.fish", "in fish, for good"),
        ]
    )

    private static let help = Command(
        name: "help",
        summary: "explain a command, or a topic: exit-codes, settings",
        arguments: [
            CommandArgument(
                name: "COMMAND", kind: .text("COMMAND"), summary: "a command, or exit-codes, or settings",
                isOptional: true, isRepeatable: true)
        ],
        options: [
            .flag("man", "print the manual page in roff", conflicts: ["exit-code-table"], isHidden: true),
            .flag("exit-code-table", "print docs/exit-codes.md", conflicts: ["man"], isHidden: true),
        ],
        examples: [
            CommandExample("sinchctl help jwt sign", "explain one command"),
            CommandExample("sinchctl help exit-codes", "what each exit code means"),
        ]
    )

    private static let version = Command(
        name: "version",
        summary: "print the version",
        examples: [CommandExample("sinchctl version --json", "the version and what it was built from")]
    )
}
