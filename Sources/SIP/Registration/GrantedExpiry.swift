import Primitives

/// How long the registrar keeps our binding, out of its 200 (RFC 3261 section 10.2.4).
struct GrantedExpiry {
    /// The longest lifetime that is believed: nobody means more, and a clock must not overflow.
    private static let maximum = 31_536_000

    /// The lifetime of our own contact where the registrar lists it; else the Expires header; else what was asked for.
    ///
    /// Registrars rewrite contacts behind NAT, list those of other devices too, or list none. Ours is the one with
    /// our instance and registration identity, or else an equivalent URI, or else the same user, host and port, or
    /// else the only one. Among several strangers the shortest lifetime is the safe guess.
    static func seconds(
        in response: SIPMessage, contact: SIPURI, instanceURN: String, registrationID: Int, requested: Int
    ) -> Int {
        let contacts = response.contacts
        let header = response.expires.map { clamp($0) }
        let own =
            SIPAddress.own(among: contacts, instanceURN: instanceURN, registrationID: registrationID)
            ?? contacts.first { $0.uri.isEquivalent(to: contact) }
            ?? contacts.first {
                $0.uri.user == contact.user && $0.uri.host == contact.host && $0.uri.port == contact.port
            }
            ?? (contacts.count == 1 ? contacts.first : nil)
        if let own { return own.expires ?? header ?? requested }
        return header ?? contacts.compactMap(\.expires).min() ?? requested
    }

    fileprivate static func clamp(_ seconds: Int) -> Int {
        min(max(seconds, 0), maximum)
    }
}

extension SIPAddress {
    /// The `expires` parameter in seconds; nil when missing or no number.
    fileprivate var expires: Int? {
        guard let text = parameters["expires"], !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return GrantedExpiry.clamp(Int(text) ?? .max)
    }
}
