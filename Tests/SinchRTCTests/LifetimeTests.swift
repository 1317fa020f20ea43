import Dispatch
import SinchEnvironment
import SinchRTC
import Synchronization
import Testing
import Token

/// What is left of a client when it is gone: nothing.
@Suite struct LifetimeTests {
    @Test func aTerminatedClientIsFreed() async throws {
        try await withEnvironment { environment in
            weak var client: SinchClient?
            weak var weakCall: SinchCall?
            do {
                let alice = try environment.user("alice")
                client = alice.client
                try await alice.start()
                let call = try alice.call("echo")
                weakCall = call
                try await alice.wait("establish", of: call)
                await alice.client.terminate()
                try await alice.wait("end", of: call)
            }
            await settle()
            #expect(client == nil)
            #expect(weakCall == nil)
        }
    }

    @Test func aForgottenClientLeavesThePlatform() async throws {
        try await withEnvironment { environment in
            let bob = try environment.user("bob", policy: .answer)
            try await bob.start()
            weak var client: SinchClient?
            do {
                let alice = try environment.user("alice")
                client = alice.client
                try await alice.start()
                let call = try alice.call("bob")
                try await alice.wait("establish", of: call)
                #expect(await environment.server.registrations == 3)
            }
            // Nobody terminated it, but bob's call ends and the registration goes.
            let incoming = try await bob.nextIncoming()
            try await bob.wait("end", of: incoming)
            #expect(incoming.details.endCause == .hungUp)
            #expect(client == nil)
            try await eventually("await environment.server.registrations <= 2") {
                await environment.server.registrations <= 2
            }
            await bob.client.terminate()
        }
    }

    @Test func delegatesAreHeldWeakly() async throws {
        try await withEnvironment { environment in
            let client = try SinchRTC.client(
                configuration: TestEnvironment.configuration("alice", at: environment.address))
            weak var gone: Delegate?
            do {
                let delegate = Delegate()
                gone = delegate
                client.delegate = delegate
                client.callClient.delegate = delegate
                client.audioController.delegate = delegate
                let call = try client.callClient.callUser(withId: "bob").get()
                call.delegate = delegate
                #expect(call.delegate === delegate)
                #expect(client.delegate === delegate)
            }
            await settle()
            #expect(gone == nil)
            #expect(client.delegate == nil)
            #expect(client.callClient.delegate == nil)
            #expect(client.audioController.delegate == nil)
            await client.terminate()
        }
    }

    /// In a process of its own, since others open descriptors and threads as they like.
    @Test func fiftyClientsLeaveNoDescriptorAndNoThread() async {
        await #expect(processExitsWith: .success) {
            func round(_ environment: TestEnvironment, _ index: Int) async throws {
                let alice = try environment.user("alice", transport: index % 2 == 0 ? "udp" : "tcp")
                try await alice.start()
                let call = try alice.call("echo")
                try await alice.wait("establish", of: call)
                await alice.client.terminate()
            }
            let environment = try await TestEnvironment.start()
            // What is made once per process is made in the first rounds.
            for index in 0..<4 { try await round(environment, index) }
            await settle()
            let descriptors = entries(of: "/proc/self/fd").count
            for index in 0..<50 { try await round(environment, index) }
            await settle()
            // The environment's own side of a connection is closed when it hears of it: soon, not at once.
            func mediaThreads() -> Int {
                entries(of: "/proc/self/task").count { id in
                    readText("/proc/self/task/\(id)/comm").hasPrefix("sinch-media")
                }
            }
            // Of the media threads only those of the environment's own user may be left.
            try? await eventually("descriptors and threads to go") {
                entries(of: "/proc/self/fd").count <= descriptors && mediaThreads() == 1
            }
            #expect(entries(of: "/proc/self/fd").count <= descriptors)
            #expect(mediaThreads() == 1)
            await environment.server.stop()
        }
    }

    @Test func manyThreadsAtOnce() async throws {
        try await withUsers { alice, bob, _ in
            let calls = try (0..<4).map { _ in try alice.call("bob") }
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<200 {
                    let call = calls[index % calls.count]
                    group.addTask {
                        switch index % 10 {
                        case 0: alice.client.audioController.mute()
                        case 1: alice.client.audioController.unmute()
                        case 2: call.setMuted(index % 4 == 0)
                        case 3: call.statistics { _ in }
                        case 4: call.delegate = index % 8 == 4 ? nil : alice
                        case 5: _ = (call.state, call.details.toString, call.headers, alice.client.isStarted)
                        case 6: call.answer()
                        case 7: alice.client.status { _ in }
                        case 8: call.userInfo = index
                        default: if index > 150 { call.hangup() }
                        }
                    }
                }
            }
            for call in calls {
                call.delegate = alice
                call.hangup()
            }
            await alice.client.terminate()
            await bob.client.terminate()
            await drainCallbacks()
            for call in calls { #expect(call.state == .ended) }
            for call in bob.incoming { #expect(call.state == .ended) }
        }
    }
}

private final class Delegate: SinchClientDelegate, SinchCallClientDelegate, SinchCallDelegate,
    SinchAudioControllerDelegate
{
    func clientRequiresRegistrationCredentials(
        _ client: SinchClient, withCallback callback: SinchClientRegistration
    ) {}
    func clientDidStart(_ client: SinchClient) {}
    func clientDidFail(_ client: SinchClient, error: Error) {}
    func client(_ client: SinchCallClient, didReceiveIncomingCall call: SinchCall) {}
}

/// Returns when the signalling thread and the callback queue have let go of what they were given.
private func settle() async {
    for _ in 0..<3 {
        if let loop = try? signallingLoop.get() { try? await loop.call {} }
        await drainCallbacks()
    }
}
