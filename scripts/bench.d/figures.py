"""The figures: what each is called, what it aims at, and how the results are shown."""

import statistics


class Figure:
    """One figure of both programs; samples are collected round by round."""

    def __init__(self, name, label, unit, aim=None, digits=2, reference="baresip"):
        self.name = name
        self.label = label
        self.unit = unit
        self.aim = aim  # the largest ratio that is good
        self.digits = digits
        self.reference = reference  # what the other column is
        self.samples = {"sinchctl": [], "reference": []}

    def add(self, program, value):
        self.samples["sinchctl" if program == "sinchctl" else "reference"].append(value)

    def median(self, side):
        return statistics.median(self.samples[side]) if self.samples[side] else None

    @property
    def ratio(self):
        ours, other = self.median("sinchctl"), self.median("reference")
        return ours / other if ours is not None and other else None

    @property
    def is_met(self):
        return None if self.aim is None or self.ratio is None else self.ratio <= self.aim

    def document(self):
        return {
            "name": self.name, "label": self.label, "unit": self.unit, "reference": self.reference,
            "sinchctl": self.median("sinchctl"), "referenceValue": self.median("reference"), "ratio": self.ratio,
            "aim": self.aim, "isMet": self.is_met, "samples": self.samples,
        }


def all_figures():
    """The figures in the order in which they are shown."""
    figures = [
        Figure("invite", "command → INVITE", "ms"),
        Figure("ringing", "command → 180", "ms"),
        Figure("answer", "command → 200", "ms"),
        Figure("rtpToCaller", "command → first RTP, callee to caller", "ms"),
        Figure("rtpToCallee", "command → first RTP, caller to callee", "ms"),
        Figure("firstRTP", "command → first RTP", "ms", aim=1),
        Figure("bothWays", "command → RTP both ways", "ms"),
        Figure("mediaAfterInvite", "INVITE → RTP both ways", "ms"),
        Figure("registered", "start → registered", "ms", aim=0.25),
        Figure("registeredDefault", "start → registered, Debian's modules", "ms", aim=0.25, reference="baresip (Debian)"),
        Figure("startReturned", "start → command returned", "ms"),
        Figure("cpu", "CPU s per minute of call", "s", aim=1, digits=3),
        Figure("rssIdle", "RSS, registered", "MiB", aim=1.5, digits=1),
        Figure("rssCall", "RSS, in a call", "MiB", aim=1.5, digits=1),
        Figure("ownCall", "own memory, in a call", "MiB", digits=1),
        Figure("rate", "Opus payload", "kb/s", digits=1),
        Figure("status", "sinchctl status", "ms", aim=1.5, reference="curl --version"),
        Figure("version", "sinchctl version", "ms", reference="curl --version"),
    ]
    return {figure.name: figure for figure in figures}


def table(figures):
    """The results for people."""
    head = ("figure", "ours", "theirs", "beside", "ratio", "aim", "")
    rows = []
    for figure in figures.values():
        def shown(side, figure=figure):
            value = figure.median(side)
            return "–" if value is None else f"{value:.{figure.digits}f} {figure.unit}"
        if figure.median("sinchctl") is None:
            continue
        theirs = shown("reference")
        rows.append((
            figure.label, shown("sinchctl"), theirs, figure.reference if theirs != "–" else "",
            "–" if figure.ratio is None else f"{figure.ratio:.2f}",
            "" if figure.aim is None else f"≤ {figure.aim:g}",
            {None: "", True: "met", False: "NOT MET"}[figure.is_met]))
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [cell.rjust(width) if column in (1, 2, 4) else cell.ljust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
