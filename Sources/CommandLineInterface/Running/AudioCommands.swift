import Audio
import Configuration

/// `sinchctl devices`
@Sendable func runDevices(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    var devices = AudioDevices.list().map { device in
        (
            name: device.name.description, summary: device.summary, capture: device.canCapture,
            playback: device.canPlay
        )
    }
    let hasSound = !devices.isEmpty
    devices += Topics.devices.dropFirst().map { device in
        let isSource = device.name.hasPrefix("tone")
        return (name: device.name, summary: device.text, capture: true, playback: !isSource)
    }
    context.output.result(
        [
            "devices": .array(
                devices.map {
                    [
                        "name": .string($0.name), "summary": .string($0.summary), "capture": .bool($0.capture),
                        "playback": .bool($0.playback),
                    ]
                })
        ],
        text: deviceTable(devices, context.output.terminal))
    if !hasSound {
        context.output.progress("ALSA knows no device here; the virtual ones need none")
    }
    return .ok
}

private func deviceTable(
    _ devices: [(name: String, summary: String, capture: Bool, playback: Bool)], _ terminal: Terminal
) -> String {
    var table = TextTable(["DEVICE", "USE", "DESCRIPTION"])
    for device in devices {
        let use = [device.capture ? "capture" : nil, device.playback ? "playback" : nil].compactMap(\.self)
        table.add([device.name, use.joined(separator: ", "), device.summary])
    }
    return table.text(for: terminal)
}

/// `sinchctl verify REFERENCE HEARD`
@Sendable func runVerify(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let referencePath = parsed.argument("REFERENCE") ?? ""
    let heardPath = parsed.argument("HEARD") ?? ""
    let match: SignalMatch
    do throws(AudioError) {
        let reference = try WAVFile(path: referencePath)
        let heard = try WAVFile(path: heardPath)
        let channel = parsed.string("channel") == "left" ? heard.channels.first : heard.channels.last
        match = SignalMatch.compare(reference: reference.channels.first ?? [], heard: channel ?? [])
    } catch {
        throw CommandFailure(error)
    }
    let percent = match.score * 100
    let minimum = parsed.integer("minimum-match") ?? 60
    let length = parsed.duration("minimum-length") ?? .seconds(1)
    let isEnough = Duration.nanoseconds(Int64(match.comparedSeconds * 1e9)) >= length
    let isMatch = percent >= Double(minimum) && isEnough
    let failure = CommandFailure(
        exit: .assertionFailed, step: "verify",
        message: isEnough
            ? "'\(heardPath)' does not match '\(referencePath)': \(decimal(percent, 1)) %, \(minimum) % are wanted"
            : "'\(heardPath)' holds too little of '\(referencePath)': \(decimal(match.comparedSeconds, 2)) s",
        hint: "listen to the recording; 'sinchctl events' says what happened to the call")
    var document: [String: JSONValue] = [
        "isMatch": .bool(isMatch), "match": .number(match.score), "beginsAt": .number(match.offset),
        "levelDifference": .number(match.levelDifference), "comparedSeconds": .number(match.comparedSeconds),
        "gapSeconds": .number(match.gapSeconds), "longestGap": .number(match.longestGap),
        "gaps": .array(match.gaps.map { ["start": .number($0.start), "duration": .number($0.duration)] }),
    ]
    if !isMatch, case .object(let error) = JSONValue(failure) { document.merge(error) { first, _ in first } }
    let gaps =
        match.gaps.isEmpty
        ? "none" : "\(match.gaps.count), \(decimal(match.gapSeconds, 2)) s, longest \(decimal(match.longestGap, 2)) s"
    let verdict = context.output.terminal.styled(isMatch ? "same sound" : "not the same", isMatch ? .good : .bad)
    context.output.result(
        .object(document),
        text: TextLayout.fields([
            ("match", "\(decimal(percent, 1)) % (\(verdict))"), ("compared", "\(decimal(match.comparedSeconds, 2)) s"),
            ("begins at", "\(decimal(match.offset, 3)) s"), ("level", "\(decimal(match.levelDifference, 1)) dB"),
            ("gaps", gaps),
        ]))
    if !isMatch { throw failure }
    return .ok
}

/// A number with so many digits after the point.
private func decimal(_ number: Double, _ digits: Int) -> String {
    let scale = (0..<digits).reduce(1.0) { scale, _ in scale * 10 }
    guard let scaled = Int64(exactly: (number * scale).rounded()) else { return "?" }
    let text = String(scaled.magnitude)
    let padded = String(repeating: "0", count: max(0, digits + 1 - text.count)) + text
    return (scaled < 0 ? "-" : "") + padded.dropLast(digits) + (digits > 0 ? "." : "") + padded.suffix(digits)
}
