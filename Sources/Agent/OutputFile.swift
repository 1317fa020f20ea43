import Audio
import Glibc

/// Output files, looked at before they are needed.
enum OutputFile {
    /// Checks that a file can be created or written at `path`, without touching an existing one. A pipe that nobody
    /// reads is refused instead of waited for.
    static func checkWritable(_ path: String) throws(AudioError) {
        let existed = access(path, F_OK) == 0
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o644)
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(errno))
            throw AudioError(
                .cannotCreate, "cannot write the recording \(path): \(reason)",
                hint: "choose a file in a directory that you may write to")
        }
        close(descriptor)
        if !existed { unlink(path) }
    }
}
