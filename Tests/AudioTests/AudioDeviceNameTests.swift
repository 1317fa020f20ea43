import Testing

@testable import Audio

@Suite struct AudioDeviceNameTests {
    @Test(arguments: [
        ("alsa:default", AudioDeviceName.alsa("default")), ("alsa:hw:0,0", .alsa("hw:0,0")),
        ("alsa:plughw:CARD=PCH,DEV=0", .alsa("plughw:CARD=PCH,DEV=0")), ("file:a b:c.wav", .file("a b:c.wav")),
        ("tone:440", .tone(440)), ("tone:997.5", .tone(997.5)), ("silence", .silence), ("null", .null),
        ("echo", .echo),
    ])
    func readsAndPrints(text: String, name: AudioDeviceName) throws {
        #expect(try AudioDeviceName(parsing: text) == name)
        #expect(name.description == text)
    }

    @Test func shortForms() throws {
        #expect(try AudioDeviceName(parsing: "alsa") == .alsa("default"))
        #expect(try AudioDeviceName(parsing: "tone") == .tone(440))
    }

    @Test(arguments: [
        "", "default", "alsa:", "file:", "file", "tone:", "tone:0", "tone:19", "tone:20001", "tone:nan", "tone:inf",
        "tone:-440", "echo:1", "null:", "Silence", "alsa:a\0b", "pulse:x",
    ])
    func refuses(text: String) {
        let error = #expect(throws: AudioError.self) { try AudioDeviceName(parsing: text) }
        #expect(error?.code == .invalidName)
        #expect(error?.hint != nil)
    }

    @Test func directionsAreChecked() {
        #expect(#expect(throws: AudioError.self) { try makeSink(.tone(440)) }?.code == .invalidName)
        #expect(#expect(throws: AudioError.self) { try makeSink(.echo) }?.code == .invalidName)
        #expect(#expect(throws: AudioError.self) { try makeSource(.echo) }?.code == .invalidName)
        #expect(
            #expect(throws: AudioError.self) { try makeDevicePair(capture: .tone(440), playback: .echo) }?.code
                == .invalidName)
    }

    @Test func failedPairLeavesNoFile() {
        let scratch = Scratch()
        let output = scratch.file("out.wav")
        let error = #expect(throws: AudioError.self) {
            try makeDevicePair(capture: .file(scratch.file("none.wav")), playback: .file(output))
        }
        #expect(error?.code == .missing)
        #expect(readFile(output).isEmpty)
    }
}
