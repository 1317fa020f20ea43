import RTP

/// What can be done with a call while it goes on. Any thread, any state; where the state does not allow it, the delegate is
/// told so.
extension SinchCall {
    /// Puts the call on hold: nothing is sent or heard until `resume()`. `callDidHold` or `callDidFailToHold` follows.
    ///
    /// This side falls silent at once; meanwhile the other side is told (RFC 3264, section 8.4). When it refuses, the call goes
    /// on as before.
    public func hold() {
        perform { $0.hold(self) }
    }

    /// Resumes a call that `hold()` put on hold. `callDidResume` or `callDidFailToHold` follows.
    public func resume() {
        perform { $0.resume(self) }
    }

    /// The most keys that one `sendDTMF` takes.
    public static let maximumKeys = 64

    /// Presses keys: 100 ms each, as telephone events (RFC 4733), or by INFO where the other side takes none.
    /// `callDidSendDTMF` follows when the last one has been sent.
    ///
    /// - Parameter key: one or more of `0`–`9`, `*`, `#`, `A`–`D`.
    /// - Returns: false, with nothing sent, when a character is no key, when there are none or more than 64, or when the
    ///   call is not answered or is over.
    @discardableResult
    public func sendDTMF(_ key: String) -> Bool {
        guard (1...Self.maximumKeys).contains(key.count), key.allSatisfy({ TelephoneEvent.event(for: $0) != nil }),
            state == .answered || state == .established
        else { return false }
        perform { $0.sendKeys(key.uppercased(), in: self) }
        return true
    }

    /// Asks the other side to call somebody else instead (blind transfer, RFC 5589 section 6). `callDidTransfer` or
    /// `callDidFailToTransfer` follows; meanwhile the call goes on.
    ///
    /// - Parameter destination: a user id, a phone number with a leading plus, or `user@server`.
    /// - Throws: `SinchError` with code `invalidArgument` for a destination that is none of these.
    public func transfer(to destination: String) throws {
        let target = try Identifiers.address(of: destination, domain: domain)
        perform { $0.transfer(self, to: target) }
    }

    /// Checks whether a text is something that may be called: a user id, a phone number with a leading plus, or
    /// `user@server`.
    ///
    /// - Throws: `SinchError` with code `invalidArgument`.
    public static func checkDestination(_ destination: String) throws {
        _ = try Identifiers.address(of: destination, domain: "example.invalid")
    }

    /// Connects the other sides of two calls of this client (attended transfer, RFC 5589 section 7): the other side of this
    /// call takes this client's place in `other`. `callDidTransfer` or `callDidFailToTransfer` follows; with success both
    /// calls end here.
    public func transfer(to other: SinchCall) {
        perform { $0.transfer(self, to: other) }
    }
}
