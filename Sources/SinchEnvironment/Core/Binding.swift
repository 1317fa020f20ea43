import Primitives
import SIP

/// A user within an application: `alice` of one application is nobody to another application.
struct UserKey: Hashable, Sendable {
    /// The application's key.
    var application: String
    /// The user's name, as in the user part of its address.
    var user: String
}

/// One registered device of a user (RFC 3261 section 10): a contact, and the flow that leads to it.
struct Binding: Sendable, Equatable {
    /// What makes two registrations the same device.
    enum Identity: Sendable, Equatable {
        /// RFC 5626: the device's instance and which of its flows this is. Without `reg-id` the flow number is empty, so that
        /// a device that starts again from another port takes its old place instead of ringing at a dead address.
        case instance(String, flow: String)
        /// RFC 3261: the contact's URI, compared by section 19.1.4.
        case contact(SIPURI)
    }

    /// A number that stays the same while the device registers again, over whichever flow.
    var id: UInt64
    /// Whose device it is.
    var user: UserKey
    /// What makes it this device.
    var identity: Identity
    /// The contact as registered, without `expires`.
    var contact: SIPAddress
    /// Where the last registration came from; requests to the device go there, whatever the contact's address says: it may
    /// be behind NAT, or reachable by its own connection only (RFC 5626 section 5.3).
    var flow: SIPFlow
    /// The Call-ID of the last registration.
    var callID: String
    /// The CSeq number of the last registration.
    var sequence: UInt32
    /// When the registration runs out.
    var expiry: MonotonicTime
    /// Grows with every registration of any device: which of two is the younger.
    var age: UInt64

    /// The instance, where the device named one.
    var instance: String? {
        if case .instance(let instance, _) = identity { instance } else { nil }
    }

    /// Seconds left, rounded up: a device must not see 0 for a registration that still stands.
    func secondsLeft(at now: MonotonicTime) -> Int {
        let left = (expiry - now).wholeNanoseconds
        return Int(max(0, left / 1_000_000_000 + (left % 1_000_000_000 > 0 ? 1 : 0)))
    }

    /// The identity of a contact that a device registers.
    static func identity(of contact: SIPAddress) -> Identity {
        guard let instance = contact.parameters["+sip.instance"], !instance.isEmpty else {
            return .contact(contact.uri)
        }
        // URNs compare without regard to case in all but the part that a UUID does not have.
        return .instance(instance.lowercased(), flow: contact.parameters["reg-id"] ?? "")
    }
}

extension Binding.Identity {
    /// Whether both mean the same device.
    func matches(_ other: Self) -> Bool {
        switch (self, other) {
        case (.instance(let left, let leftFlow), .instance(let right, let rightFlow)):
            left == right && leftFlow == rightFlow
        case (.contact(let left), .contact(let right)): left.isEquivalent(to: right)
        default: false
        }
    }
}
