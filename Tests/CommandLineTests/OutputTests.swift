import Configuration
import Testing

@testable import CommandLineInterface

@Suite struct Outputs {
    @Test func jsonIsSortedAndEscaped() {
        let value: JSONValue = [
            "b": [1, true, .null, []], "a": "\"\\\n\u{1}é/", "c": [:], "d": .number(1.5), "e": .number(.infinity),
        ]
        #expect(value.text() == #"{"a":"\"\\\n\u0001é/","b":[1,true,null,[]],"c":{},"d":1.5,"e":null}"#)
        #expect((["a": [1, 2]] as JSONValue).text(indented: true) == "{\n  \"a\": [\n    1,\n    2\n  ]\n}")
        #expect(JSONValue(UInt64.max) == .null)
    }

    @Test func failureIsOneLineAndOneDocument() {
        let capture = Capture()
        let output = capture.makeOutput(isJSON: true)
        output.line("for people")
        output.progress("calling")
        output.failure(
            CommandFailure(
                exit: .noAnswer, step: "ringing", sipStatus: 408, message: "call to bob: nobody answered",
                hint: "raise --timeout"))
        #expect(capture.error == "sinchctl: call to bob: nobody answered; raise --timeout\n")
        #expect(
            capture.output == """
                {"error":{"code":"noAnswer","exitCode":12,"hint":"raise --timeout",\
                "message":"call to bob: nobody answered","sipStatus":408,"step":"ringing"}}

                """)
    }

    @Test func failureAfterTheDocumentDoesNotAddASecond() {
        let capture = Capture()
        let output = capture.makeOutput(isJSON: true)
        output.result(["ok": true], text: "fine")
        output.failure(CommandFailure(exit: .ioError, message: "late"))
        #expect(capture.output == "{\"ok\":true}\n")
        #expect(capture.error == "sinchctl: late\n")
    }

    @Test func quietLeavesResultsAndErrors() {
        let capture = Capture()
        let output = capture.makeOutput(isQuiet: true)
        output.progress("calling")
        output.line("result")
        output.warning("careful")
        #expect(capture.output == "result\n")
        #expect(capture.error == "sinchctl: warning: careful\n")
    }

    @Test func tableIsAligned() {
        var table = TextTable(["USER", "CALLS", "STATE"], alignments: [.left, .right, .left])
        #expect(table.text(for: .plain) == "")
        table.add(["alice", "12", "registered"])
        table.add(["bo\u{1B}b", "1"])
        #expect(
            table.text(for: .plain) == """
                USER   CALLS  STATE
                alice     12  registered
                bo?b       1  -

                """)
    }

    @Test(arguments: [
        (true, [:] as [String: String], false, false), (true, ["TERM": "xterm"], false, true),
        (true, ["TERM": "dumb"], false, false), (false, ["TERM": "xterm"], false, false),
        (false, ["CLICOLOR_FORCE": "1"], false, true), (false, ["CLICOLOR_FORCE": "0"], false, false),
        (true, ["TERM": "xterm", "NO_COLOR": "1"], false, false),
        (true, ["TERM": "xterm", "NO_COLOR": ""], false, true),
        (true, ["TERM": "xterm", "CLICOLOR_FORCE": "1", "NO_COLOR": "1"], false, false),
        (true, ["TERM": "xterm", "CLICOLOR_FORCE": "1"], true, false),
    ])
    func colours(isTerminal: Bool, environment: [String: String], noColor: Bool, wanted: Bool) {
        #expect(
            Terminal.wantsColor(isTerminal: isTerminal, environment: environment, noColor: noColor) == wanted)
    }

    @Test func stylesOnlyWithColour() {
        #expect(Terminal.plain.styled("x", .bad) == "x")
        let colored = Terminal(isInteractive: true, hasColor: true, width: 80)
        #expect(colored.styled("x", .bad) == "\u{1B}[31mx\u{1B}[0m")
    }

    @Test(arguments: [
        (Int64(0), "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
        (1_514_862_245, "2018-01-02T03:04:05Z"), (4_107_542_399, "2100-02-28T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"),
        (-62_167_219_200, "0000-01-01T00:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
    ])
    func timestamps(seconds: Int64, text: String) {
        #expect(Timestamp.text(unixSeconds: seconds) == text)
    }

    @Test func timestampsOutOfRangeAndMilliseconds() {
        #expect(Timestamp.text(unixSeconds: .max) == nil)
        #expect(Timestamp.text(unixSeconds: .min) == nil)
        #expect(Timestamp.text(unixMilliseconds: .min) == nil)
        #expect(Timestamp.text(unixMilliseconds: 1_007) == "1970-01-01T00:00:01.007Z")
        #expect(Timestamp.text(unixMilliseconds: -1) == "1969-12-31T23:59:59.999Z")
    }
}
