import Configuration

extension ParsedCommand {
    /// The settings in effect for this command: its options beat environment variables, which beat the profile.
    func configuration(_ context: CommandContext) throws(CommandFailure) -> Configuration {
        do throws(ConfigurationError) {
            let configuration = try Configuration.load(
                environment: variables(context), profile: namedProfile,
                overrides: overrides(context))
            for warning in configuration.warnings {
                context.output.warning(warning.message + (warning.hint.map { "; \($0)" } ?? ""))
            }
            return configuration
        } catch {
            throw error.commandFailure
        }
    }

    /// The environment variables, with `--config` in the place of the variable that it beats.
    func variables(_ context: CommandContext) -> [String: String] {
        var variables = context.environment
        if let path = string("config") { variables["SINCHCTL_CONFIG"] = context.absolute(path: path) }
        return variables
    }

    /// What this command's options say about settings. Paths are absolute, since another process may use them.
    func overrides(_ context: CommandContext) -> Overrides {
        var overrides = Overrides()
        for option in command.allOptions {
            guard let key = option.profileKey.flatMap({ ProfileKey(rawValue: $0) }), isGiven(option.long),
                let text = string(option.long)
            else { continue }
            switch option.kind {
            case .file where text == "-": continue  // standard input is read once, by the command itself
            case .file: overrides[key] = context.absolute(path: text)
            case .device: overrides[key] = context.absolute(device: text)
            default: overrides[key] = text
            }
        }
        if command.options.contains(where: { $0.long == "play" }), let path = string("play") {
            overrides[.capture] = "file:" + context.absolute(path: path)
        }
        return overrides
    }

    /// The profile that was named; nil leaves the choice to the configuration.
    var namedProfile: String? {
        isGiven("profile") ? string("profile") : nil
    }
}
