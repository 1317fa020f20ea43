import Primitives
import SDP
import SIP

/// Names one call leg of one user agent for as long as the agent lives.
public struct CallHandle: Hashable, Sendable {
    let number: UInt64
}

/// Who placed a call, seen from this side.
public enum CallDirection: String, Sendable, Codable {
    /// The other side called us.
    case incoming
    /// We called.
    case outgoing
}

/// One call leg's signalling state. It has no behaviour of its own: `UserAgent` moves it.
struct Call: Sendable {
    /// Where the leg stands in RFC 3261's terms.
    enum Phase: Sendable {
        /// Outgoing: INVITE sent, no final response. Incoming: INVITE received, not answered.
        case early
        /// Incoming: 2xx sent, its ACK is awaited and the 2xx repeated (13.3.1.4).
        case answering
        /// Both sides agree that there is a call.
        case confirmed
        /// The user was told that the call is over; a CANCEL, ACK or BYE is still on its way.
        case closing
    }

    /// So many PRACKs of one call are under way at the same time.
    static let maximumUnqueued = 64

    let handle: CallHandle
    let direction: CallDirection
    let callID: String
    /// The path it was set up over.
    let flow: SIPFlow
    var phase = Phase.early
    var hasProgressed = false
    var hasRung = false

    /// The INVITE that made the leg, as sent or received.
    var invite: SIPMessage
    var inviteTransaction: TransactionID
    /// Outgoing: how often the INVITE was repeated with credentials.
    var inviteAttempts = 1
    /// The local tag: in From when we call, in To when we are called.
    let localTag: String
    /// The dialog: the callee's from the start, the caller's from the answer.
    var session: CallDialog?
    /// Caller: the dialogs of the devices that were heard of before the answer.
    var forks: [CallDialog] = []
    var forkCount = 0
    /// Caller: what was offered in the INVITE, or will be answered with; each fork begins with a copy.
    var negotiation: OfferAnswer?
    /// Callee: the provisional responses that wait for their PRACK.
    var provisionals: ReliableProvisionals?
    /// Callee: where media is to be received, when the answer has to wait for a PRACK.
    var pendingAnswer: LocalMedia?

    /// What the user wants, and what both sides agreed on.
    var wantsHold = false
    var isHeld = false
    /// Whether the peer does not want to hear us.
    var isHeldByPeer = false
    /// The media that the user was told of.
    var toldMedia: NegotiatedAudio?
    /// Our change of the media that is under way.
    var change: OwnChange?
    /// Requests that wait for their turn, and the one that waits for its response.
    var waiting: [InDialogRequest] = []
    var outstanding: OutstandingRequest?
    /// Requests besides those, as they were sent: PRACKs and the BYE, in case a proxy asks for credentials.
    var unqueued: [TransactionID: SIPMessage] = [:]
    /// The session timer, while one runs.
    var timer: SessionTimer?
    /// The smallest session interval that the path takes; it rises with each 422.
    var minimumSession = SessionTimer.lowestInterval
    /// Whether the INVITE was repeated after a 422.
    var hasRaisedInterval = false

    /// How often the other side may press a key by INFO.
    var keyPace = Pace.keypad
    /// The transfer of the other side that we asked for.
    var transfer: OwnTransfer?
    /// The transfer of us that the other side asked for.
    var referral: Referral?
    /// Callee: application headers for the 2xx.
    var answerHeaders: [(name: String, value: String)] = []
    /// The call whose place this one takes when it is answered.
    var replaces: CallHandle?
    /// Outgoing: where the call was redirected to.
    var redirection = Redirection()

