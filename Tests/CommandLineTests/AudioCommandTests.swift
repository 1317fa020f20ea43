import Configuration
import Testing

@testable import CommandLineInterface

@Suite struct AudioCommands {
    private let speech = "\(repository)/audio/speech.wav"
    private let answer = "\(repository)/audio/answer.wav"

    @Test func devicesNameTheVirtualOnes() async {
        let result = await run("devices")
        #expect(result.code == .ok)
        #expect(result.output.hasPrefix("DEVICE"))
        let json = await run("devices", json: true)
        for name in ["file:PATH.wav", "tone:HZ", "silence", "null", "echo"] {
            #expect(result.output.contains("\n\(name) "))
            #expect(json.output.contains("\"name\":\"\(name)\""))
        }
    }

    @Test func sameSoundIsFound() async {
        let result = await run("verify", answer, speech)
        #expect(result.code == .ok)
        #expect(result.output.hasPrefix("match      100.0 % (same sound)\n"))
        #expect(result.output.contains("begins at  6.600 s\n"))
    }

    @Test func otherSoundIsNot() async throws {
        let scratch = try Scratch()
        let first = "\(scratch.path)/first.wav"
        let cut = shell("sox audio/speech.wav '\(first)' trim 0 6.5")
        try #require(cut.status == 0, "sox is missing: run scripts/setup test")
        let result = await run("verify", answer, first, json: true)
        #expect(result.code == .assertionFailed)
        #expect(result.output.contains("\"isMatch\":false"))
        #expect(result.output.contains("\"code\":\"assertionFailed\""))
        #expect(result.output.split(separator: "\n").count == 1)
        #expect(await run("verify", answer, first, "--minimum-match", "0").code == .ok)
        #expect(await run("verify", answer, speech, "--minimum-length", "30s").code == .assertionFailed)
    }

    @Test func channelsOfARecording() async throws {
        let scratch = try Scratch()
        let stereo = "\(scratch.path)/stereo.wav"
        let merged = shell("sox -M -v 0 audio/answer.wav -v 1 audio/answer.wav '\(stereo)'")
        try #require(merged.status == 0, "sox is missing: run scripts/setup test")
        #expect(await run("verify", answer, stereo).code == .ok)
        #expect(await run("verify", answer, stereo, "--channel", "left").code == .assertionFailed)
    }

    @Test func filesThatCannotBeUsed() async {
        #expect(await run("verify", answer, "/nonexistent.wav").code == .inputMissing)
        #expect(await run("verify", "\(repository)/LICENSE", answer).code == .dataUnusable)
    }
}
