import Primitives
import SDP
import SIP

/// One dialog of a call with what was agreed on in it.
///
/// A callee's call has one from the start. A caller's has one for each device that was heard of while it rings (a fork),
/// and from the answer on that of the device that answered.
struct CallDialog: Sendable {
    /// So many devices of one call are told apart while it rings; of others only the answer counts.
    static let maximumForks = 8

    var dialog: SIPDialog
    /// Counts a call's devices from 0.
    let fork: Int
    var negotiation: OfferAnswer?
    var offer: OfferState
    var media: NegotiatedAudio?
    /// How many exchanges the peer began: an answer to our first offer that comes after one of them is none.
    var peerOffers = 0
    /// Whether its media may be heard already.
    var hasEarlyMedia = false
    /// Whether it said that it has given up (199).
    var hasEnded = false
    /// The last reliable provisional response: the CSeq of its INVITE, and its number.
    var lastReliable: (sequence: UInt32, number: UInt32)?
    /// Methods that the peer says it understands (Allow); nil until it says so.
    var allowed: Set<String>?
    /// Whether the peer supports session timers.
    var supportsTimer = false

    init(dialog: SIPDialog, fork: Int, negotiation: OfferAnswer?, offer: OfferState) {
        self.dialog = dialog
        self.fork = fork
        self.negotiation = negotiation
        self.offer = offer
    }

    /// Takes in what a message of the peer says about it.
    mutating func note(abilitiesIn message: SIPMessage) {
        if message.headers.contains("Allow") {
            allowed = Set(message.headers.values("Allow").prefix(64).map { $0.uppercased() })
        }
        if message.headers.contains("Supported") { supportsTimer = message.hasOption("timer", in: "Supported") }
    }

    /// Whether the peer says that it understands a method; without its word nothing is taken for granted.
    func allows(_ method: SIPMethod) -> Bool { allowed?.contains(method.rawValue) ?? false }

    /// Takes the answer to our offer; the state moves on unless the answer may still change (an unreliable 18x).
    mutating func receiveAnswer(_ sdp: [UInt8], isFinal: Bool = true) throws(SDPNegotiationError) -> NegotiatedAudio {
        guard var negotiation else {
            throw SDPNegotiationError(code: .unexpectedAnswer, reason: "there was no offer")
        }
        let audio = try negotiation.receiveAnswer(sdp)
        self.negotiation = negotiation
        media = audio
        if isFinal { offer = .agreed }
        return audio
    }

    /// Answers an offer of the peer.
    mutating func receiveOffer(
        _ sdp: [UInt8], direction: MediaDirection
    ) throws(SDPNegotiationError) -> (answer: [UInt8], audio: NegotiatedAudio) {
        guard var negotiation else {
            throw SDPNegotiationError(code: .offerPending, reason: "where our media is received is not known yet")
        }
        let result = try negotiation.receiveOffer(sdp, direction: direction)
        self.negotiation = negotiation
        media = result.audio
        offer = .agreed
        peerOffers += 1
        return result
    }

    /// Makes an offer, to be sent in `carrier`; nil while it is not known where media is received.
    mutating func makeOffer(in carrier: OfferState.Carrier, direction: MediaDirection = .sendrecv) -> [UInt8]? {
        guard var negotiation else { return nil }
        let body = negotiation.makeOffer(direction: direction)
        self.negotiation = negotiation
        offer = .offered(in: carrier)
        return body
    }

    /// Our offer was refused: the session is as it was.
    mutating func abandonOffer() {
        guard case .offered = offer else { return }
        negotiation?.abandonOffer()
        offer = .agreed
    }
}
