import Audio
import MediaSession
import Network
import Primitives
import SinchEnvironment
import SinchRTC
import Synchronization
import Testing

/// What is heard, recorded and counted.
@Suite struct MediaTests {
    private func statistics(of call: SinchCall) async -> MediaStatistics {
        await withCheckedContinuation { continuation in
            call.statistics { continuation.resume(returning: $0) }
        }
    }

    /// Root mean square of the middle of a channel, 0…1 of full scale.
    private func level(_ samples: [Int16]) -> Double {
        let middle = samples.dropFirst(samples.count / 4).dropLast(samples.count / 4)
        guard !middle.isEmpty else { return 0 }
        let power = middle.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(middle.count)
        return power.squareRoot() / 32_768
    }

    @Test func bothSidesHearAndRecordEachOther() async throws {
        let (left, right) = (Scratch("alice"), Scratch("bob"))
        try await withEnvironment { environment in
            var aliceMedia = SinchCallMedia()
            aliceMedia.capture = .tone(500)
            aliceMedia.recording = left.path
            var bobMedia = SinchCallMedia()
            bobMedia.capture = .tone(1_300)
            bobMedia.playback = .file(right.path)
            let alice = try environment.user("alice")
            let bob = try environment.user("bob", policy: .answer, incomingMedia: bobMedia)
            try await alice.start()
            try await bob.start()
            let call = try alice.call("bob", media: aliceMedia)
            try await alice.wait("establish", of: call)
            // A second and a half of sound, counted in packets.
            try await eventually("await statistics(of: call).packetsReceived >= 75") {
                await statistics(of: call).packetsReceived >= 75
            }
            let running = await statistics(of: call)
            #expect(running.codec == "opus")
            #expect(running.security == "none")
            #expect(running.audioLevelReceived > 0.05)
            call.hangup()
            try await alice.wait("end", of: call)
            let incoming = try await bob.nextIncoming()
            try await bob.wait("end", of: incoming)
            #expect(call.lastStatistics.packetsReceived >= 75)
            #expect(call.lastStatistics.packetsSent >= 70)
            #expect(call.lastStatistics.packetsFromStrangers == 0)
            #expect(await statistics(of: call) == call.lastStatistics)
            // The end is told when the files are complete: they can be read now.
            let recording = try WAVFile(path: left.path)
            let heard = try WAVFile(path: right.path)
            #expect(recording.channels.count == 2)
            let sent = SignalMatch.compare(reference: tone(500), heard: recording.channels[0])
            let received = SignalMatch.compare(reference: tone(1_300), heard: recording.channels[1])
            let atBob = SignalMatch.compare(reference: tone(500), heard: heard.channels[0])
            for match in [sent, received, atBob] { #expect(match.score > SignalMatch.sameSignal) }
            // And not the other way round.
            let swapped = SignalMatch.compare(reference: tone(500), heard: recording.channels[1])
            #expect(swapped.score < SignalMatch.sameSignal)
            await alice.client.terminate()
            await bob.client.terminate()
        }
    }

    private func tone(_ frequency: Double) -> [Int16] {
        let source = ToneSource(frequency: frequency)
        return [Int16](unsafeUninitializedCapacity: 48_000) { buffer, count in
            _ = source.read(into: buffer)
            count = buffer.count
        }
    }

    @Test func mutedBeforeTheAnswerMeansSilenceFromTheFirstPacket() async throws {
        let file = Scratch("muted")
        try await withEnvironment { environment in
            var media = SinchCallMedia()
            media.playback = .file(file.path)
            let alice = try environment.user("alice")
            let bob = try environment.user("bob", policy: .hold, incomingMedia: media)
            try await alice.start()
            try await bob.start()
            alice.client.audioController.mute()
            alice.client.audioController.mute()
            let call = try alice.call("bob")
            let incoming = try await bob.nextIncoming()
            incoming.answer()
            try await bob.wait("establish", of: incoming)
            try await eventually("await statistics(of: incoming).packetsReceived >= 25") {
                await statistics(of: incoming).packetsReceived >= 25
            }
            #expect(await statistics(of: incoming).audioLevelReceived < 0.001)
            #expect(await statistics(of: call).packetsSent > 10, "a muted stream is a live stream")
            alice.client.audioController.unmute()
            try await alice.log.wait("unmuted") { $0.contains(.unmuted) }
            try await eventually("await statistics(of: incoming).audioLevelReceived >= 0.05") {
                await statistics(of: incoming).audioLevelReceived >= 0.05
            }
            // One call's own mute.
            call.setMuted(true)
            try await eventually("await statistics(of: incoming).audioLevelReceived <= 0.001") {
                await statistics(of: incoming).audioLevelReceived <= 0.001
            }
            call.hangup()
            try await bob.wait("end", of: incoming)
            #expect(alice.log.events.filter { $0 == .muted || $0 == .unmuted } == [.muted, .unmuted])
            await alice.client.terminate()
            await bob.client.terminate()
        }
    }

    @Test func aMutedCallStaysMutedFromBeforeItsAnswer() async throws {
        try await withUsers(policy: .hold) { alice, bob, _ in
            let call = try alice.call("bob")
            call.setMuted(true)
            let incoming = try await bob.nextIncoming()
            incoming.answer()
            try await bob.wait("establish", of: incoming)
            try await eventually("await statistics(of: incoming).packetsReceived >= 15") {
                await statistics(of: incoming).packetsReceived >= 15
            }
            #expect(await statistics(of: incoming).audioLevelReceived < 0.001)
        }
    }

    @Test func echoReturnsWhatWasSaid() async throws {
        let file = Scratch("echo")
        try await withUsers { alice, _, _ in
            var media = SinchCallMedia()
            media.capture = .tone(700)
            media.recording = file.path
            let call = try alice.call("echo", media: media)
            try await alice.wait("establish", of: call)
            try await eventually("await statistics(of: call).packetsReceived >= 60") {
                await statistics(of: call).packetsReceived >= 60
            }
            call.hangup()
            try await alice.wait("end", of: call)
            let recording = try WAVFile(path: file.path)
            #expect(level(recording.channels[1]) > 0.05)
            #expect(
                SignalMatch.compare(reference: tone(700), heard: recording.channels[1]).score > SignalMatch.sameSignal)
        }
    }

