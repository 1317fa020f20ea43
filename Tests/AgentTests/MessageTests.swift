import Configuration
import FoundationEssentials
import Testing

@testable import Agent

struct MessageTests {
    private func request(_ text: String) -> AgentRequest? {
        try? JSONDecoder().decode(AgentRequest.self, from: Data(text.utf8))
    }

    @Test func requestsAreOfTheProtocolOrNot() throws {
        #expect(request(#"{"jsonrpc":"2.0","id":1,"method":"status"}"#)?.isWellFormed == true)
        #expect(request(#"{"jsonrpc":"2.0","id":"a","method":"status","params":{}}"#)?.isWellFormed == true)
        #expect(request(#"{"jsonrpc":"2.0","method":"status"}"#)?.isWellFormed == true, "a notification")
        #expect(request(#"{"jsonrpc":"1.0","id":1,"method":"status"}"#)?.isWellFormed == false)
        for id in ["{}", "[]", "true"] {
            #expect(request("{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"status\"}")?.isWellFormed == false, "\(id)")
        }
        for text in [#"{"id":1,"method":"status"}"#, #"{"jsonrpc":"2.0","id":1}"#, "[]", "7", "null", "\"status\""] {
            #expect(request(text) == nil, "\(text)")
        }
    }

    @Test func linesAreOneLineAndStable() {
        let value = JSONValue.object([
            "b": .string("a\nb/c"), "a": .array([.integer(1), .number(0.5), .null, .bool(true)]),
        ])
        let line = String(decoding: AgentProtocol.encode(value), as: UTF8.self)
        #expect(line == #"{"a":[1,0.5,null,true],"b":"a\nb/c"}"#)
        #expect(JSONConversion.value(value) == value, "nothing is lost on the way there and back")
    }

    @Test func numbersKeepTheirKind() throws {
        func value(_ text: String) throws -> JSONValue {
            try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        }
        #expect(try value("[0,1,-5]") == .array([.integer(0), .integer(1), .integer(-5)]), "no truth values")
        #expect(try value("9223372036854775807").integer == .max)
        #expect(try value("0.25").double == 0.25)
        #expect(try value("0.25").integer == nil)
        #expect(try value("false").bool == false)
    }

    @Test func failuresCrossTheSocketUnchanged() throws {
        for exit in ExitCode.allCases {
            let failure = CommandFailure(exit: exit, step: "ringing", sipStatus: 486, message: "m", hint: "h")
            let object = AgentErrorObject(code: 1, message: "m", data: failure)
            let line = AgentProtocol.encode(AgentResponse(id: .integer(3), error: object))
            let response = try JSONDecoder().decode(AgentResponse.self, from: Data(line))
            #expect(response.error?.data == failure)
        }
    }
}

struct EventHistoryTests {
    private func event(_ number: UInt64, _ name: String = "ringing") -> AgentEvent {
        AgentEvent(seq: number, time: "", event: name, user: "alice")
    }

    @Test func keepsTheLastThousandInOrder() {
        var history = EventHistory()
        for number in 1...2_500 as ClosedRange<UInt64> { history.append(event(number)) }
        #expect(history.nextSequence == 2_501)
        #expect(history.recent.map(\.seq) == Array(1_501...2_500))
        #expect(history.since(2_498).map(\.seq) == [2_499, 2_500])
        #expect(history.since(0).count == 1_000)
        #expect(history.since(2_500).isEmpty)
    }

    @Test func tellsListenersUntilTheyStop() {
        var history = EventHistory()
        nonisolated(unsafe) var heard: [UInt64] = []
        let number = history.listen { heard.append($0.seq) }
        history.append(event(1))
        history.append(event(2))
        history.stopListening(number)
        history.append(event(3))
        #expect(heard == [1, 2])
    }

    @Test func remembersTheRegistration() {
        var history = EventHistory()
        #expect(history.lastRegistrationEvent == nil)
        for (number, name) in ["registered", "ringing", "registrationLost", "ended"].enumerated() {
            history.append(event(UInt64(number + 1), name))
        }
        #expect(history.lastRegistrationEvent == "registrationLost")
    }
}

struct NestingTests {
    @Test func depthIsCountedOutsideOfTexts() {
        #expect(AgentProtocol.depth(of: Array("1".utf8)) == 0)
        #expect(AgentProtocol.depth(of: Array(#"{"a":[1,{"b":[]}],"c":{}}"#.utf8)) == 4)
        #expect(AgentProtocol.depth(of: Array(#"{"a":"[[[\"[[["}"#.utf8)) == 1)
        #expect(AgentProtocol.depth(of: [UInt8](repeating: UInt8(ascii: "["), count: 60_000)) == 60_000)
        // No request or parameter of ours comes near the bound.
        #expect(AgentProtocol.greatestDepth < 16)
    }
}
