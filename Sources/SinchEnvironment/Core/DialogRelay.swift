import Primitives
import SIP

/// Requests within a dialog: the proxy keeps no dialogs, so the way is in the request (see `DialogToken`).
extension EnvironmentCore {
    /// Relays a request within a dialog to the other side, over the flow that leads there.
    mutating func relayInDialog(_ incoming: Incoming, _ request: SIPMessage, _ way: RecordRoute.Way) {
        switch peer(of: request, from: incoming.flow, way, at: incoming.now) {
        case .refusal(let status, let reason): refuse(incoming, status: status, reason: reason)
        case .flow(let flow):
            guard isAlive(flow) else {
                // At once, and not after the 32 s that the sender would wait for a client that is gone.
                refuse(incoming, status: 480, reason: "Connection to the Other Side Lost")
                return
            }
            if request.method == .bye {
                log(.callEnded(call: request.callID ?? "", by: loggable(request.from?.uri.user)))
            }
            relay(incoming, request, to: flow)
        }
    }

    /// Relays the ACK of a 2xx (RFC 3261 section 16.6: it has no transaction).
    mutating func relayAcknowledgement(_ ack: SIPMessage, from flow: SIPFlow, at now: MonotonicTime) {
        var request = ack
        let way = recordRoute.takeWay(from: &request)
        guard request.to?.tag != nil, request.maxForwards != 0, !isLoop(request),
            case .flow(let target) = peer(of: request, from: flow, way, at: now), isAlive(target)
        else { return }
        // The same branch for the same ACK (section 16.11), so that a repetition is recognised as one.
        let branch = recordRoute.sealer.digest([ack.topVia?.branch ?? "", ack.topVia?.host ?? "", ack.callID ?? ""])
        guard var via = recordRoute.via(for: target.transport, branch: "z9hG4bK" + branch) else { return }
        via.parameters[Self.loopParameter] = loopHash(of: request)
        Sanitising.clean(&request, identity: nil)
        RecordRoute.respectStrictRouter(in: &request)
        request.prependVia(via)
        transactions.sendStateless(request, over: target)
    }

    /// Relays a 2xx that comes after its transactions ended: the caller answers each with an ACK and, if it wants only
    /// one call, a BYE (section 16.7 step 5). Anything else without a transaction is dropped: it is late or forged.
    mutating func relayStray(_ response: SIPMessage, from flow: SIPFlow, at now: MonotonicTime) {
        guard let status = response.status, (200..<300).contains(status), response.cseq?.method == .invite,
            let via = response.topVia, domain.owns(via), let token = recordRoute.token(in: response),
            token.isCaller(response.from?.tag ?? ""), isSide(token.callee, flow, at: now)
        else { return }
        let target = currentFlow(of: token.caller, at: now)
        guard isAlive(target) else { return }
        var upstream = response
        upstream.removeTopVia()
        guard !upstream.vias.isEmpty else { return }
        Sanitising.clean(&upstream)
        transactions.sendStateless(upstream, over: target)
    }

    // MARK: Sides

    private enum Peer {
        case flow(SIPFlow)
        case refusal(Int, String)
    }

    /// Where a request within a dialog goes, if its sender is a side of that dialog.
    private func peer(
        of request: SIPMessage, from flow: SIPFlow, _ way: RecordRoute.Way, at now: MonotonicTime
    ) -> Peer {
        if case .dialog(let token) = way {
            let (sender, receiver): (DialogToken.Side, DialogToken.Side)
            if token.isCaller(request.from?.tag ?? "") {
                (sender, receiver) = (token.caller, token.callee)
            } else if token.isCaller(request.to?.tag ?? "") {
                (sender, receiver) = (token.callee, token.caller)
            } else {
                return .refusal(481, "Route of Another Dialog")
            }
            // Whoever saw the route but is on neither side could end the call with a forged BYE.
            guard isSide(sender, flow, at: now) else { return .refusal(403, "Not a Side of This Dialog") }
            return .flow(currentFlow(of: receiver, at: now))
        }
        // Without a route of ours: a client that lost its route set, or a dialog from before a restart. The request may
        // still name a device of the sender's application by its contact.
        guard let from = request.from, let sender = sender(from, over: flow, at: now) else {
            return .refusal(403, "Not Registered Here")
        }
        guard let target = request.requestURI else { return .refusal(481, "Dialog Unknown Here") }
        let application = sender.user.application
        if let binding = location.binding(at: target, in: application, at: now) { return .flow(binding.flow) }
        // A device that came back over another connection has another contact: if it is the user's only one, it is meant,
        // and if not, it does not know the dialog and says so.
        let devices = location.bindings(of: UserKey(application: application, user: target.user ?? ""), at: now)
        guard devices.count == 1, let device = devices.first else { return .refusal(481, "Dialog Unknown Here") }
        return .flow(device.flow)
    }

    /// Whether a flow belongs to this side: the one it began the dialog with, or the one its device registered over since.
    private func isSide(_ side: DialogToken.Side, _ flow: SIPFlow, at now: MonotonicTime) -> Bool {
        flow == side.flow || location.isRegistered(side.binding, over: flow, at: now)
    }

    /// The flow to a side: that of its last registration, or of the dialog's beginning when it is not registered any more.
    private func currentFlow(of side: DialogToken.Side, at now: MonotonicTime) -> SIPFlow {
        location.binding(side.binding, at: now)?.flow ?? side.flow
    }
}
