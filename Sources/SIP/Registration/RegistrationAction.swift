import Primitives

extension RegistrationMachine {
    /// What the owner must do, in order.
    public enum Action: Sendable {
        /// Send this REGISTER, which has no Via yet, in a client transaction.
        case send(SIPMessage)
        /// Credentials are needed, or new ones since those that worked do no longer; the registrar's challenge if there
        /// was one. Goes on with ``RegistrationMachine/credentialsChanged(_:at:)``.
        case needsCredentials(Challenge?)
        /// Registered for that time.
        case registered(expires: Duration, isRefresh: Bool)
        /// An attempt failed; the next one comes at that time, or never until credentials or `start` when nil.
        case failed(RegistrationFailure, retryAt: MonotonicTime?)
        /// The registration is over, because ``RegistrationMachine/unregister(at:)`` asked for it.
        case unregistered
    }

    /// Where the registration stands.
    public enum State: Hashable, Sendable {
        /// Not started.
        case idle
        /// The first REGISTER, or the first after a loss, is under way.
        case registering
        /// There is a live binding, perhaps with a refresh under way or failed.
        case registered
        /// There is none, and the next attempt waits for its time, for credentials or for `start`.
        case waiting
        /// The binding is being removed.
        case unregistering
        /// Unregistered; `start` begins anew.
        case ended
    }
}

extension RegistrationMachine: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The address and the state.
    public var description: String {
        "RegistrationMachine(\(configuration.addressOfRecord.uri.description), \(state))"
    }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror that shows the description only.
    public var customMirror: Mirror { Mirror(self, children: ["registration": description]) }
}
