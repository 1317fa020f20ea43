import MediaSession
import Primitives
import SIP
import Signalling

/// What can be done with a call while it goes on: hold, keys, transfer.
extension ClientCore {
    // MARK: Hold

    func hold(_ call: SinchCall) {
        guard let (handle, session) = find(call), call.state == .answered || call.state == .established else {
            refuseHold(call, "the call is not answered")
            return
        }
        guard !session.wantsHold else { return }
        // Whatever the other side says to it, this side is silent from now on.
        sessions[handle]?.wantsHold = true
        applyMedia(of: handle)
        agent.hold(handle, at: loop.now)
        drain()
    }

    func resume(_ call: SinchCall) {
        guard let (handle, session) = find(call), call.isOnHold || session.isSilenced else {
            refuseHold(call, "the call is not on hold")
            return
        }
        sessions[handle]?.wantsHold = false
        agent.resume(handle, at: loop.now)
        drain()
    }

    private func refuseHold(_ call: SinchCall, _ reason: String) {
        let error = SinchError(.remote, "hold cannot be changed: \(reason)", step: "holding")
        call.tell { $0.callDidFailToHold(call, error: error) }
    }

    func holdFailed(_ reason: String, of handle: CallHandle) {
        guard let session = sessions[handle] else { return }
        sessions[handle]?.wantsHold = session.call.isOnHold
        applyMedia(of: handle)
        refuseHold(session.call, reason)
    }

    // MARK: Keys

    /// Sends keys as telephone events, or by INFO where the other side takes none.
    func sendKeys(_ keys: String, in call: SinchCall) {
        guard let (handle, session) = find(call), let audio = session.audio, call.state >= .answered else {
            refuseKeys(call, "the call is not answered")
            return
        }
        guard !session.isSilenced else {
            refuseKeys(call, "the call is on hold")
            return
        }
        guard audio.telephoneEventPayloadType != nil, let stream = session.stream else {
            agent.sendKeys(keys, in: handle, at: loop.now)
            drain()
            return
        }
        let loop = loop
        let weakCore = WeakCore(self)
        engine.send(keys: keys, of: stream) { isSent in
            guard !isSent else { return }
            loop.execute {
                weakCore.value?.assumeIsolated { $0.refuseKeys(call, "too many keys wait to be sent already") }
            }
        }
    }

    private func refuseKeys(_ call: SinchCall, _ reason: String, sipStatus: Int? = nil) {
        let error = SinchError(.remote, "the keys cannot be sent: \(reason)", step: "dtmf", sipStatus: sipStatus)
        log(.warning, "call", "\(call.callId) \(error.message)")
        call.tell { $0.callDidFailToSendDTMF(call, error: error) }
    }

    func received(_ key: Character, of handle: CallHandle) {
        guard let call = sessions[handle]?.call else { return }
        call.tell { $0.callDidReceiveDTMF(call, key: String(key)) }
    }

    func keysSent(of handle: CallHandle) {
        guard let call = sessions[handle]?.call else { return }
        call.tell { $0.callDidSendDTMF(call) }
    }

    func keysFailed(_ termination: CallTermination, of handle: CallHandle) {
        guard let call = sessions[handle]?.call else { return }
        refuseKeys(call, termination.phrase, sipStatus: termination.sipStatus)
    }

    // MARK: Transfer of the other side

    func transfer(_ call: SinchCall, to target: SIPURI) {
        guard let (handle, _) = find(call) else {
            refuseTransfer(call, CallTermination(.failed, isLocal: true, phrase: "the call is over"))
            return
        }
        agent.transfer(handle, to: target, at: loop.now)
        drain()
    }

    func transfer(_ call: SinchCall, to other: SinchCall) {
        guard let (handle, _) = find(call), let (target, _) = find(other) else {
            refuseTransfer(call, CallTermination(.failed, isLocal: true, phrase: "one of the calls is over"))
            return
        }
        agent.transfer(handle, to: target, at: loop.now)
        drain()
    }

    func transferProgressed(_ status: Int, of handle: CallHandle) {
        guard let call = sessions[handle]?.call else { return }
        call.tell { $0.callDidProgressTransfer(call, sipStatus: status) }
    }

    func transferred(_ handle: CallHandle) {
        guard let call = sessions[handle]?.call else { return }
        log(.info, "call", "\(call.callId) transferred")
        call.tell { $0.callDidTransfer(call) }
    }

    func transferFailed(_ termination: CallTermination, of handle: CallHandle) {
        guard let call = sessions[handle]?.call else { return }
        refuseTransfer(call, termination)
    }

    private func refuseTransfer(_ call: SinchCall, _ termination: CallTermination) {
        let error = SinchError(transfer: termination)
        log(.info, "call", "\(call.callId) \(error.message)")
        call.tell { $0.callDidFailToTransfer(call, error: error) }
    }

    // MARK: Being transferred

    /// The other side asks us to call somebody else, and the configuration allows it.
    func follow(_ request: TransferRequest, of handle: CallHandle) {
        guard let session = sessions[handle], !isTerminating else {
            agent.declineTransfer(handle, at: loop.now)
            return
        }
        var random = RandomSource.system
        let call = SinchCall(
            callId: random.hexadecimal(bits: 128), remoteUserId: Identifiers.name(of: request.target),
            direction: .outgoing, headers: [:], previousCall: session.call, core: self)
        call.media = session.options.withoutRecording
        let old = session.call
        // The delegate first, so that it sees everything of the new call.
        callBack { [weak self] in
            old.delegate?.call(old, willTransferTo: call)
            self?.perform { $0.placeTransferred(call, by: handle) }
        }
    }

    private func placeTransferred(_ call: SinchCall, by handle: CallHandle) {
        guard call.state == .initiating else {
            agent.declineTransfer(handle, at: loop.now)
            drain()
            return
        }
        do {
            guard let path = agent.path else { throw MediaError(.system, "the connection to the platform is lost") }
            let port = try MediaPort(host: path.local.host)
            let new = agent.followTransfer(handle, callID: call.callId, media: port.local, at: loop.now)
            call.wasPlaced = true
            sessions[new] = CallSession(call: call, port: port, options: call.media)
        } catch {
            agent.declineTransfer(handle, at: loop.now)
            call.advance(to: .ended, termination: CallTermination(.media, isLocal: true, phrase: "\(error)"))
        }
        drain()
    }
}

extension SinchError {
    /// Why a transfer failed.
    init(transfer termination: CallTermination) {
        self.init(termination, step: "transferring")
        switch termination.reason {
        case .declined: code = .declined
        case .noAnswer: code = .noAnswer
        default: break
        }
        let status = termination.sipStatus.map { "\($0) " } ?? ""
        message = "the transfer failed: \(status)\(termination.phrase)"
        if termination.reason == .declined { hint = "the other side must allow transfers" }
    }
}
