import FoundationEssentials
import Testing

@testable import Configuration

@Suite struct ExitCodeTests {
    @Test func theInterface() {
        // Written out once more on purpose: names and numbers are promised to scripts.
        let table: [(Int32, String)] = [
            (0, "ok"), (10, "busy"), (11, "declined"), (12, "noAnswer"), (13, "noSuchUser"), (14, "forbidden"),
            (15, "tls"), (16, "network"), (17, "mediaFailed"), (18, "assertionFailed"), (19, "canceled"),
            (64, "usage"), (65, "dataUnusable"), (66, "inputMissing"), (69, "unreachable"), (70, "internalError"),
            (73, "cannotCreate"), (74, "ioError"), (77, "registrationRefused"), (78, "configuration"),
            (124, "timeout"), (130, "interrupted"), (143, "terminated"),
        ]
        #expect(ExitCode.allCases.map(\.rawValue) == table.map(\.0))
        #expect(ExitCode.allCases.map(\.name) == table.map(\.1))
        for (number, name) in table { #expect(ExitCode(name: name)?.rawValue == number) }
        #expect(ExitCode(name: "nonsense") == nil)
        #expect(Set(ExitCode.allCases.map(\.meaning)).count == table.count)
    }

    @Test func failuresAsTextAndJSON() throws {
        let failure = CommandFailure(
            exit: .noAnswer, step: "ringing", sipStatus: 408, message: "bob did not answer", hint: "call again")
        #expect(failure.description == "bob did not answer; call again")
        #expect(CommandFailure(exit: .busy, message: "m").description == "m")
        let data = try JSONEncoder().encode(failure)
        let text = String(decoding: data, as: UTF8.self)
        #expect(text.contains("\"code\":\"noAnswer\"") && text.contains("\"exitCode\":12"))
        #expect(try JSONDecoder().decode(CommandFailure.self, from: data) == failure)
        // A code of a newer version.
        let newer = Data(#"{"code":"x","exitCode":99,"message":"m"}"#.utf8)
        #expect(try JSONDecoder().decode(CommandFailure.self, from: newer).exit == .internalError)
    }
}
