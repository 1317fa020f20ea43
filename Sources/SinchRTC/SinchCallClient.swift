import Primitives
import SIP

/// Makes calls, and tells of incoming ones. Any thread.
public final class SinchCallClient: Sendable {
    private let delegateReference = DelegateReference<any SinchCallClientDelegate>()
    private let core: ClientCore

    init(core: ClientCore) {
        self.core = core
    }

    /// Who is told of incoming calls; held weakly.
    public var delegate: (any SinchCallClientDelegate)? {
        get { delegateReference.value }
        set { delegateReference.value = newValue }
    }

    /// Calls a user of the same application.
    ///
    /// - Returns: the call, which fails by `callDidEnd` when the client is not started; a `SinchError` for bad input.
    public func callUser(
        withId userId: String, headers: [String: String] = [:], media: SinchCallMedia = SinchCallMedia()
    ) -> Result<SinchCall, Error> {
        place(remote: userId, headers: headers, media: media) { domain throws(SinchError) in
            try Identifiers.address(ofUser: userId, domain: domain)
        }
    }

    /// Calls a phone number, E.164 with a leading plus.
    public func callPhoneNumber(
        _ number: String, headers: [String: String] = [:], media: SinchCallMedia = SinchCallMedia()
    ) -> Result<SinchCall, Error> {
        place(remote: number, headers: headers, media: media) { domain throws(SinchError) in
            try Identifiers.address(ofNumber: number, domain: domain)
        }
    }

    /// Calls a SIP address, `user@server` or `sip:user@server`.
    public func callSIP(
        _ identity: String, headers: [String: String] = [:], media: SinchCallMedia = SinchCallMedia()
    ) -> Result<SinchCall, Error> {
        place(remote: identity, headers: headers, media: media) { _ throws(SinchError) in
            try Identifiers.address(ofIdentity: identity)
        }
    }

    /// As `callUser(withId:headers:)`, with the label that some versions of the SDK print.
    public func callUser(withId userId: String, usingHeaders headers: [String: String]) -> Result<SinchCall, Error> {
        callUser(withId: userId, headers: headers)
    }

    /// As `callPhoneNumber(_:headers:)`, with the label that some versions of the SDK print.
    public func callPhoneNumber(_ number: String, usingHeaders headers: [String: String]) -> Result<SinchCall, Error> {
        callPhoneNumber(number, headers: headers)
    }

    /// As `callSIP(_:headers:)`, with the label that some versions of the SDK print.
    public func callSIP(_ identity: String, usingHeaders headers: [String: String]) -> Result<SinchCall, Error> {
        callSIP(identity, headers: headers)
    }

    /// Places a call whose address `target` makes from the client's domain, or refuses.
    private func place(
        remote: String, headers: [String: String], media: SinchCallMedia, target: (String) throws(SinchError) -> SIPURI
    ) -> Result<SinchCall, Error> {
        do {
            let uri = try target(core.domain)
            try Identifiers.checkHeaders(headers)
            var random = RandomSource.system
            let call = SinchCall(
                callId: random.hexadecimal(bits: 128), remoteUserId: remote, direction: .outgoing, headers: headers,
                core: core)
            call.media = media
            core.perform { $0.place(call, to: uri) }
            return .success(call)
        } catch {
            return .failure(error)
        }
    }
}

/// What a call client tells its owner, on the callback queue.
public protocol SinchCallClientDelegate: AnyObject {
    /// Somebody calls; once per call, in state `initiating`. Set the call's delegate here.
    func client(_ client: SinchCallClient, didReceiveIncomingCall call: SinchCall)
}
