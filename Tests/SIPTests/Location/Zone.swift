import DNS
import Primitives

@testable import SIP

/// The answers of a domain name system that a test made up; a name that is not there does not exist.
struct Zone {
    var answers: [DNSQuestion: DNSAnswer] = [:]

    init(_ lines: [String]) {
        for line in lines { add(line) }
    }

    /// One line as in a zone file: `NAME TYPE DATA…`; `NAME TYPE !failed`, `!timedOut`, `!noData` for answers without.
    private mutating func add(_ line: String) {
        let fields = line.split(separator: " ").map(String.init)
        let (name, rest) = (fields[0], fields.dropFirst(2))
        let number = { (index: Int) in UInt16(fields[2 + index]) ?? 0 }
        let bare = { (index: Int) in DNSName.withoutFinalDot(fields[2 + index]) }
        let question: DNSQuestion
        var record: DNSRecord?
        switch fields[1] {
        case "A", "AAAA":
            question = DNSQuestion(name, fields[1] == "A" ? .a : .aaaa)
            record = .address(fields[2])
        case "SRV":
            question = DNSQuestion(name, .srv)
            if rest.count == 4 {
                record = .service(
                    SRVRecord(priority: number(0), weight: number(1), port: number(2), target: bare(3)))
            }
        default:
            question = DNSQuestion(name, .naptr)
            if rest.count == 5 {
                record = .rule(
                    NAPTRRecord(
                        order: number(0), preference: number(1), flags: fields[4], service: fields[5].lowercased(),
                        replacement: bare(4)))
            }
        }
        switch rest.first {
        case "!failed": answers[question] = .failed(.noServer("SERVFAIL"))
        case "!timedOut": answers[question] = .failed(.timedOut)
        case "!noData": answers[question] = .noData
        default:
            guard let record else { return }
            if case .records(let known) = answers[question] {
                answers[question] = .records(known + [record])
            } else {
                answers[question] = .records([record])
            }
        }
    }

    /// What a name server would say; complete names are the same with and without the dot.
    func answer(_ question: DNSQuestion) -> DNSAnswer {
        let bare = DNSName.withoutFinalDot(question.name)
        if let answer = answers[DNSQuestion(bare, question.type)] { return answer }
        return answers.keys.contains { $0.name == bare } ? .noData : .noSuchName
    }
}

/// How locating ended.
enum Located: Equatable {
    case found([ServerCandidate])
    case failed(ServerLocationFailure.Kind)
    case unfinished
}

/// Runs a locator against a zone; the answers come in the order of the questions, or in the reverse one.
struct Search {
    var questions: [DNSQuestion] = []
    var end = Located.unfinished
    var message = ""

    init(
        _ target: ServerTarget, _ zone: Zone, seed: UInt64 = 1, history: ServerHistory = ServerHistory(),
        at now: MonotonicTime = .zero, isReversed: Bool = false
    ) {
        var locator = ServerLocator(target: target, random: .seeded(seed), history: history, at: now)
        while end == .unfinished {
            var batch: [DNSQuestion] = []
            while let action = locator.nextAction() {
                switch action {
                case .ask(let question): batch.append(question)
                case .found(let candidates): end = .found(candidates)
                case .failed(let failure):
                    end = .failed(failure.kind)
                    message = failure.message
                }
            }
            if batch.isEmpty { break }
            questions += batch
            for question in isReversed ? batch.reversed() : batch {
                locator.receive(zone.answer(question), to: question)
            }
        }
    }

    var candidates: [ServerCandidate] {
        if case .found(let candidates) = end { candidates } else { [] }
    }

    /// The candidates as `tls 192.0.2.1:5061`.
    var places: [String] { candidates.map { "\($0.transport.rawValue) \($0.address)" } }
}
