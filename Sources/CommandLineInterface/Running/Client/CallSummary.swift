import Agent
import Configuration
import MediaSession

/// What people read when a call is over.
enum CallSummary {
    static func text(_ call: CallReport) -> String {
        var lines = [headline(call)]
        if let media = call.media { lines += mediaLines(media) }
        if let recording = call.recording { lines.append("  recorded to \(recording)") }
        return lines.joined(separator: "\n")
    }

    private static func headline(_ call: CallReport) -> String {
        let partner = call.direction == "incoming" ? "call from \(call.remote)" : "call to \(call.remote)"
        let setUp = call.delays["established"].map { ", heard after \(Numbers.milliseconds($0))" } ?? ""
        let lasted = call.duration.map { ", lasted \(Numbers.seconds($0))" } ?? ""
        let by = call.end.map { $0.isLocal ? ", hung up here" : ", hung up by the other side" } ?? ""
        return partner + setUp + lasted + by
    }

    static func mediaLines(_ media: MediaStatistics) -> [String] {
        let loss = Numbers.percent(media.lossRatio)
        let concealed =
            media.totalSamplesReceived > 0
            ? Double(media.concealedSamples) / Double(media.totalSamplesReceived) : 0
        return [
            "  \(media.codec), sent \(media.packetsSent) packets, received \(media.packetsReceived), "
                + "lost \(media.packetsLost) (\(loss))",
            "  jitter \(Numbers.milliseconds(media.jitter * 1_000)), buffer delay "
                + "\(Numbers.milliseconds(media.jitterBufferDelay * 1_000)), concealed \(Numbers.percent(concealed))",
        ]
    }
}

/// Numbers as people read them.
enum Numbers {
    static func milliseconds(_ value: Double) -> String {
        value < 10 ? "\((value * 10).rounded() / 10) ms" : "\(Int(value.rounded())) ms"
    }

    static func seconds(_ value: Double) -> String {
        "\((value * 10).rounded() / 10) s"
    }

    static func percent(_ ratio: Double) -> String {
        "\((ratio * 1_000).rounded() / 10) %"
    }
}

extension Output {
    /// Prints a result that came from an agent: the JSON document, or text for people.
    func agentResult(_ value: AgentValue, text: () -> String) {
        if isJSON {
            document(String(decoding: AgentProtocol.encode(value), as: UTF8.self))
        } else {
            line(text())
        }
    }
}
