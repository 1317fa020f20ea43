/// What a call tells its observer, on the callback queue. Every method is optional.
public protocol SinchCallDelegate: AnyObject {
    /// Outgoing: the platform works on the call.
    func callDidProgress(_ call: SinchCall)
    /// Outgoing: the callee's device has the call.
    func callDidRing(_ call: SinchCall)
    /// The call is answered; media may not be up yet.
    func callDidAnswer(_ call: SinchCall)
    /// Both sides hear each other.
    func callDidEstablish(_ call: SinchCall)
    /// The call is over; `details` say why.
    func callDidEnd(_ call: SinchCall)

    /// The call is on hold, as `hold()` asked for.
    func callDidHold(_ call: SinchCall)
    /// The call is resumed, as `resume()` asked for.
    func callDidResume(_ call: SinchCall)
    /// The other side put the call on hold.
    func callDidGetHeld(_ call: SinchCall)
    /// The other side resumed the call.
    func callDidGetResumed(_ call: SinchCall)
    /// The other side refused `hold()` or `resume()`, or did not answer; the call is as it was.
    func callDidFailToHold(_ call: SinchCall, error: Error)

    /// The other side pressed a key: one of `0`–`9`, `*`, `#`, `A`–`D`.
    func callDidReceiveDTMF(_ call: SinchCall, key: String)
    /// All keys given to `sendDTMF` so far have been sent.
    func callDidSendDTMF(_ call: SinchCall)
    /// The keys that `sendDTMF` was given cannot be sent; the call goes on.
    func callDidFailToSendDTMF(_ call: SinchCall, error: Error)

    /// A transfer that this side asked for goes on.
    ///
    /// - Parameter sipStatus: what the other side has heard from the new callee: 100, 180, 183.
    func callDidProgressTransfer(_ call: SinchCall, sipStatus: Int)
    /// The other side is in its new call, or on its own way there; this call ends now.
    func callDidTransfer(_ call: SinchCall)
    /// The transfer failed; this call goes on.
    func callDidFailToTransfer(_ call: SinchCall, error: Error)
    /// The other side transfers us: `newCall` is placed now and gets its own delegate here. This call ends when the new
    /// one is answered. Only where `SinchClientConfiguration.acceptsTransfers` allows it.
    func call(_ call: SinchCall, willTransferTo newCall: SinchCall)
}

extension SinchCallDelegate {
    /// Does nothing.
    public func callDidProgress(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidRing(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidAnswer(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidEstablish(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidEnd(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidHold(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidResume(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidGetHeld(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidGetResumed(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidFailToHold(_ call: SinchCall, error: Error) {}
    /// Does nothing.
    public func callDidReceiveDTMF(_ call: SinchCall, key: String) {}
    /// Does nothing.
    public func callDidSendDTMF(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidFailToSendDTMF(_ call: SinchCall, error: Error) {}
    /// Does nothing.
    public func callDidProgressTransfer(_ call: SinchCall, sipStatus: Int) {}
    /// Does nothing.
    public func callDidTransfer(_ call: SinchCall) {}
    /// Does nothing.
    public func callDidFailToTransfer(_ call: SinchCall, error: Error) {}
    /// Does nothing.
    public func call(_ call: SinchCall, willTransferTo newCall: SinchCall) {}
}
