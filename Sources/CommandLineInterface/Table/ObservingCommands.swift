extension CommandTable {
    /// Commands that show what is going on, and wait for it.
    static let observingCommands = [status, calls, events, wait, devices, verify]

    private static let status = Command(
        name: "status", group: .observe,
        summary: "show the clients that run and what they do",
        discussion: """
            Shows every running client: its registration, devices, calls and the priority of its media thread. With \
            --user only that client, and exit code 69 when it is not running.
            """,
        options: [
            CommandOption(
                long: "user", short: "u", aliases: ["as"], kind: .user, summary: "show only this user's client")
        ],
        examples: [CommandExample("sinchctl status --json", "everything, for a script")],
        exitCodes: [.unreachable]
    )

    private static let calls = Command(
        name: "calls", group: .observe,
        summary: "list calls",
        discussion: """
            Lists the calls that the running clients have, or had since they were started, the newest first; with \
            --as those of one client.
            """,
        options: [
            .client,
            .flag("active", "only calls that have not ended"),
            CommandOption(
                long: "limit", kind: .integer("N", 1...10_000), summary: "at most so many", defaultValue: "20"),
        ],
        examples: [CommandExample("sinchctl calls --as alice --active --json", "alice's calls of this moment")],
        exitCodes: [.unreachable]
    )

    private static let events = Command(
        name: "events", group: .observe,
        summary: "show what happened, or follow what happens",
        discussion: """
            Shows a client's events: registrations, calls and their states, media, errors. With --follow the command \
            goes on until it is interrupted or the client ends. With --jsonl, or --json, each event is one JSON \
            document on a line of its own.
            """,
        options: [
            .client,
            .flag("follow", short: "f", "go on with the events to come"),
            .flag("jsonl", "one JSON document a line"),
            CommandOption(long: "since", kind: .duration, summary: "only events of this long ago and newer"),
        ],
        examples: [
            CommandExample("sinchctl events --as bob --follow --jsonl", "bob's events as they happen"),
            CommandExample("sinchctl events --as bob --since 5m", "the last five minutes"),
        ],
        exitCodes: [.unreachable, .interrupted]
    )

    private static let wait = Command(
        name: "wait", group: .observe,
        summary: "wait until something is so",
        discussion: """
            Returns as soon as the client is registered, has an incoming call, has an established call, or has no \
            call any more; at once when it is so already.
            """,
        options: [
            .client,
            CommandOption(
                long: "for", kind: .choice("STATE", ["registered", "incoming", "established", "ended"]),
                summary: "what to wait for", isRequired: true),
            CommandOption(
                long: "timeout", kind: .duration, summary: "give up after this time and exit with 124",
                defaultValue: "30s"),
        ],
        examples: [
            CommandExample("sinchctl wait --as bob --for incoming --timeout 10s", "until bob's phone rings")
        ],
        exitCodes: [.unreachable, .timeout, .interrupted]
    )

    private static let devices = Command(
        name: "devices", group: .observe,
        summary: "list the audio devices that can be named",
        discussion: """
            Lists ALSA's devices and the virtual ones, which need no sound card: file:PATH.wav, tone:HZ, silence, \
            null (discards what is heard) and echo (sends what is heard).
            """,
        examples: [CommandExample("sinchctl devices", "what may follow --capture and --playback")]
    )

    private static let verify = Command(
        name: "verify", group: .observe,
        summary: "compare a recording with what should be heard in it",
        discussion: """
            Searches the sound of REFERENCE in the recording HEARD by cross-correlation and tells how well it \
            matches, when it begins, how loud it is and for how long it is interrupted. Speech through Opus matches \
            with more than 90 %, other speech with less than 40 %. Of a stereo recording the right channel is taken: \
            what was heard.
            """,
        arguments: [
            CommandArgument(name: "REFERENCE", kind: .file, summary: "the WAV file that was played"),
            CommandArgument(name: "HEARD", kind: .file, summary: "the WAV file that was recorded"),
        ],
        options: [
            CommandOption(
                long: "channel", kind: .choice("CHANNEL", ["left", "right"]),
                summary: "the channel of a stereo recording to take", defaultValue: "right"),
            CommandOption(
                long: "minimum-match", kind: .integer("PERCENT", 0...100),
                summary: "exit with 18 when the match is worse", defaultValue: "60"),
            CommandOption(
                long: "minimum-length", kind: .duration,
                summary: "exit with 18 when less of the reference's sound could be compared", defaultValue: "1s"),
        ],
        examples: [CommandExample("sinchctl verify hello.wav heard.wav", "did the call carry the sound")],
        exitCodes: [.assertionFailed, .inputMissing, .dataUnusable]
    )
}
