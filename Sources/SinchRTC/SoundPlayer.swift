import Audio
import MediaSession

extension ClientCore {
    /// Plays a WAV on the playback device. The file is opened here, so that what is wrong with it is thrown.
    nonisolated func startSound(path: String, looping: Bool) throws(SinchError) {
        let player: LocalPlayback
        do throws(AudioError) {
            var options = AudioDeviceOptions()
            options.loops = looping
            let source = try makeSource(.file(path), options: options)
            let sink = try makeSink(configuration.playback)
            do throws(AudioError) {
                try source.start()
                try sink.start()
            } catch {
                source.stop()
                sink.stop()
                throw error
            }
            player = LocalPlayback(source: source, sink: sink)
        } catch {
            throw SinchError(.audioDevice, error.message, hint: error.hint)
        }
        perform { core in
            guard !core.isTerminating else {
                core.engine.remove(player)
                return
            }
            core.stopSound()
            core.sound = player
            core.engine.add(player)
        }
    }

    func stopSound() {
        guard let player = sound else { return }
        sound = nil
        engine.remove(player)
    }
}
