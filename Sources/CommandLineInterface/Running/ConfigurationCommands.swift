import Configuration

/// `sinchctl config init`
@Sendable func runConfigurationInit(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> ExitCode {
    let paths: Paths
    do throws(ConfigurationError) {
        paths = try Paths(environment: parsed.variables(context))
        try Configuration.writeTemplate(paths: paths)
    } catch {
        throw error.commandFailure
    }
    context.output.result(["configFile": .string(paths.configFile)], text: "wrote \(paths.configFile)")
    return .ok
}

/// `sinchctl config show`
@Sendable func runConfigurationShow(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> ExitCode {
    // The report is made where the secrets are known; it is readable as it is.
    context.output.document(try parsed.configuration(context).report())
    return .ok
}

/// `sinchctl config check`
@Sendable func runConfigurationCheck(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> ExitCode {
    let variables = parsed.variables(context)
    let findings = Configuration.check(
        environment: variables, profile: parsed.namedProfile, overrides: parsed.overrides(context))
    let errors = findings.filter { $0.severity == .error }
    let path = (try? Paths(environment: variables))?.configFile
    if let first = errors.first, !context.output.isJSON {
        for finding in findings.filter({ $0 != first }) { context.output.line(finding.description) }
        throw first.error.commandFailure
    }
    context.output.result(
        [
            "configFile": JSONValue(path), "isValid": .bool(errors.isEmpty),
            "findings": .array(
                findings.map {
                    [
                        "severity": .string($0.severity.rawValue), "code": .string($0.code.rawValue),
                        "message": .string($0.message), "hint": JSONValue($0.hint),
                    ]
                }),
        ],
        text: (findings.map(\.description) + ["the configuration is valid"]).joined(separator: "\n"))
    if let first = errors.first { throw first.error.commandFailure }
    return .ok
}
