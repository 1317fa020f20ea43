/// Turns frames of 48 kHz mono into the payloads of RTP packets. Belongs to one thread; does not allocate when used.
public protocol FrameEncoder: AnyObject, Sendable {
    /// Samples at 48 kHz that one payload carries.
    var frameSamples: Int { get }
    /// Encodes exactly `frameSamples` samples.
    ///
    /// - Returns: Bytes written to `payload`; 0 when there is nothing to send (DTX, or a buffer that is too small).
    func encode(_ samples: UnsafeBufferPointer<Int16>, into payload: UnsafeMutableBufferPointer<UInt8>) -> Int
    /// Tells the encoder how much the peer loses, so that it can protect against it; 0 to 100.
    func setExpectedLoss(percent: Int)
    /// Forgets the past, for a new stream.
    func reset()
}

/// Turns the payloads of RTP packets into 48 kHz mono. Belongs to one thread; does not allocate when used.
///
/// Payloads come from the network: whatever they hold, a decoder answers with samples or 0, and never traps.
public protocol FrameDecoder: AnyObject, Sendable {
    /// Decodes one payload.
    ///
    /// - Returns: Samples written; 0 when the payload is unusable or does not fit (then conceal instead).
    func decode(_ payload: UnsafeBufferPointer<UInt8>, into samples: UnsafeMutableBufferPointer<Int16>) -> Int
    /// Recovers a lost frame from the packet after it.
    ///
    /// - Parameters:
    ///   - payload: The packet that follows the lost one; decode it with `decode` afterwards.
    ///   - samples: As long as the lost frame.
    /// - Returns: Samples written, the buffer's length; concealment where the packet holds no redundancy.
    func decodeFEC(_ payload: UnsafeBufferPointer<UInt8>, into samples: UnsafeMutableBufferPointer<Int16>) -> Int
    /// Invents what was lost: continues the sound and fades it out. Fills the whole buffer.
    func conceal(into samples: UnsafeMutableBufferPointer<Int16>)
    /// Forgets the past, for a new stream.
    func reset()
}

extension FrameEncoder {
    /// Codecs without protection do not care.
    public func setExpectedLoss(percent: Int) {}
}
