"""sinchctl beside baresip through the same Kamailio on loopback; docs/benchmarks.md explains the figures."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import wave

import clients
import figures
import messages
import processes
import wire
from kamailio import Kamailio

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def long_speech(source, target, seconds):
    """Repeats a WAV file until it is longer than any call, since neither program repeats it."""
    with wave.open(source) as reader:
        parameters = reader.getparams()
        sound = reader.readframes(reader.getnframes())
        rate = reader.getframerate()
    times = -(-int(seconds * rate) // parameters.nframes)
    with wave.open(target, "wb") as writer:
        writer.setparams(parameters)
        writer.writeframes(sound * times)
    return target


class Bench:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.figures = figures.all_figures()
        self.speech = long_speech(os.path.join(ROOT, "audio", "speech.wav"), os.path.join(work, "speech.wav"),
                                  options.call_seconds + 4)
        self.server = Kamailio(work)
        self.running = []
        try:
            self.wire = wire.Wire(self.server.port)
        except BaseException:
            self.server.stop()
            raise

    def close(self):
        for client in self.running:
            client.stop()
        self.wire.close()
        self.server.stop()

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def make(self, program, user, answers, **more):
        kind, path = {"sinchctl": (clients.Sinchctl, self.options.sinchctl),
                      "baresip": (clients.Baresip, self.options.baresip)}[program]
        return kind(path, self.work, user, self.server, self.speech, answers, **more)

    def start(self, client, figure="registered"):
        """Starts a client and waits for its registration."""
        self.wire.forget()
        issued = client.start()
        self.running.append(client)
        registered = self.wire.wait(wire.registration(client.user, self.server.port))
        if registered is None:
            raise RuntimeError(f"{client.name} {client.user} did not register: see {client.log}")
        if figure:
            self.figures[figure].add(client.name, (registered - issued) * 1000)
        if isinstance(client, clients.Sinchctl) and figure == "registered":
            self.figures["registeredDefault"].add(client.name, (registered - issued) * 1000)
            self.figures["startReturned"].add(client.name, (client.returned - issued) * 1000)

    def stop(self, client):
        self.running.remove(client)
        client.stop()

    def call(self, caller, callee):
        """Places a call; returns when it was issued and what was seen of its set-up."""
        self.wire.forget()
        issued = caller.call(callee.user)
        found = self.wire.wait(wire.setup(caller.user, callee.user, self.server.port))
        if found is None:
            seen = ", ".join(event.start for event in self.wire.events)
            raise RuntimeError(f"no call from {caller.name} to {callee.name}; on the wire: {seen or 'nothing'}")
        return issued, found

    def hang_up(self, caller, callee):
        caller.hang_up()
        if self.wire.wait(wire.goodbye(caller.user, callee.user, self.server.port)) is None:
            raise RuntimeError(f"{caller.name} did not hang up")
        # Both sides close their devices; the next call should not meet that.
        time.sleep(0.3)

    def check(self, caller, callee):
        """Calls between different programs: they must hear each other, else nothing here is worth comparing."""
        _, found = self.call(caller, callee)
        time.sleep(1)
        packets = {side: self.wire.bytes.get(port, (0, 0))[0] for side, port in found["ports"].items()}
        self.hang_up(caller, callee)
        if min(packets.values()) < 40:
            raise RuntimeError(f"{caller.name} to {callee.name}: RTP packets in a second: {packets}")
        self.say(f"  {caller.name} → {callee.name}: {packets['callee']} and {packets['caller']} RTP packets in a second")

    def measure_setup(self, issued, found):
        def since(name):
            return (found[name] - issued) * 1000
        both = max(since("rtp to caller"), since("rtp to callee"))
        return {
            "invite": since("invite"), "ringing": since("180"), "answer": since("200"),
            "rtpToCaller": since("rtp to caller"), "rtpToCallee": since("rtp to callee"),
            "firstRTP": min(since("rtp to caller"), since("rtp to callee")), "bothWays": both,
            "mediaAfterInvite": both - since("invite"),
        }

    def calls(self, caller, callee):
        """Several short calls for the set-up, then a long one for what a call costs."""
        program = caller.name
        for number in range(self.options.calls):
            issued, found = self.call(caller, callee)
            for name, value in self.measure_setup(issued, found).items():
                self.figures[name].add(program, value)
            time.sleep(0.5)
            if number < self.options.calls - 1:
                self.hang_up(caller, callee)
        time.sleep(0.5)
        both = (caller, callee)
        self.wire.reset_counts()
        begin, used = time.monotonic(), [processes.cpu_seconds(client.pid) for client in both]
        time.sleep(self.options.call_seconds)
        elapsed = time.monotonic() - begin
        for client, before in zip(both, used):
            self.figures["cpu"].add(program, (processes.cpu_seconds(client.pid) - before) * 60 / elapsed)
            self.figures["rssCall"].add(program, processes.resident_mib(client.pid))
            self.figures["ownCall"].add(program, processes.own_mib(client.pid))
        for port in found["ports"].values():
            self.figures["rate"].add(program, self.wire.bytes.get(port, (0, 0))[1] * 8 / 1000 / elapsed)
        self.hang_up(caller, callee)

    def commands(self, client):
        """Quick commands beside curl, in turns, with a client running."""
        curl = shutil.which("curl")
        ours = client.environment
        for _ in range(20):
            reference = processes.wall_time([curl, "--version"], os.environ) * 1000
            status = processes.wall_time([client.program, "status", "--user", client.user], ours) * 1000
            version = processes.wall_time([client.program, "version"], ours) * 1000
            for name, value in (("status", status), ("version", version)):
                self.figures[name].add("sinchctl", value)
                self.figures[name].add("curl", reference)

    def round(self, number):
        programs = ["sinchctl", "baresip"] if number % 2 == 0 else ["baresip", "sinchctl"]
        for program in programs:
            callee = self.make(program, f"{program}-callee", answers=True)
            caller = self.make(program, f"{program}-caller", answers=False)
            for client in (callee, caller):
                self.start(client)
                time.sleep(0.5)
                self.figures["rssIdle"].add(program, processes.resident_mib(client.pid))
            if program == "sinchctl":
                self.commands(caller)
            self.calls(caller, callee)
            for client in (caller, callee):
                self.stop(client)
        installed = self.make("baresip", "baresip-debian", answers=False, debian_modules=True)
        self.start(installed, figure="registeredDefault")
        self.stop(installed)

    def run(self):
        self.say("calls between the two programs:")
        ours = [self.make("sinchctl", f"ours-{number}", answers=number == 1) for number in (1, 2)]
        theirs = [self.make("baresip", f"theirs-{number}", answers=number == 1) for number in (1, 2)]
        for client in ours + theirs:
            self.start(client, figure=None)
        self.check(ours[1], theirs[0])
        self.check(theirs[1], ours[0])
        for client in ours + theirs:
            self.stop(client)
        for number in range(self.options.rounds):
            self.say(f"round {number + 1} of {self.options.rounds}")
            self.round(number)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds; medians are shown (5)")
    parser.add_argument("--calls", type=int, default=5, help="calls in each round and program (5)")
    parser.add_argument("--call-seconds", type=float, default=20, help="length of the call whose cost is measured (20)")
    parser.add_argument("--json", action="store_true", help="print all samples as JSON instead of a table")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when an aim is missed")
    parser.add_argument("--sinchctl", default=os.path.join(ROOT, ".build/release/sinchctl"), help="the program")
    parser.add_argument("--baresip", default=shutil.which("baresip"), help="the other program")
    parser.add_argument("--messages", action="store_true", help="measure only how SIP messages are read")
    options = parser.parse_args()
    if options.messages:
        results = messages.measure(ROOT)
        print(json.dumps(results, indent=2) if options.json else messages.table(results))
        raise SystemExit(1 if options.strict and not messages.is_met(results) else 0)
    if not os.access(options.sinchctl, os.X_OK):
        raise SystemExit("bench: there is no .build/release/sinchctl; run: make build")
    if options.baresip is None:
        raise SystemExit("bench: baresip is not installed; run: scripts/setup bench")
    options.sinchctl = os.path.abspath(options.sinchctl)

    read = messages.measure(ROOT)
    with tempfile.TemporaryDirectory(prefix="bench.") as work:
        bench = Bench(options, work)
        try:
            bench.run()
        except RuntimeError as error:
            raise SystemExit(f"bench: {error}") from None
        finally:
            bench.close()
    if options.json:
        print(json.dumps({
            "rounds": options.rounds, "callsPerRound": options.calls, "callSeconds": options.call_seconds,
            "cores": os.cpu_count(), "figures": [figure.document() for figure in bench.figures.values()], "messages": read,
        }, indent=2, ensure_ascii=False))
    else:
        print(figures.table(bench.figures))
        print()
        print(messages.table(read))
    is_missed = any(figure.is_met is False for figure in bench.figures.values()) or not messages.is_met(read)
    if options.strict and is_missed:
        raise SystemExit(1)


main()