    @Test func theAnnouncementPlaysAndHangsUp() async throws {
        let (sound, file) = (Scratch("sound"), Scratch("heard"))
        try writeTone(700, seconds: 1, to: sound.path)
        try await withEnvironment(announcement: sound.path) { environment in
            let alice = try environment.user("alice")
            try await alice.start()
            var media = SinchCallMedia()
            media.capture = .silence
            media.playback = .file(file.path)
            let call = try alice.call("announcement", media: media)
            try await alice.wait("establish", of: call)
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .hungUp)
            #expect(call.details.termination?.isLocal == false)
            let heard = try WAVFile(path: file.path)
            #expect(SignalMatch.compare(reference: tone(700), heard: heard.channels[0]).score > SignalMatch.sameSignal)
            await alice.client.terminate()
        }
    }

    @Test func playingAFileAndHangingUp() async throws {
        let sound = Scratch("file")
        try writeTone(600, seconds: 0.5, to: sound.path)
        try await withUsers { alice, bob, _ in
            var media = SinchCallMedia()
            media.capture = .file(sound.path)
            media.hangsUpAfterPlaying = true
            let call = try alice.call("bob", media: media)
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .hungUp)
            #expect(call.details.termination?.isLocal == true)
            #expect(call.lastStatistics.packetsSent >= 20)
            let incoming = try await bob.nextIncoming()
            try await bob.wait("end", of: incoming)
        }
    }

    @Test(arguments: [true, false]) func filesThatCannotBeUsedEndTheCall(isRecording: Bool) async throws {
        try await withUsers { alice, bob, _ in
            var media = SinchCallMedia()
            if isRecording {
                media.recording = "/nonexistent-directory/x.wav"
            } else {
                media.capture = .file("/nonexistent.wav")
            }
            let call = try alice.call("bob", media: media)
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .error)
            #expect((call.details.error as? SinchError)?.code == .media)
            #expect(call.deviceError?.code == (isRecording ? .cannotCreate : .missing))
            let incoming = try await bob.nextIncoming()
            try await bob.wait("end", of: incoming)
        }
    }

    @Test func soundFilesPlayAndStop() async throws {
        let (sound, file) = (Scratch("ringtone"), Scratch("speaker"))
        try writeTone(900, seconds: 0.2, to: sound.path)
        try await withEnvironment { environment in
            let alice = try environment.user("alice") { $0.playback = .file(file.path) }
            try alice.client.audioController.startPlayingSoundFile(withPath: sound.path, looping: true)
            // Long enough to have begun again; the file grows as it plays.
            try await eventually("fileSize(file.path) >= 48_000") { fileSize(file.path) >= 48_000 }
            alice.client.audioController.stopPlayingSoundFile()
            alice.client.audioController.stopPlayingSoundFile()
            // Another one may follow, and termination stops it.
            try alice.client.audioController.startPlayingSoundFile(withPath: sound.path, looping: false)
            await alice.client.terminate()
            // After the end the file is opened and closed again, and nothing plays.
            try alice.client.audioController.startPlayingSoundFile(withPath: sound.path, looping: true)
        }
    }
}
