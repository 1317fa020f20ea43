extension CommandOption {
    /// Which running client a command speaks to.
    static let client = CommandOption(
        long: "as", aliases: ["user"], kind: .user,
        summary: "the user whose client is meant; not needed when only one is running", variable: "SINCHCTL_AS")

    /// What the other side hears.
    static let capture = CommandOption(
        long: "capture", kind: .device,
        summary: "where the sound that is sent comes from; else the sound card, without one silence",
        variable: "SINCHCTL_CAPTURE", profileKey: "capture", conflicts: ["play"])

    /// Where what the other side says goes to.
    static let playback = CommandOption(
        long: "playback", kind: .device,
        summary: "where the sound that is heard goes to; else the sound card, without one null",
        variable: "SINCHCTL_PLAYBACK", profileKey: "playback")

    /// A file as the source.
    static let play = CommandOption(
        long: "play", short: "p", kind: .file,
        summary: "send this WAV file once the call is established, then silence (short for --capture file:FILE)",
        conflicts: ["capture"])

    /// A recording of both directions.
    static let record = CommandOption(
        long: "record", short: "r", kind: .file,
        summary: "record the call as a stereo WAV file: left what is sent, right what is heard")

    /// Tokens that a backend made.
    static let tokenFile = CommandOption(
        long: "token-file", kind: .file, summary: "read the token from this file; - is standard input",
        conflicts: ["token-fd"])

    /// The same where a token is asked for again when it has expired: the file is read anew then.
    static let tokenFileSetting = CommandOption(
        long: "token-file", kind: .file, summary: "read the token from this file; - is standard input",
        variable: "SINCHCTL_TOKEN_FILE", profileKey: "tokenFile", conflicts: ["token-fd"])

    /// Tokens that a parent process hands over.
    static let tokenDescriptor = CommandOption(
        long: "token-fd", kind: .integer("N", 0...65_535), summary: "read the token from this file descriptor",
        conflicts: ["token-file"])
}

extension CommandArgument {
    /// The call that is meant.
    static let call = CommandArgument(
        name: "CALL", kind: .call, summary: "the call's identifier; not needed when there is only one",
        isOptional: true)
}
