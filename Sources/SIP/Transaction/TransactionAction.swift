import Primitives

extension TransactionLayer {
    /// What the layer's owner must do, in order. "The user" is the transaction user: a user agent or a proxy.
    public enum Action: Sendable {
        /// Send the message over the flow.
        case transmit(SIPMessage, SIPFlow)
        /// A response for the user, over the flow that it came by. Every 2xx to an INVITE is delivered, its
        /// repetitions and those of other forks too (RFC 6026); other responses once.
        case response(SIPMessage, TransactionID, SIPFlow)
        /// A new request, never a repetition, never ACK or CANCEL; answer it with ``TransactionLayer/respond(_:in:at:)``.
        case request(SIPMessage, TransactionID, SIPFlow)
        /// A CANCEL met an INVITE that has no final response yet. The CANCEL has been answered with 200; the user
        /// answers the INVITE with 487. Reported once for each INVITE.
        case cancelled(invite: TransactionID, cancel: SIPMessage)
        /// The ACK of a 2xx, each time it arrives, with the INVITE's transaction if that still exists.
        case ack(SIPMessage, TransactionID?, SIPFlow)
        /// A response without a client transaction: a late 2xx, which a proxy may forward, or a forgery.
        case strayResponse(SIPMessage, SIPFlow)
        /// The transaction failed; ``terminated(_:)`` follows. The request is as it was sent (or received).
        case failed(TransactionID, request: SIPMessage, TransactionFailure)
        /// The transaction has ended and its identity means nothing any more. Reported once for each transaction.
        case terminated(TransactionID)
    }
}

/// Why a transaction failed.
public enum TransactionFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// Nobody answered within 64 · T1 (timers B and F, or C and the CANCEL that follows it).
    case timeout
    /// The message could not be sent, or the connection it depends on was lost.
    case transport(String)
    /// The final response to an INVITE was never acknowledged (timer H, or L for a 2xx).
    case ackTimeout

    /// One line for people.
    public var description: String {
        switch self {
        case .timeout: "no answer within the transaction's time"
        case .transport(let reason): reason
        case .ackTimeout: "the final response to the INVITE was never acknowledged"
        }
    }
}
