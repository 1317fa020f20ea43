/// Rows of text in aligned columns, for people.
struct TextTable: Sendable {
    /// How a column is aligned.
    enum Alignment: Sendable {
        case left
        case right
    }

    private var headings: [String]
    private var alignments: [Alignment]
    private var rows: [[String]] = []

    /// Starts a table; numbers go to the right.
    init(_ headings: [String], alignments: [Alignment] = []) {
        self.headings = headings
        self.alignments = alignments
    }

    /// Adds a row; cells that are missing are empty, and an empty cell is shown as a dash.
    mutating func add(_ cells: [String]) {
        rows.append(headings.indices.map { $0 < cells.count && !cells[$0].isEmpty ? Self.clean(cells[$0]) : "-" })
    }

    /// The table in lines, headings first; nothing when there are no rows.
    func text(for terminal: Terminal) -> String {
        guard !rows.isEmpty else { return "" }
        let widths = headings.indices.map { column in
            ([headings] + rows).map { $0[column].count }.max() ?? 0
        }
        let lines = ([headings] + rows).enumerated().map { index, row in
            let cells = row.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - row[column].count)
                if column < alignments.count, alignments[column] == .right { return padding + row[column] }
                return column == row.count - 1 ? row[column] : row[column] + padding
            }
            let line = cells.joined(separator: "  ")
            return index == 0 ? terminal.styled(line, .strong) : line
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Names come from the network: what would move the cursor is shown as a question mark.
    private static func clean(_ text: String) -> String {
        String(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : Character($0) })
    }
}
