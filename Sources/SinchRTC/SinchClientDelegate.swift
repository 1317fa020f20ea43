/// What a client tells its owner. Called on the callback queue.
public protocol SinchClientDelegate: AnyObject {
    /// The client needs a registration token: sign one, or have the backend sign it, and hand it to `callback`.
    ///
    /// Asked at the first start, again before the last token ends by its own `exp` claim, and whenever the platform no
    /// longer accepts it. A new token never touches a call. The same token as before is no mistake: it is used for as
    /// long as the platform takes it.
    func clientRequiresRegistrationCredentials(_ client: SinchClient, withCallback callback: SinchClientRegistration)
    /// The client is registered: calls can be made and will arrive.
    func clientDidStart(_ client: SinchClient)
    /// The client could not start; `error` is a `SinchError`. `start()` may be called again. A client that has started
    /// does not fail any more: it tries to be registered for ever, and `onRegistrationChange` tells how that goes.
    func clientDidFail(_ client: SinchClient, error: Error)
}

/// Takes the answer to `clientRequiresRegistrationCredentials`. Any thread, once; later answers are ignored.
public final class SinchClientRegistration: Sendable {
    private let answer: @Sendable (Result<String, SinchError>) -> Void

    init(answer: @escaping @Sendable (Result<String, SinchError>) -> Void) {
        self.answer = answer
    }

    /// Registers with this token.
    public func register(withJWT jwt: String) {
        answer(.success(jwt))
    }

    /// There is no token. At a start, `clientDidFail` follows with this error; a client that was registered asks again,
    /// after ever longer pauses.
    public func registerDidFail(error: Error) {
        answer(
            .failure(
                (error as? SinchError)
                    ?? SinchError(
                        .noCredentials, "no registration token: \(error)",
                        hint: "check what signs the tokens", step: "registering")))
    }
}
