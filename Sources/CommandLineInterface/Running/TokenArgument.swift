import Agent
import Configuration
import Glibc

extension ParsedCommand {
    /// A token from `--token-file`, `--token-fd`, the argument TOKEN, or standard input.
    func token(_ context: CommandContext) throws(CommandFailure) -> String {
        let takesArgument = command.arguments.contains { $0.name == "TOKEN" }
        let argument = takesArgument ? argument("TOKEN") : nil
        if let argument, argument != "-" {
            guard !isGiven("token-file"), !isGiven("token-fd") else {
                throw CommandFailure(
                    exit: .usage, message: "\(name): TOKEN and --token-file or --token-fd exclude each other",
                    hint: "give the token once")
            }
            return try TokenInput.checked(Array(argument.utf8), from: "TOKEN")
        }
        if let path = string("token-file"), path != "-" { return try TokenInput.read(path: path) }
        let descriptor = integer("token-fd").map { Int32(clamping: $0) } ?? context.standardInput
        if isatty(descriptor) == 1 { context.output.progress("enter the token, then Ctrl-D") }
        let origin = descriptor == context.standardInput ? "standard input" : "file descriptor \(descriptor)"
        return try TokenInput.read(descriptor: descriptor, from: origin)
    }
}
