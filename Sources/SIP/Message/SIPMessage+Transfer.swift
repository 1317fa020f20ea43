/// Headers of call transfer: REFER (RFC 3515, 3892), Replaces (3891), and the events of both (6665).
extension SIPMessage {
    /// Whom a REFER asks to call; nil when it is absent, malformed or there are two.
    public var referTo: SIPAddress? {
        get { headers.count(.referTo) == 1 ? address(.referTo) : nil }
        set { headers.set(.referTo, newValue?.description) }
    }

    /// Who asked for it; said by that side itself, so it proves nothing.
    public var referredBy: SIPAddress? {
        get { headers.count(.referredBy) == 1 ? address(.referredBy) : nil }
        set { headers.set(.referredBy, newValue?.description) }
    }

    /// The call that a new one takes the place of; nil when it is absent or malformed: look at `hasReplaces`, too.
    public var replaces: SIPReplaces? {
        get { headers.count(.replaces) == 1 ? headers.text(.replaces).flatMap { SIPReplaces(parsing: $0) } : nil }
        set { headers.set(.replaces, newValue?.description) }
    }

    /// Whether there is a Replaces header, usable or not.
    public var hasReplaces: Bool { headers.count(.replaces) > 0 }

    /// The event package of a SUBSCRIBE or NOTIFY.
    public var event: SIPTokenValue? {
        get { headers.text(.event).flatMap { SIPTokenValue(parsing: $0) } }
        set { headers.set(.event, newValue?.description) }
    }

    /// Whether a subscription goes on: `active`, `pending` or `terminated`.
    public var subscriptionState: SIPTokenValue? {
        get { headers.text(.subscriptionState).flatMap { SIPTokenValue(parsing: $0) } }
        set { headers.set(.subscriptionState, newValue?.description) }
    }
}
