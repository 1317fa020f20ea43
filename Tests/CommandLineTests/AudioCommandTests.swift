import Configuration
import Testing

@testable import CommandLineInterface

@Suite struct AudioCommands {
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

    @Test func sameSoundIsFound() async throws {
        let scratch = try Scratch()
        let reference = try make("part.wav", in: scratch, "audio/speech.wav {} trim 7.5 2")
        let heard = try make("heard.wav", in: scratch, "audio/speech.wav {} trim 7 3")
        let result = await run("verify", reference, heard)
        #expect(result.code == .ok)
        #expect(result.output.hasPrefix("match      100.0 % (same sound)\n"))
        #expect(result.output.contains("begins at  0.500 s\n"))
        #expect(await run("verify", reference, heard, "--minimum-length", "30s").code == .assertionFailed)
    }

    @Test func otherSoundIsNot() async throws {
        let scratch = try Scratch()
        let reference = try make("part.wav", in: scratch, "audio/speech.wav {} trim 7.5 2")
        let heard = try make("other.wav", in: scratch, "audio/speech.wav {} trim 1 3")
        let result = await run("verify", reference, heard, json: true)
        #expect(result.code == .assertionFailed)
        #expect(result.output.contains("\"isMatch\":false"))
        #expect(result.output.contains("\"code\":\"assertionFailed\""))
        #expect(result.output.split(separator: "\n").count == 1)
    }

    @Test func channelsOfARecording() async throws {
        let scratch = try Scratch()
        let reference = try make("part.wav", in: scratch, "audio/speech.wav {} trim 7.5 2")
        let stereo = try make("stereo.wav", in: scratch, "-M -v 0 '\(reference)' -v 1 '\(reference)' {}")
        #expect(await run("verify", reference, stereo).code == .ok)
        #expect(await run("verify", reference, stereo, "--channel", "left").code == .assertionFailed)
    }

    /// Makes a WAV file with sox; `{}` stands for its path.
    private func make(_ name: String, in scratch: Scratch, _ command: String) throws -> String {
        let path = "\(scratch.path)/\(name)"
        let result = shell("sox " + command.replacing("{}", with: "'\(path)'"))
        try #require(result.status == 0, "sox failed, or is missing (run scripts/setup test): \(result.text)")
        return path
    }

    @Test func filesThatCannotBeUsed() async {
        #expect(await run("verify", answer, "/nonexistent.wav").code == .inputMissing)
        #expect(await run("verify", "\(repository)/LICENSE", answer).code == .dataUnusable)
    }
}
