/// What a client tells its owner. Called on the callback queue.
public protocol SinchClientDelegate: AnyObject {
    /// The client needs a registration token: sign one, or have the backend sign it, and hand it to `callback`.
    ///
    /// Asked at the first start and again whenever the platform no longer accepts the last token.
    func clientRequiresRegistrationCredentials(_ client: SinchClient, withCallback callback: SinchClientRegistration)
    /// The client is registered: calls can be made and will arrive.
    func clientDidStart(_ client: SinchClient)
    /// The client could not start; `error` is a `SinchError`. `start()` may be called again.
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

    /// There is no token, not even for the time being: `clientDidFail` follows with this error.
    public func registerDidFail(error: Error) {
        answer(
            .failure(
                (error as? SinchError)
                    ?? SinchError(
                        .noCredentials, "no registration token: \(error)",
                        hint: "check what signs the tokens", step: "registering")))
    }
}
