/// How a command ended: the process's exit status. The numbers and names are part of the interface.
///
/// 64 to 78 have the meanings of `sysexits.h`; 124 is what `timeout(1)` uses; 130 and 143 are a shell's codes for the
/// signals INT and TERM.
public enum ExitCode: Int32, CaseIterable, Sendable, Codable {
    /// Done; a call was established and ended normally.
    case ok = 0
    /// The person called is busy.
    case busy = 10
    /// The person called declined.
    case declined = 11
    /// Nobody answered in time.
    case noAnswer = 12
    /// The user called does not exist, or has no device registered.
    case noSuchUser = 13
    /// Not authorised for this call.
    case forbidden = 14
    /// TLS or certificate trouble.
    case tls = 15
    /// Network or transport trouble.
    case network = 16
    /// Media was never established, or went inactive.
    case mediaFailed = 17
    /// An assertion failed (`probe`, `--expect`).
    case assertionFailed = 18
    /// The call was canceled, or another device answered it.
    case canceled = 19
    /// The command line makes no sense.
    case usage = 64
    /// Input data, such as a WAV file or a token, is unusable.
    case dataUnusable = 65
    /// An input file is missing.
    case inputMissing = 66
    /// The agent or the environment cannot be reached.
    case unreachable = 69
    /// An internal error: a fault of this program.
    case internalError = 70
    /// An output file cannot be created.
    case cannotCreate = 73
    /// Reading or writing failed.
    case ioError = 74
    /// The registration was refused: bad token, forbidden.
    case registrationRefused = 77
    /// The configuration is wrong.
    case configuration = 78
    /// The time given with `--timeout` ran out.
    case timeout = 124
    /// Interrupted by the user (SIGINT).
    case interrupted = 130
    /// Terminated (SIGTERM).
    case terminated = 143

    /// The name in JSON errors (`"code"`).
    public var name: String { "\(self)" }

    /// The code of that name.
    public init?(name: String) {
        guard let code = ExitCode.allCases.first(where: { $0.name == name }) else { return nil }
        self = code
    }

    /// What the code means, in a few words, for tables in help and manual.
    public var meaning: String {
        switch self {
        case .ok: "done; the call was established and ended normally"
        case .busy: "busy"
        case .declined: "declined"
        case .noAnswer: "no answer"
        case .noSuchUser: "no such user"
        case .forbidden: "not authorised for this call"
        case .tls: "TLS or certificate"
        case .network: "network or transport"
        case .mediaFailed: "media failed: never established, or went inactive"
        case .assertionFailed: "an assertion failed"
        case .canceled: "canceled, or answered by another device"
        case .usage: "usage"
        case .dataUnusable: "input data unusable"
        case .inputMissing: "input file missing"
        case .unreachable: "agent or environment unreachable"
        case .internalError: "internal error"
        case .cannotCreate: "output cannot be created"
        case .ioError: "I/O error"
        case .registrationRefused: "registration refused"
        case .configuration: "configuration"
        case .timeout: "the time given with --timeout ran out"
        case .interrupted: "interrupted"
        case .terminated: "terminated"
        }
    }
}
