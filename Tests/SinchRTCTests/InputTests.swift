import SinchEnvironment
import SinchRTC
import Testing
import Token

/// What is refused before anything reaches the wire.
@Suite struct InputTests {
    private func makeUser() throws -> TestUser {
        let configuration = SinchClientConfiguration(
            applicationKey: TestEnvironment.key, environmentHost: "127.0.0.1:9", userId: "alice")
        return try TestUser(configuration, secret: nil)
    }

    private func code(_ result: Result<SinchCall, Error>) -> SinchError.Code? {
        guard case .failure(let error) = result else { return nil }
        return (error as? SinchError)?.code
    }

    @Test(arguments: ["", "a b", "bob@example.com", "böb", "a/b", "bob\r\nX: y", String(repeating: "a", count: 256)])
    func userIdRule(id: String) throws {
        let alice = try makeUser()
        #expect(code(alice.client.callClient.callUser(withId: id)) == .invalidArgument)
        #expect(throws: SinchError.self) {
            try SinchRTC.client(
                withApplicationKey: TestEnvironment.key, environmentHost: "127.0.0.1:9", userId: id)
        }
    }

    @Test(arguments: ["bob", "A-z_0=", String(repeating: "a", count: 255)]) func goodUserIds(id: String) throws {
        let alice = try makeUser()
        let call = try alice.client.callClient.callUser(withId: id).get()
        #expect(call.remoteUserId == id)
        #expect(call.direction == .outgoing)
        call.hangup()
    }

    @Test(arguments: [
        ["x-a": String(repeating: "b", count: 1_022)], ["x-a": "b\r\nVia: c"], ["x-a": "b\nc"], ["x-a": "b\0c"],
        ["x-a\r\nVia": "b"], ["x-": "b"], ["Via": "b"], ["x a": "b"], ["": "b"],
    ]) func badHeaders(headers: [String: String]) throws {
        let alice = try makeUser()
        #expect(code(alice.client.callClient.callUser(withId: "bob", headers: headers)) == .invalidArgument)
        #expect(code(alice.client.callClient.callUser(withId: "bob", usingHeaders: headers)) == .invalidArgument)
        #expect(code(alice.client.callClient.callSIP("bob@example.com", headers: headers)) == .invalidArgument)
        #expect(code(alice.client.callClient.callPhoneNumber("+46000000000", headers: headers)) == .invalidArgument)
    }

    @Test func headersUpToTheLimit() throws {
        let alice = try makeUser()
        let call = try alice.client.callClient.callUser(
            withId: "bob", headers: ["x-a": String(repeating: "b", count: 1_021)]
        ).get()
        #expect(call.headers["x-a"]?.count == 1_021)
    }

    @Test(arguments: ["", "+", "+12", "46000000000", "+4600000000000000", "+46 000", "+46000x", "+46000\r\n"])
    func badPhoneNumbers(number: String) throws {
        #expect(code(try makeUser().client.callClient.callPhoneNumber(number)) == .invalidArgument)
    }

    @Test(arguments: ["", "bob", "@example.com", "sip:example.com", "bob@", "b b@example.com", "bob@a\r\nVia: x"])
    func badSIPAddresses(address: String) throws {
        #expect(code(try makeUser().client.callClient.callSIP(address)) == .invalidArgument)
    }

    @Test(arguments: ["bob@example.com", "sip:bob@example.com", "sips:bob@example.com:5061"])
    func goodSIPAddresses(address: String) throws {
        let call = try makeUser().client.callClient.callSIP(address).get()
        #expect(call.remoteUserId == address)
    }

    @Test(arguments: ["", "bad host", "host:99999", "a@b", "127.0.0.1;transport=carrier-pigeon"])
    func badEnvironmentHosts(host: String) {
        #expect {
            try SinchRTC.client(withApplicationKey: TestEnvironment.key, environmentHost: host, userId: "alice")
        } throws: { ($0 as? SinchError)?.code == .invalidArgument }
    }

    @Test(arguments: ["ocra.api.sinch.com", "ocra-euc1.api.sinch.com", "OCRA.api.sinch.com"])
    func theVendorsHostsAreNotSpokenTo(host: String) {
        #expect {
            try SinchRTC.client(withApplicationKey: TestEnvironment.key, environmentHost: host, userId: "alice")
        } throws: { ($0 as? SinchError)?.code == .unsupportedEnvironment }
    }

    @Test func badDisplayNamesAndKeys() {
        var configuration = SinchClientConfiguration(
            applicationKey: "", environmentHost: "127.0.0.1:9", userId: "alice")
        #expect(throws: SinchError.self) { try SinchRTC.client(configuration: configuration) }
        configuration.applicationKey = TestEnvironment.key
        configuration.displayName = String(repeating: "ä", count: 128)
        #expect(throws: SinchError.self) { try SinchRTC.client(configuration: configuration) }
        configuration.displayName = "A\r\nB"
        #expect(throws: SinchError.self) { try SinchRTC.client(configuration: configuration) }
    }

    @Test func callBeforeStartEndsAtOnce() async throws {
        let alice = try makeUser()
        // Made on the callback queue, so that the delegate is there before anything can be told.
        let call = try await withCheckedThrowingContinuation { continuation in
            getCallbackQueue().async { continuation.resume(with: Result { try alice.call("bob") }) }
        }
        try await alice.wait("end", of: call)
        #expect(alice.story(of: call) == ["end"])
        #expect(call.state == .ended)
        #expect(call.details.endCause == .error)
        #expect((call.details.error as? SinchError)?.code == .notStarted)
        #expect(!call.wasPlaced)
        call.hangup()
        await alice.client.terminate()
        #expect(alice.story(of: call) == ["end"])
    }

    @Test func soundFilesThatAreMissing() throws {
        let alice = try makeUser()
        #expect {
            try alice.client.audioController.startPlayingSoundFile(withPath: "/nonexistent.wav", looping: false)
        } throws: { ($0 as? SinchError)?.code == .audioDevice }
        #expect(throws: SinchError.self) {
            try alice.client.audioController.startPlayingSoundFile(withPath: nil, looping: true)
        }
        #expect(throws: SinchError.self) {
            try alice.client.audioController.startPlayingSoundFile(withPath: "/proc/self/exe", looping: true)
        }
    }
}
