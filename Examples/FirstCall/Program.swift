import Dispatch
@preconcurrency import Glibc

/// `first-call-example ENVIRONMENT.json USER CALLEE SECONDS`
@main
enum Program {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 4, let path = arguments.first, let last = arguments.last, let seconds = Int(last),
            (0...86_400).contains(seconds)
        else {
            fputs(
                """
                usage: first-call-example ENVIRONMENT.json USER CALLEE SECONDS
                ENVIRONMENT.json holds host, port, applicationKey and applicationSecret, as the file does that
                'sinchctl environment' writes. CALLEE may be 'echo'.

                """, stderr)
            exit(64)
        }
        do {
            let call = try FirstCall(
                environment: Environment.read(path), user: arguments[arguments.startIndex + 1],
                callee: arguments[arguments.startIndex + 2], seconds: seconds)
            call.start()
            // Delegates are held weakly, so the program holds on to its own.
            withExtendedLifetime(call) { dispatchMain() }
        } catch {
            fputs("first-call-example: \(error)\n", stderr)
            exit(78)
        }
    }
}
