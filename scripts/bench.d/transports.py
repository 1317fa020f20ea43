"""Call set-up over each transport beside baresip, through the same Kamailio (deploy/kamailio/run).

    scripts/bench transports [--rounds N] [--calls N] [--json]

Encrypted signalling cannot be watched, so each program says itself when its call was answered, and the first RTP, which
is plain, is seen on the wire. The network is the measurement's own: whatever RTP passes belongs to the call.
docs/benchmarks.md explains the figures.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

import clients
import environments
import wire

ROOT = environments.ROOT
TRANSPORTS = {"udp": "UDP", "tcp": "TCP", "tls": "TLS", "wss": "WSS"}
FIGURES = {
    "answer": "command → 200", "firstRTP": "command → first RTP", "bothWays": "command → RTP both ways",
    "mediaAfterBegin": "call begins → RTP both ways",
}
# A connection that has carried nothing but a REGISTER behaves otherwise than one that has seen a call.
WHICH = ("first", "further")


def both_ways(events):
    """The first RTP packet of each direction, when the two are one stream there and back."""
    first = {(event.source, event.target): event.time for event in events if event.start == "RTP"}
    for (source, target), moment in first.items():
        if (target, source) in first:
            return sorted((moment, first[target, source]))
    return None


class Transports:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.samples = {}
        self.running = []
        self.wire = wire.Wire(5060)
        # Each user is new, so that no registration of a client before is called.
        self.users = iter([f"phone{number}" for number in range(9999)])
        phones = [f"phone{number}" for number in range(4 * (options.rounds + 1) * len(TRANSPORTS))]
        self.server = environments.Kamailio(work, memory=64, phones=phones)

    def close(self):
        for client in list(self.running):
            self.stop(client)
        self.wire.close()
        self.server.stop()

    def start(self, program, transport, answers):
        kind, path = {"sinchctl": (clients.Sinchctl, self.options.sinchctl),
                      "baresip": (clients.Baresip, self.options.baresip)}[program]
        client = kind(path, self.work, next(self.users), self.server, self.options.speech, answers, transport=transport)
        client.start()
        self.running.append(client)
        where, _, scheme = self.server.proxy(transport).partition(";transport=")
        socket = f"Socket: {'tls' if scheme == 'wss' else scheme}:{where}"
        deadline = time.monotonic() + 10
        while socket not in self.server.control("ul.lookup", "location", f"{client.user}@{self.server.application}"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{program} did not register over {TRANSPORTS[transport]}: see {client.log}")
            time.sleep(0.05)
        return client

    def stop(self, client):
        self.running.remove(client)
        client.stop()

    def call(self, caller, callee):
        """Places a call, waits for sound in both directions and ends it; returns the moments."""
        self.wire.forget()
        issued, began, answered = caller.timed_call(callee.user)
        heard = self.wire.wait(both_ways)
        if heard is None:
            raise RuntimeError(f"no RTP in both directions between {caller.name} and {callee.name}")
        time.sleep(0.3)
        caller.hang_up()
        # The next call begins when nothing is sent any more, and both sides have closed their devices.
        quiet_since, packets = time.monotonic(), None
        while time.monotonic() - quiet_since < 0.3:
            seen = dict(self.wire.bytes)
            if seen != packets:
                quiet_since, packets = time.monotonic(), seen
            time.sleep(0.02)
        return issued, began, answered, heard

    def measure(self, program, transport):
        callee = self.start(program, transport, answers=True)
        caller = self.start(program, transport, answers=False)
        for number in range(self.options.calls):
            issued, began, answered, (first, both) = self.call(caller, callee)
            values = {"answer": answered - issued, "firstRTP": first - issued, "bothWays": both - issued,
                      "mediaAfterBegin": both - began}
            for name, value in values.items():
                key = name, transport, WHICH[min(number, 1)]
                self.samples.setdefault(key, {}).setdefault(program, []).append(value * 1000)
        self.stop(caller)
        self.stop(callee)

    def check(self, transport):
        """Calls between the two programs: they must send to each other, else the comparison is worth nothing."""
        for caller, callee in (("sinchctl", "baresip"), ("baresip", "sinchctl")):
            called, calling = self.start(callee, transport, answers=True), self.start(caller, transport, answers=False)
            self.call(calling, called)
            self.stop(calling)
            self.stop(called)

    def run(self):
        for transport, name in TRANSPORTS.items():
            if transport != "wss":
                self.check(transport)
                print(f"  {name}: the two programs call each other", file=sys.stderr)
        for number in range(self.options.rounds):
            print(f"round {number + 1} of {self.options.rounds}", file=sys.stderr)
            for transport in TRANSPORTS:
                # baresip 1.0.0 has no WebSocket.
                programs = ["sinchctl", "baresip"] if transport != "wss" else ["sinchctl"]
                for program in programs if number % 2 == 0 else reversed(programs):
                    self.measure(program, transport)

    def rows(self):
        for name, label in FIGURES.items():
            for transport, transport_name in TRANSPORTS.items():
                for which in WHICH:
                    found = self.samples[name, transport, which]
                    ours, theirs = (statistics.median(found[program]) if program in found else None
                                    for program in ("sinchctl", "baresip"))
                    over_udp = statistics.median(self.samples[name, "udp", which]["sinchctl"])
                    yield {"figure": label, "transport": transport_name, "calls": which, "unit": "ms", "sinchctl": ours,
                           "baresip": theirs, "ratio": ours / theirs if theirs else None, "besideUDP": ours / over_udp,
                           "samples": found}


def table(rows):
    """Two rows, of the first and the further calls, become one line."""
    def cells(row):
        for program in ("sinchctl", "baresip"):
            values = row["samples"].get(program)
            yield f"{row[program]:.1f} ({min(values):.0f}–{max(values):.0f})".rjust(14) if values else "–".rjust(14)
        yield (f"{row['ratio']:.2f}" if row["ratio"] else "–").rjust(6)
        yield f"{row['besideUDP']:.2f}".rjust(6)
    heads = "".join(head.rjust(width) for head, width in (("ours", 14), ("baresip", 14), ("ratio", 6), ("/UDP", 6)))
    lines = ["ms: median (least–most)".ljust(32) + "first call".rjust(40) + "further calls".rjust(40),
             " " * 32 + heads + heads]
    for first, further in zip(rows[::2], rows[1::2]):
        label = first["figure"].ljust(28) + first["transport"].ljust(4)
        lines.append(label + "".join(cells(first)) + "".join(cells(further)))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench transports", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=6, help="rounds; medians are shown (6)")
    parser.add_argument("--calls", type=int, default=4, help="calls in each round, program and transport (4)")
    parser.add_argument("--json", action="store_true", help="print all samples as JSON instead of a table")
    parser.add_argument("--sinchctl", default=os.path.join(ROOT, ".build/release/sinchctl"), help="the program")
    parser.add_argument("--baresip", default=shutil.which("baresip"), help="the other program")
    options = parser.parse_args()
    if not os.access(options.sinchctl, os.X_OK):
        raise SystemExit("bench: there is no .build/release/sinchctl; run: make build")
    if options.baresip is None:
        raise SystemExit("bench: baresip is not installed; run: scripts/setup bench")
    if options.rounds < 1 or options.calls < 2:
        parser.error("it takes at least one round, and two calls")
    options.sinchctl = os.path.abspath(options.sinchctl)
    options.speech = os.path.join(ROOT, "audio", "speech.wav")
    with tempfile.TemporaryDirectory(prefix="bench.") as work:
        bench = Transports(options, work)
        try:
            bench.run()
        except RuntimeError as error:
            raise SystemExit(f"bench: {error}") from None
        finally:
            bench.close()
        rows = list(bench.rows())
    if options.json:
        print(json.dumps({"cores": os.cpu_count(), "rounds": options.rounds, "callsPerRound": options.calls,
                          "figures": rows}, indent=2, ensure_ascii=False))
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
