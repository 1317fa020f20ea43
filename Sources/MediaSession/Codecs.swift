import Audio
import SDP

/// Makes the encoders and decoders that a negotiation asks for.
enum Codecs {
    static func decoder(for codec: AudioCodec) throws(AudioError) -> any FrameDecoder {
        switch codec.name.lowercased() {
        case "opus": return try OpusDecoder()
        case "pcmu": return try G711Decoder(law: .muLaw)
        case "pcma": return try G711Decoder(law: .aLaw)
        default: throw AudioError(.internal, "codec \(codec.name) was agreed on but is not there")
        }
    }

    static func encoder(for audio: NegotiatedAudio, bitrate: Int, complexity: Int) throws(AudioError)
        -> any FrameEncoder
    {
        let frameSamples = AudioFormat.sampleRate / 1_000 * audio.ptime
        switch audio.codec.name.lowercased() {
        case "opus":
            var configuration = OpusEncoder.Configuration()
            // What the peer asks for may be less than Opus can do.
            configuration.bitrate = max(6_000, min(bitrate, audio.maxAverageBitrate ?? bitrate))
            configuration.complexity = complexity
            // Redundancy that the peer does not look at would only cost quality.
            configuration.inBandFEC = audio.useInbandFEC
            configuration.constantBitrate = audio.cbr
            configuration.frameSamples = frameSamples
            return try OpusEncoder(configuration)
        case "pcmu": return try G711Encoder(law: .muLaw, frameSamples: frameSamples)
        case "pcma": return try G711Encoder(law: .aLaw, frameSamples: frameSamples)
        default: throw AudioError(.internal, "codec \(audio.codec.name) was agreed on but is not there")
        }
    }
}
