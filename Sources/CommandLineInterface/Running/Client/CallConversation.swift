import Agent
import Configuration
import FoundationEssentials
import Glibc

/// One call as its command sees it: events until the end, a time limit, the user's keys and interrupts.
struct CallConversation {
    let channel: AgentChannel
    let callId: String
    let signals: SignalInput
    let context: CommandContext
    let deadline: ContinuousClock.Instant?
    let isDetached: Bool
    /// The line that shows the call at a terminal; nil elsewhere.
    let live: LiveLine?

    /// How the waiting ended before the call did.
    private enum Interruption {
        case timeout
        case signal(Int32)
    }

    func run() throws(CommandFailure) -> ExitCode {
        var interruption: Interruption?
        while true {
            switch try channel.nextEvent(timeout: .zero) {
            case .end: throw channel.gone
            case .happened(let event):
                guard let call = event.call, call.id == callId else { continue }
                if event.event == "ended" {
                    live?.close()
                    return try finish(call, interruption)
                }
                live?.clear()
                context.output.progress(progress(event, call))
                if isDetached, event.event == "established" { return detach(call) }
                continue
            case .nothing: break
            }
            let left = interruption == nil ? deadline.map { max(.zero, $0 - .now) } : nil
            let isTicking = live != nil && interruption == nil
            let wait = isTicking ? min(left ?? .milliseconds(500), .milliseconds(500)) : left
            let inputs = isTicking ? [channel.descriptor, STDIN_FILENO] : [channel.descriptor]
            switch signals.wait(alsoFor: inputs, timeout: wait) {
            case .readable(STDIN_FILENO):
                try press(live?.readKey())
            case .readable: continue
            case .signal(let number):
                // The first interrupt hangs up; the second ends the command at once.
                live?.close()
                if interruption != nil { _exit(number == SIGINT ? 130 : 143) }
                interruption = .signal(number)
                hangUp()
            case .timedOut:
                if isTicking, deadline.map({ $0 > .now }) ?? true {
                    try refresh()
                    continue
                }
                interruption = .timeout
                hangUp()
            }
        }
    }

    /// Ends the call for a reason of this side; that it has ended comes as an event.
    private func hangUp() {
        _ = try? channel.request("hangup", .object(["call": .string(callId)]), timeout: .seconds(2))
    }

    private func press(_ key: LiveLine.Key?) throws(CommandFailure) {
        switch key {
        case .quit: hangUp()
        case .mute(let muted):
            _ = try channel.request(muted ? "mute" : "unmute", .object(["call": .string(callId)]))
            try refresh()
        case .hold(let hold): order(hold ? "hold" : "resume", [:])
        case .digit(let digit): order("dtmf", ["keys": .string(String(digit))])
        case nil: break
        }
    }

    /// Asks for something of which an event tells when it is done, so that the keyboard never waits. Before the answer it
    /// cannot be done, which is no reason to end the call.
    private func order(_ method: String, _ parameters: [String: AgentValue]) {
        var parameters = parameters
        parameters["call"] = .string(callId)
        parameters["wait"] = .bool(false)
        do throws(CommandFailure) {
            _ = try channel.request(method, .object(parameters), timeout: .seconds(2))
        } catch {
            live?.clear()
            context.output.progress(error.message)
        }
    }

    /// Shows the call as it is now.
    private func refresh() throws(CommandFailure) {
        guard let live, let value = try? channel.request("stats", .object(["call": .string(callId)])) else { return }
        guard let report = try? JSONDecoder().decode(CallReport.self, from: Data(AgentProtocol.encode(value))) else {
            return
        }
        live.show(report)
    }

    private func progress(_ event: AgentEvent, _ call: CallReport) -> String {
        let delay = call.delays[event.event].map { " after \(Numbers.milliseconds($0))" } ?? ""
        return switch event.event {
        case "initiating": "calling \(call.remote)"
        case "progressing": "the environment is working on the call\(delay)"
        case "ringing": "\(call.remote) is ringing\(delay)"
        case "answered": "\(call.remote) answered\(delay)"
        case "established": "both sides hear each other\(delay)"
        case "held": "on hold"
        case "resumed": "the call goes on"
        case "heldByRemote": "\(call.remote) put the call on hold"
        case "resumedByRemote": "\(call.remote) goes on with the call"
        case "dtmf": "\(call.remote) pressed \(event.key ?? "a key")"
        case "dtmfSent": "the key was sent"
        case "transferProgress": "the other side calls: \(event.sipStatus ?? 100)"
        case "transferred": "\(call.remote) is transferred"
        default: event.message ?? "\(event.event)\(delay)"
        }
    }

    private func detach(_ call: CallReport) -> ExitCode {
        context.output.agentResult(JSONConversion.value(call)) {
            "the call to \(call.remote) is established and goes on; "
                + "end it: sinchctl hangup --as \(channel.user) \(call.id.prefix(8))"
        }
        return .ok
    }

    private func finish(_ call: CallReport, _ interruption: Interruption?) throws(CommandFailure) -> ExitCode {
        guard let failure = failure(of: call, interruption) else {
            context.output.agentResult(JSONConversion.value(call)) { CallSummary.text(call) }
            return .ok
        }
        // The document says everything: the report of the call, and the error in it.
        var report = JSONConversion.value(call)
        if case .object(var members) = report {
            members["error"] = JSONConversion.value(failure)
            report = .object(members)
        }
        // A call that was heard has measurements, however it ended.
        context.output.agentResult(report) { call.delays["established"] == nil ? "" : CallSummary.text(call) }
        throw failure
    }

    /// Why the command fails; nil when the call was established and ended normally.
    private func failure(of call: CallReport, _ interruption: Interruption?) -> CommandFailure? {
        switch interruption {
        case .timeout:
            CommandFailure(
                exit: .timeout, step: call.end?.step, message: "the call was not over in the time of --timeout",
                hint: "give it more time, or bound the conversation itself with --duration")
        case .signal(let number):
            CommandFailure(
                exit: number == SIGINT ? .interrupted : .terminated, step: call.end?.step,
                message: "interrupted; the call was hung up")
        case nil: call.failure
        }
    }
}
