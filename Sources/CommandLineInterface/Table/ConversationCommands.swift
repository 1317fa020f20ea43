extension CommandTable {
    static let hold = Command(
        name: "hold", group: .calls,
        summary: "put a call on hold",
        discussion: """
            Neither side hears the other until resume. The command returns when the other side knows.
            """,
        arguments: [.call],
        options: [.client, limit("30s")],
        examples: [CommandExample("sinchctl hold --as alice", "alice's call waits")],
        exitCodes: [.unreachable, .network, .canceled, .timeout]
    )

    static let resume = Command(
        name: "resume", group: .calls,
        summary: "go on with a call that is on hold",
        discussion: "Ends what hold began. The command returns when the other side knows.",
        arguments: [.call],
        options: [.client, limit("30s")],
        examples: [CommandExample("sinchctl resume --as alice", "alice's call goes on")],
        exitCodes: [.unreachable, .network, .canceled, .timeout]
    )

    static let dtmf = Command(
        name: "dtmf", group: .calls,
        summary: "press keys in a call",
        discussion: """
            Sends keys (DTMF), 100 ms each, as telephone events in the media, or by INFO where the other side takes \
            none, and returns when the last one has been sent. The other client tells of them by the event dtmf.
            """,
        arguments: [
            CommandArgument(name: "KEYS", kind: .text("KEYS"), summary: "1 to 64 of 0-9 * # A-D; quote * and #"), .call,
        ],
        options: [.client, limit("30s")],
        examples: [CommandExample("sinchctl dtmf '123#' --as alice", "press 1, 2, 3 and the pound key")],
        exitCodes: [.unreachable, .network, .canceled, .timeout]
    )

    static let transfer = Command(
        name: "transfer", group: .calls,
        summary: "hand a call over to somebody else",
        discussion: """
            With --to the other side of the call is asked to call a third party. With --to-call it takes this client's \
            place in another call of this client, whose other side was asked before. Returns 0 when the new call \
            is answered, and the call here has ended; otherwise the exit code says why not, and the call goes on.

            The other side must allow it; a client of this program does so with start --accept-transfers.
            """,
        arguments: [.call],
        options: [
            CommandOption(long: "to", kind: .user, summary: "whom the other side is to call", conflicts: ["to-call"]),
            CommandOption(
                long: "to-call", kind: .call, summary: "the call in which the other side takes this client's place",
                conflicts: ["to"]),
            .client, limit("90s"),
        ],
        examples: [
            CommandExample("sinchctl transfer --to carol --as alice", "whoever talks to alice talks to carol"),
            CommandExample(
                "sinchctl transfer 06b4c3e6 --to-call 9ad01e77 --as alice",
                "connect alice's two callers"),
        ],
        exitCodes: [
            .unreachable, .busy, .declined, .noAnswer, .noSuchUser, .forbidden, .network, .canceled, .timeout,
        ]
    )

    private static func limit(_ time: String) -> CommandOption {
        CommandOption(
            long: "timeout", kind: .duration, summary: "give up waiting after this time and exit with 124",
            defaultValue: time)
    }
}
