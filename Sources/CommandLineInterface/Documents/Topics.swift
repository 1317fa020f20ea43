import Configuration

/// Explanations that belong to no single command; help and manual share them.
enum Topics {
    /// What exit codes are about.
    static let exitCodes = """
        The exit code says how a command ended, so that a script need not read any text. With --json the same name and \
        number stand in the error: {"error": {"code": "noAnswer", "exitCode": 12, ...}}.
        """

    /// Where settings come from.
    static let settings = """
        An option beats the environment variable, which beats the profile of the configuration file, which beats the \
        default. Secrets are never taken from arguments, never logged and never shown; a configuration file that holds \
        a secret and can be read by others is refused.
        """

    /// Environment variables beside those of profile settings: first those that stand in for options, in alphabetical
    /// order, then those that others defined.
    static var variables: [(name: String, text: String)] {
        var own: [String: String] = [:]
        let options = CommandTable.globalOptions + CommandTable.leaves.flatMap(\.command.options)
        for option in options {
            guard option.profileKey == nil, let variable = option.variable else { continue }
            own[variable] = "stands in for --\(option.long): \(option.summary)"
        }
        return own.sorted { $0.key < $1.key }.map { (name: $0.key, text: $0.value) } + [
            ("NO_COLOR", "not empty: print without colour"),
            ("CLICOLOR_FORCE", "not empty and not 0: print with colour, also into a pipe"),
            ("XDG_CONFIG_HOME, XDG_RUNTIME_DIR, XDG_STATE_HOME", "where the files below are"),
        ]
    }

    /// What may stand in a profile of the configuration file.
    static var profileSettings: [(name: String, text: String)] {
        ProfileKey.allCases.map { key in
            let variable = key.isSecret ? "only in the file" : "variable: \(key.environmentVariable)"
            return (name: key.rawValue, text: "\(key.summary.replacing("…", with: "...")) (\(variable))")
        }
    }

    /// Files that are read or written.
    static let files: [(name: String, text: String)] = [
        (
            "$XDG_CONFIG_HOME/sinchctl/config.json",
            "the configuration file (JSON5: comments are allowed); ~/.config when the variable is not set"
        ),
        (
            "$XDG_RUNTIME_DIR/sinchctl/",
            "the sockets of running clients, for their owner only; run/ in the directory below when the variable is "
                + "not set"
        ),
        ("$XDG_STATE_HOME/sinchctl/", "logs; ~/.local/state when the variable is not set"),
    ]

    /// What audio devices are called.
    static let devices: [(name: String, text: String)] = [
        ("alsa:PCM", "a device of ALSA, such as alsa:default, alsa:pulse or alsa:hw:0,0"),
        ("file:PATH.wav", "a WAV file: read for --capture, written for --playback"),
        ("tone:HZ", "a sine wave"),
        ("silence", "digital silence"),
        ("null", "discards what is heard"),
        ("echo", "sends what is heard"),
    ]
}
