"""How fast SIP messages are read, and what that takes of the heap: a typical INVITE beside RFC 4475's largest."""

import json
import os
import subprocess

LARGEST = os.path.join("Tests", "SIPTests", "Vectors", "rfc4475", "longreq.dat")
# Typical INVITEs parsed and validated in a second on one core.
AIM = 200_000


def measure(root):
    """Builds the measuring program in a folder of its own, since it replaces malloc, and runs it."""
    build = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--scratch-path", ".build/tools",
             "--product", "message-benchmark"]
    subprocess.run(build, cwd=root, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, SINCHCTL_TOOLS="1"))
    program = os.path.join(".build", "tools", "release", "message-benchmark")
    result = subprocess.run([program, LARGEST], cwd=root, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


def is_met(results):
    """Whether the aim is met."""
    return all(result["perSecond"] >= AIM for result in results
               if result["work"] == "parse and validate" and result["message"].startswith("typical"))


def table(results):
    """The results for people."""
    messages = list(dict.fromkeys(result["message"] for result in results))
    found = {(result["work"], result["message"]): result for result in results}
    sizes = {result["message"]: result["bytes"] for result in results}
    lines = ["SIP messages, one core".ljust(28) + "".join(
        f"{message}, {sizes[message]} B".rjust(46) for message in messages)]
    for work in dict.fromkeys(result["work"] for result in results):
        cells = []
        for message in messages:
            result = found[work, message]
            heap = f"{result['allocatedBytes']:,} B in {result['allocations']} blocks"
            cells.append(f"{result['perSecond']:,}/s  {heap:>21}".rjust(46))
        aim = ""
        if work == "parse and validate":
            aim = f"  ≥ {AIM:,}/s {'met' if is_met(results) else 'NOT MET'}"
        lines.append(work.ljust(28) + "".join(cells) + aim)
    return "\n".join(lines)
