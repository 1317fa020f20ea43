import Testing

@testable import CommandLineInterface

@Suite struct Values {
    @Test(arguments: [
        ("5", Duration.seconds(5)), ("5s", .seconds(5)), ("500ms", .milliseconds(500)), ("2m", .seconds(120)),
        ("1.5s", .milliseconds(1500)), ("48h", .seconds(172_800)), ("0", .zero), ("0.25", .milliseconds(250)),
    ])
    func durationsThatAreUnderstood(text: String, duration: Duration) {
        #expect(DurationText.parse(text) == duration)
    }

    @Test(arguments: [
        "", "s", "ms", "-5", "+5", "5 s", "5S", "5d", "1e3", "0x10", ".5", "5.", "1.2.3", "nan", "inf", "infinity",
        "99999999999999999999h", "٥", "5s5", "5ss",
    ])
    func durationsThatAreNot(text: String) {
        #expect(DurationText.parse(text) == nil)
    }

    @Test func durationTexts() {
        #expect([1, 59, 60, 90, 3600, 172_800].map(DurationText.text) == ["1s", "59s", "1m", "90s", "1h", "48h"])
    }

    @Test(arguments: ["alsa", "alsa:hw:0,0", "file:a b.wav", "tone", "tone:440", "silence", "null", "echo"])
    func deviceNames(text: String) throws {
        #expect(try ValueReader.read(text, as: .device) == .text(text))
    }

    @Test(arguments: ["alsa:", "file", "file:", "tone:", "silence:x", "null:", "hw:0", "default", "Echo"])
    func badDeviceNames(text: String) {
        #expect(throws: ValueReader.Refusal.self) { try ValueReader.read(text, as: .device) }
    }

    @Test(arguments: ["x-a: 1", "X-Order-Id:7", "x-empty:"])
    func headers(text: String) throws {
        #expect(try ValueReader.read(text, as: .header) == .text(text))
    }

    @Test(arguments: ["a: 1", "x-: 1", "x-a", "x a: 1", "x-a\r\nVia: z", "x-ä: 1", ": 1", "x-a\u{0}: 1"])
    func badHeaders(text: String) {
        #expect(throws: ValueReader.Refusal.self) { try ValueReader.read(text, as: .header) }
    }

    @Test func numbers() throws {
        let kind = ValueKind.integer("N", 1...64)
        #expect(try ValueReader.read("64", as: kind) == .integer(64))
        for text in ["0", "65", "1.0", "one", "99999999999999999999", " 1", "--1"] {
            #expect(throws: ValueReader.Refusal.self) { try ValueReader.read(text, as: kind) }
        }
    }

    @Test func distances() {
        func distance(_ left: String, _ right: String) -> Int {
            Suggestion.distance(Array(left.utf8), Array(right.utf8))
        }
        #expect(distance("", "abc") == 3)
        #expect(distance("kitten", "sitting") == 3)
        #expect(distance("recrod", "record") == 1)
        #expect(distance("same", "same") == 0)
        #expect(Suggestion.nearest(to: "STATUS", among: ["start", "status"]) == "status")
        #expect(Suggestion.nearest(to: "x", among: ["as", "jwt"]) == nil)
        #expect(Suggestion.nearest(to: String(repeating: "a", count: 100_000), among: ["call"]) == nil)
    }
}
