import Primitives
import SIP

/// Calls that take the place of another one (RFC 3891): the other side of a call of ours was transferred.
extension UserAgent {
    /// What the Replaces header of an INVITE means.
    enum Replacement {
        /// There is none.
        case none
        /// This call is to be replaced.
        case call(CallHandle)
        /// The INVITE is to be refused.
        case refusal(Int)
    }

    /// Finds the call that an INVITE replaces (RFC 3891, section 3). Only whoever knows its Call-ID and both tags can
    /// name it, and only over the path to the platform, as everything that arrives here.
    func replacement(_ invite: SIPMessage) -> Replacement {
        guard invite.hasReplaces else { return .none }
        guard let replaces = invite.replaces else { return .refusal(400) }
        guard
            let (handle, call) = calls.first(where: { _, call in
                (call.forks + [call.session].compactMap(\.self)).contains { replaces.names($0.dialog) }
            })
        else { return .refusal(481) }
        switch call.phase {
        case .closing: return .refusal(603)
        case .answering, .confirmed: return replaces.isEarlyOnly ? .refusal(486) : .call(handle)
        // What rings here was not begun here, so nobody else can have taken it over.
        case .early: return call.direction == .incoming ? .refusal(481) : .call(handle)
        }
    }

    /// Whether an answer to a call that replaces another one is still wanted: the user has not left that other one.
    func isReplacementWanted(_ call: Call) -> Bool {
        guard let replaced = call.replaces else { return true }
        return calls[replaced].map { $0.phase != .closing } ?? false
    }

    /// The new call is answered: the old one goes.
    mutating func endReplaced(by call: Call, at now: MonotonicTime) {
        guard let replaced = call.replaces else { return }
        conclude(replaced, CallTermination(.hungUp, phrase: "the other side was transferred"), at: now)
    }
}
