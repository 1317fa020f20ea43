/// Where offer and answer stand in one dialog (RFC 3264, section 5; RFC 6337, section 2). There is never more than one
/// offer under way, whoever made it; the state says which, and so who may make the next one.
enum OfferState: Sendable, Equatable {
    /// What carries an offer of ours, and so where its answer will be.
    enum Carrier: Sendable {
        /// INVITE: the answer is in a reliable provisional response or the 2xx.
        case invite
        /// A reliable provisional response to an INVITE without an offer: the answer is in the PRACK.
        case provisional
        /// The 2xx to an INVITE without an offer: the answer is in the ACK.
        case answer
    }

    /// Nothing was offered yet: an INVITE without a description is under way.
    case none
    /// Our offer waits for its answer.
    case offered(in: Carrier)
    /// The peer's offer, in its INVITE, waits for our answer.
    case received
    /// Nothing is under way.
    case agreed

    /// Why an offer of the peer cannot be answered now, as a status; nil when it can (RFC 3261, 14.2; RFC 3311, 5.2).
    var refusal: Int? {
        switch self {
        case .agreed, .none: nil
        case .offered: 491
        case .received: 500
        }
    }
}
