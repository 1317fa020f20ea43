extension CommandTable {
    /// Commands that place calls and act on them.
    static let callCommands = [call, answer, hangup, hold, resume, mute, unmute, dtmf, transfer]

    private static let call = Command(
        name: "call", group: .calls,
        summary: "call a user and stay until the call ends",
        discussion: """
            Calls a user, shows the progress and returns when the call has ended; the exit code says how. With --as \
            a client that is already running places the call; with --user a client is made for this one call and \
            ends with it. Interrupt (Ctrl-C) hangs up; a second one ends at once. At a terminal a line shows the call's \
            time, levels and quality; m mutes or unmutes, h holds or resumes, 0-9 * # press that key in the call, and q \
            hangs up.

            In the embedded environment the user echo returns what it hears and the user announcement plays a \
            message.
            """,
        arguments: [
            CommandArgument(name: "DESTINATION", kind: .user, summary: "the user to call")
        ],
        options: [
            CommandOption(
                long: "as", kind: .user,
                summary: "place the call with this user's running client; not needed when only one is running",
                variable: "SINCHCTL_AS", conflicts: ["user"]),
            CommandOption(
                long: "user", short: "u", kind: .user, summary: "place the call with a client for this one call",
                conflicts: ["as"]),
            .capture, .playback, .play, .record,
            CommandOption(
                long: "duration", short: "d", kind: .duration,
                summary: "hang up this long after the call was established"),
            .flag("hangup-after-play", "hang up when the file of --play has been sent"),
            CommandOption(
                long: "ring-timeout", kind: .duration,
                summary: "give up when nobody has answered after this time and exit with 12", defaultValue: "60s"),
            CommandOption(
                long: "timeout", kind: .duration,
                summary: "end the call when it is not over after this time and exit with 124"),
            .flag(
                "detach", "return when the call is established; it goes on in the client's background",
                conflicts: ["user", "duration"]),
            CommandOption(
                long: "header", kind: .header, summary: "a header 'x-name: value' that the called client can read",
                isRepeatable: true),
            .tokenFileSetting, .tokenDescriptor,
        ],
        examples: [
            CommandExample("sinchctl call echo --user alice --duration 10", "hear yourself for ten seconds"),
            CommandExample(
                "sinchctl call bob --as alice --play hello.wav --record heard.wav --hangup-after-play --json",
                "say something, keep what bob answers, and report the measurements"),
        ],
        exitCodes: [
            .busy, .declined, .noAnswer, .noSuchUser, .forbidden, .tls, .network, .mediaFailed, .canceled,
            .dataUnusable, .inputMissing, .unreachable, .cannotCreate, .registrationRefused, .configuration,
            .interrupted, .timeout,
        ]
    )

    private static let answer = Command(
        name: "answer", group: .calls,
        summary: "answer an incoming call",
        discussion: "Answers the incoming call of a running client and returns when the call is established.",
        arguments: [.call],
        options: [
            .client, .capture, .playback, .play, .record,
            CommandOption(
                long: "header", kind: .header, summary: "a header 'x-name: value' that the caller can read",
                isRepeatable: true),
        ],
        examples: [
            CommandExample("sinchctl wait --for incoming && sinchctl answer", "answer the next call"),
            CommandExample("sinchctl answer --as bob --play hello.wav", "answer with a file"),
        ],
        exitCodes: [
            .unreachable, .noSuchUser, .mediaFailed, .canceled, .dataUnusable, .inputMissing, .cannotCreate, .timeout,
        ]
    )

    private static let hangup = Command(
        name: "hangup", group: .calls,
        summary: "end a call, or decline an incoming one",
        discussion: """
            Ends a call in whatever state it is: an established one is hung up, an outgoing one is canceled, an \
            incoming one is declined.
            """,
        arguments: [.call],
        options: [
            .client, .flag("all", "end every call of the client"),
            .flag("busy", "refuse an incoming call as busy instead of declining it"),
        ],
        examples: [CommandExample("sinchctl hangup --as alice", "end alice's call")],
        exitCodes: [.unreachable]
    )

    private static let mute = Command(
        name: "mute", group: .calls,
        summary: "send silence instead of sound",
        discussion: "Sends silence until unmute; what the other side says is still heard and recorded.",
        arguments: [.call],
        options: [.client],
        examples: [CommandExample("sinchctl mute --as alice", "the other side hears nothing")],
        exitCodes: [.unreachable]
    )

    private static let unmute = Command(
        name: "unmute", group: .calls,
        summary: "send sound again",
        discussion: "Ends what mute began.",
        arguments: [.call],
        options: [.client],
        examples: [CommandExample("sinchctl unmute --as alice", "the other side hears again")],
        exitCodes: [.unreachable]
    )
}
