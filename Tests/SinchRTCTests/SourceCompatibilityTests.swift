import Dispatch
import FoundationEssentials
import SinchRTC
import Synchronization
import Testing

/// What an app that was written for the SDK writes, with the SDK's spellings. That it compiles is half of the test.
@Suite struct SourceCompatibilityTests {
    /// Only what the SDK requires: everything else has a default.
    private final class Minimal: SinchClientDelegate, SinchCallClientDelegate, SinchCallDelegate,
        SinchAudioControllerDelegate
    {
        var call: SinchCall?

        func clientRequiresRegistrationCredentials(
            _ client: SinchClient, withCallback callback: SinchClientRegistration
        ) {
            do {
                callback.register(
                    withJWT: try SinchJWT.sign(
                        applicationKey: TestEnvironment.key, applicationSecret: "ax8hTTQJF0OPXL32r1LHMA==",
                        userId: client.userId))
            } catch {
                callback.registerDidFail(error: error)
            }
        }

        func clientDidStart(_ client: SinchClient) {}
        func clientDidFail(_ client: SinchClient, error: Error) {}

        func client(_ client: SinchCallClient, didReceiveIncomingCall call: SinchCall) {
            call.delegate = self
            call.answer()
        }
    }

    /// An observer as apps compare them.
    private final class Observers {
        var all: [SinchCallDelegate] = []
        func remove(_ observer: SinchCallDelegate) { all.removeAll { $0 === observer } }
    }

    @Test func theFirstCallOfTheGuide() throws {
        let client: SinchClient = try SinchRTC.client(
            withApplicationKey: TestEnvironment.key, environmentHost: "127.0.0.1:9", userId: "alice")
        let delegate = Minimal()
        client.delegate = delegate
        client.callClient.delegate = delegate
        client.audioController.delegate = delegate
        #expect(client.userId == "alice")
        #expect(client.isStarted == false)
        let results: [Result<SinchCall, Error>] = [
            client.callClient.callUser(withId: "bob"),
            client.callClient.callUser(withId: "bob", headers: ["x-a": "b"]),
            client.callClient.callUser(withId: "bob", usingHeaders: ["x-a": "b"]),
            client.callClient.callPhoneNumber("+46000000000"),
            client.callClient.callPhoneNumber("+46000000000", headers: [:]),
            client.callClient.callPhoneNumber("+46000000000", usingHeaders: [:]),
            client.callClient.callSIP("bob@example.com"),
            client.callClient.callSIP("bob@example.com", headers: ["x-a": "b"]),
            client.callClient.callSIP("bob@example.com", usingHeaders: ["x-a": "b"]),
        ]
        for result in results {
            switch result {
            case .success(let call):
                call.delegate = delegate
                call.userInfo = 7
                #expect(call.userInfo as? Int == 7)
                #expect(!call.callId.isEmpty && !call.remoteUserId.isEmpty)
                let state: SinchCall.State = call.state
                #expect(state == .initiating || state == .ended)
                let direction: SinchCall.Direction = call.direction
                #expect(direction == .outgoing)
                call.hangup()
            case .failure(let error):
                Issue.record(error)
            }
        }
        client.audioController.mute()
        client.audioController.unmute()
        client.audioController.stopPlayingSoundFile()
        let observers = Observers()
        observers.all = [delegate]
        observers.remove(delegate)
        #expect(observers.all.isEmpty)
        client.terminateGracefully()
    }

    @Test func statesCausesAndDetailsAsAppsReadThem() throws {
        let states: [SinchCall.State] = [.initiating, .progressing, .ringing, .answered, .established, .ended]
        #expect(states.map(\.rawValue) == [0, 1, 2, 3, 4, 5])
        #expect(states == states.sorted())
        #expect(SinchCall.Direction.incoming.rawValue == 0 && SinchCall.Direction.outgoing.rawValue == 1)
        let causes: [SinchCallDetails.EndCause] = [
            .none, .timeout, .denied, .noAnswer, .error, .hungUp, .canceled, .otherDeviceAnswered, .inactive,
            .voipCallDetected, .gsmCallDetected,
        ]
        let names: [String] = causes.map(\.rawValue)
        #expect(Set(names).count == 11)
        let client = try SinchRTC.client(
            withApplicationKey: TestEnvironment.key, environmentHost: "127.0.0.1:9", userId: "alice")
        let call = try client.callClient.callUser(withId: "bob").get()
        let details: SinchCallDetails = call.details
        let dates: [Date?] = [
            details.startedTime, details.progressedTime, details.rungTime, details.answeredTime,
            details.establishedTime,
        ]
        #expect(dates.compactMap(\.self).count == 1)
        let error: Error? = details.error
        #expect(error == nil || details.endCause == .error)
        #expect(!details.isVideoOffered)
        let line: String = details.toString
        #expect(line.contains("endCause="))
        client.terminateGracefully()
    }

    @Test func theVersionHasABuildSuffix() {
        let version: String = SinchRTC.version()
        #expect(version.contains("+"))
    }

    /// In a process of its own: the queue and the log callback belong to the whole process.
    @Test func callbacksComeOnTheQueueThatWasSet() async {
        await #expect(processExitsWith: .success) {
            // On Linux each `main` is an object of its own.
            #expect(SinchRTC.getCallbackQueue().label == DispatchQueue.main.label)
            let key = DispatchSpecificKey<Int>()
            let queue = DispatchQueue(label: "callbacks")
            queue.setSpecific(key: key, value: 5)
            SinchRTC.setCallbackQueue(queue: queue)
            #expect(SinchRTC.getCallbackQueue() === queue)
            let lines = EventLog<String>()
            SinchRTC.setLogCallback { severity, area, message, time in
                _ = time.timeIntervalSince1970
                lines.append("\(severity) \(area) \(message)")
            }
            let environment = try await TestEnvironment.start()
            let alice = try environment.user("alice")
            try await alice.start()
            let seen: Int? = await withCheckedContinuation { continuation in
                alice.client.status { _ in
                    continuation.resume(returning: DispatchQueue.getSpecific(key: key))
                }
            }
            #expect(seen == 5)
            let call = try alice.call("echo")
            try await alice.wait("establish", of: call)
            call.hangup()
            try await alice.wait("end", of: call)
            #expect(lines.events.contains { $0.contains("info call \(call.callId) established") })
            // What is logged is no secret.
            #expect(!lines.events.contains { $0.contains("eyJ") || $0.contains(environment.secret.revealed()) })
            await alice.client.terminate()
            await environment.server.stop()
        }
    }
}
