import CFuzzer
import FuzzTargets
@preconcurrency import Glibc

/// Hands the target that the variable FUZZ_TARGET names over to libFuzzer, whose arguments these are; without one it
/// lists the targets. (A variable, because libFuzzer starts itself anew with arguments of its own.)
@main
enum Driver {
    private static let name = getenv("FUZZ_TARGET").map { String(cString: $0) }
    private static let target = FuzzTarget.all.first { $0.name == name }

    static func main() {
        guard target != nil else {
            for target in FuzzTarget.all { print(target.name) }
            exit(name == nil ? 0 : 64)
        }
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        let status = LLVMFuzzerRunDriver(&count, &arguments) { data, size in
            Driver.run(Array(UnsafeBufferPointer(start: data, count: size)))
            return 0
        }
        exit(status)
    }

    private static func run(_ bytes: [UInt8]) {
        do {
            try target?.run(bytes)
        } catch {
            fputs("\(error)\n", stderr)
            abort()
        }
    }
}