    /// Give up ringing at this time.
    var noAnswerDeadline: MonotonicTime?
    /// Callee: repeat the 180 at this time, each minute, for proxies on the path (13.3.1.1).
    var nextRing: MonotonicTime?
    /// The 2xx that we sent to an INVITE, repeated at doubling intervals until the ACK comes.
    var answer: AnswerRepetition?
    /// A leg that is closing is forgotten at this time, whatever the other side does.
    var forgetDeadline: MonotonicTime?
    /// The ACK of the last 2xx, sent again for each repetition of it.
    var lastAck: SIPMessage?
    /// Callee: the user hung up between our 2xx and its ACK; the BYE waits for the ACK or for timer H.
    var hangUpWhenAcknowledged = false
    /// A BYE is to be sent as soon as the platform can be reached and knows us.
    var needsBye = false
    /// The Reason header value of that BYE.
    var byeReason: String?
    /// Whether the BYE was repeated after the platform had forgotten us.
    var hasRepeatedBye = false

    init(
        handle: CallHandle, direction: CallDirection, flow: SIPFlow, invite: SIPMessage, transaction: TransactionID,
        localTag: String
    ) {
        self.handle = handle
        self.direction = direction
        self.callID = invite.callID ?? ""
        self.flow = flow
        self.invite = invite
        self.inviteTransaction = transaction
        self.localTag = localTag
    }

    /// The dialog that both sides are in.
    var dialog: SIPDialog? { session?.dialog }

    /// What was agreed on there.
    var media: NegotiatedAudio? { session?.media }

    /// The dialog with the device of that tag.
    subscript(remoteTag tag: String) -> CallDialog? {
        get {
            if let session, session.dialog.remoteTag == tag { return session }
            return forks.first { $0.dialog.remoteTag == tag }
        }
        set {
            guard let newValue else { return }
            if session?.dialog.remoteTag == tag {
                session = newValue
            } else if let index = forks.firstIndex(where: { $0.dialog.remoteTag == tag }) {
                forks[index] = newValue
            } else {
                forks.append(newValue)
            }
        }
    }

    /// Whether a message of the peer belongs to one of the dialogs.
    func matches(_ message: SIPMessage) -> Bool {
        callID == message.callID
            && (session?.dialog.matches(message) ?? false || forks.contains { $0.dialog.matches(message) })
    }

    /// The earliest time at which something is to be done for this leg.
    var nextTimeout: MonotonicTime? {
        [
            noAnswerDeadline, nextRing, answer?.next, forgetDeadline, change?.deadline, change?.retryAt,
            isAnswered ? transfer?.deadline : nil, isAnswered ? referral?.deadline : nil,
            provisionals?.nextTimeout, phase == .confirmed ? timer?.nextTimeout : nil,
        ].compactMap(\.self).min()
    }

    /// Whether both sides are in the call: 2xx sent or received.
    var isAnswered: Bool { phase == .answering || phase == .confirmed }

    /// Whether no offer and no INVITE is under way in either direction (RFC 3261, 14.1).
    var canOffer: Bool { phase == .confirmed && answer == nil && session?.offer == .agreed }

    /// What we want of the media: who holds sends nothing that is meant to be heard, and hears nothing.
    var wantedDirection: MediaDirection { isHeld ? .sendonly : .sendrecv }
}

/// A 2xx to an INVITE under repetition (RFC 3261, 13.3.1.4): the user agent's work, not the transaction's.
struct AnswerRepetition: Sendable {
    let response: SIPMessage
    let transaction: TransactionID
    var interval: Duration
    var next: MonotonicTime
    /// 64·T1 after the first 2xx: no ACK came, the call is given up.
    let deadline: MonotonicTime
}

/// An INVITE of ours that got a 2xx, as long as its transaction collects more of them (RFC 6026, timer M).
///
/// It may outlive the call: each 2xx wants its ACK, and a second device that answered wants a BYE (13.2.2.4).
struct AnsweredInvite: Sendable {
    /// More devices than this do not answer one INVITE.
    static let maximumAnswers = 32

    /// The INVITE, without its body.
    let invite: SIPMessage
    /// The ACK of each answer, by the answering device's tag.
    var acknowledgements: [String: SIPMessage] = [:]
    /// The last CSeq number that was used with each device before it answered.
    var sequences: [String: UInt32] = [:]

    init(invite: SIPMessage) {
        var invite = invite
        invite.body = []
        self.invite = invite
    }
}
