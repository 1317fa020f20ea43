# fish completion for sinchctl; made by "make docs" from the command table.

complete -c sinchctl -f
complete -c sinchctl -l json -d 'print one JSON document on standard output, also on failure'
complete -c sinchctl -l profile -x -d 'the profile of the configuration file to use'
complete -c sinchctl -l config -r -F -d 'the configuration file to read'
complete -c sinchctl -l environment-host -x -d 'the environment to register with; without one, the embedded environment'
complete -c sinchctl -l timeout -x -d 'give up after this time and exit with 124'
complete -c sinchctl -s q -l quiet -d 'print results and errors only, no progress'
complete -c sinchctl -s v -l verbose -d 'log more to standard error; -vv also what is on the wire'
complete -c sinchctl -l no-color -d 'print without colour; so do NO_COLOR=1, TERM=dumb and a pipe'
complete -c sinchctl -s h -l help -d 'print what a command does and exit'
complete -c sinchctl -s V -l version -d 'print the version and exit'
complete -c sinchctl -n '__fish_use_subcommand' -a start -d 'start a client that stays registered in the background'
complete -c sinchctl -n '__fish_use_subcommand' -a register -d 'check that a user can register, then un-register'
complete -c sinchctl -n '__fish_use_subcommand' -a terminate -d 'end a client: hang up, un-register, exit'
complete -c sinchctl -n '__fish_use_subcommand' -a stop -d 'end a client: hang up, un-register, exit'
complete -c sinchctl -n '__fish_use_subcommand' -a call -d 'call a user and stay until the call ends'
complete -c sinchctl -n '__fish_use_subcommand' -a answer -d 'answer an incoming call'
complete -c sinchctl -n '__fish_use_subcommand' -a hangup -d 'end a call, or decline an incoming one'
complete -c sinchctl -n '__fish_use_subcommand' -a hold -d 'put a call on hold'
complete -c sinchctl -n '__fish_use_subcommand' -a resume -d 'go on with a call that is on hold'
complete -c sinchctl -n '__fish_use_subcommand' -a mute -d 'send silence instead of sound'
complete -c sinchctl -n '__fish_use_subcommand' -a unmute -d 'send sound again'
complete -c sinchctl -n '__fish_use_subcommand' -a dtmf -d 'press keys in a call'
complete -c sinchctl -n '__fish_use_subcommand' -a transfer -d 'hand a call over to somebody else'
complete -c sinchctl -n '__fish_use_subcommand' -a status -d 'show the clients that run and what they do'
complete -c sinchctl -n '__fish_use_subcommand' -a calls -d 'list calls'
complete -c sinchctl -n '__fish_use_subcommand' -a events -d 'show what happened, or follow what happens'
complete -c sinchctl -n '__fish_use_subcommand' -a wait -d 'wait until something is so'
complete -c sinchctl -n '__fish_use_subcommand' -a devices -d 'list the audio devices that can be named'
complete -c sinchctl -n '__fish_use_subcommand' -a verify -d 'compare a recording with what should be heard in it'
complete -c sinchctl -n '__fish_use_subcommand' -a jwt -d 'sign, read and check registration tokens'
complete -c sinchctl -n '__fish_use_subcommand' -a config -d 'make, show and check the configuration file'
complete -c sinchctl -n '__fish_use_subcommand' -a environment -d 'run the embedded environment'
complete -c sinchctl -n '__fish_use_subcommand' -a completion -d 'print the completion script for a shell'
complete -c sinchctl -n '__fish_use_subcommand' -a help -d 'explain a command, or a topic: exit-codes, settings'
complete -c sinchctl -n '__fish_use_subcommand' -a version -d 'print the version'

complete -c sinchctl -n '__fish_seen_subcommand_from start' -s u -l user -x -d 'the user to register'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l display-name -x -d 'the name that called users see'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l auto-answer -d 'answer every incoming call at once'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l accept-transfers -d 'let the other side of a call transfer it: this client then calls whom it is told to call'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l foreground -d 'stay in the foreground until interrupted, for systemd and containers'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l capture -x -a 'alsa:default echo file: null silence tone:440' -d 'where the sound that is sent comes from; else the sound card, without one silence'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l playback -x -a 'alsa:default echo file: null silence tone:440' -d 'where the sound that is heard goes to; else the sound card, without one null'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -s p -l play -r -F -d 'send this WAV file once the call is established, then silence (short for --capture file:FILE)'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -s r -l record -r -F -d 'record the call as a stereo WAV file: left what is sent, right what is heard'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l max-calls -x -d 'answer further calls with busy'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l timeout -x -d 'give up when not registered after this time'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l token-file -r -F -d 'read the token from this file; - is standard input'
complete -c sinchctl -n '__fish_seen_subcommand_from start' -l token-fd -x -d 'read the token from this file descriptor'

complete -c sinchctl -n '__fish_seen_subcommand_from register' -s u -l user -x -d 'the user to register'
complete -c sinchctl -n '__fish_seen_subcommand_from register' -l timeout -x -d 'give up when not registered after this time'
complete -c sinchctl -n '__fish_seen_subcommand_from register' -l token-file -r -F -d 'read the token from this file; - is standard input'
complete -c sinchctl -n '__fish_seen_subcommand_from register' -l token-fd -x -d 'read the token from this file descriptor'

complete -c sinchctl -n '__fish_seen_subcommand_from terminate stop' -s u -l user -l as -x -d 'the user whose client ends; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from terminate stop' -l all -d 'end every client'
complete -c sinchctl -n '__fish_seen_subcommand_from terminate stop' -l timeout -x -d 'end a client by force that takes longer'

complete -c sinchctl -n '__fish_seen_subcommand_from call' -l as -x -d 'place the call with this user\'s running client; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -s u -l user -x -d 'place the call with a client for this one call'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l capture -x -a 'alsa:default echo file: null silence tone:440' -d 'where the sound that is sent comes from; else the sound card, without one silence'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l playback -x -a 'alsa:default echo file: null silence tone:440' -d 'where the sound that is heard goes to; else the sound card, without one null'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -s p -l play -r -F -d 'send this WAV file once the call is established, then silence (short for --capture file:FILE)'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -s r -l record -r -F -d 'record the call as a stereo WAV file: left what is sent, right what is heard'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -s d -l duration -x -d 'hang up this long after the call was established'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l hangup-after-play -d 'hang up when the file of --play has been sent'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l ring-timeout -x -d 'give up when nobody has answered after this time and exit with 12'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l timeout -x -d 'end the call when it is not over after this time and exit with 124'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l detach -d 'return when the call is established; it goes on in the client\'s background'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l header -x -d 'a header \'x-name: value\' that the called client can read'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l token-file -r -F -d 'read the token from this file; - is standard input'
complete -c sinchctl -n '__fish_seen_subcommand_from call' -l token-fd -x -d 'read the token from this file descriptor'

complete -c sinchctl -n '__fish_seen_subcommand_from answer' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from answer' -l capture -x -a 'alsa:default echo file: null silence tone:440' -d 'where the sound that is sent comes from; else the sound card, without one silence'
complete -c sinchctl -n '__fish_seen_subcommand_from answer' -l playback -x -a 'alsa:default echo file: null silence tone:440' -d 'where the sound that is heard goes to; else the sound card, without one null'
complete -c sinchctl -n '__fish_seen_subcommand_from answer' -s p -l play -r -F -d 'send this WAV file once the call is established, then silence (short for --capture file:FILE)'
complete -c sinchctl -n '__fish_seen_subcommand_from answer' -s r -l record -r -F -d 'record the call as a stereo WAV file: left what is sent, right what is heard'
complete -c sinchctl -n '__fish_seen_subcommand_from answer' -l header -x -d 'a header \'x-name: value\' that the caller can read'

complete -c sinchctl -n '__fish_seen_subcommand_from hangup' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from hangup' -l all -d 'end every call of the client'
complete -c sinchctl -n '__fish_seen_subcommand_from hangup' -l busy -d 'refuse an incoming call as busy instead of declining it'

complete -c sinchctl -n '__fish_seen_subcommand_from hold' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from hold' -l timeout -x -d 'give up waiting after this time and exit with 124'

complete -c sinchctl -n '__fish_seen_subcommand_from resume' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from resume' -l timeout -x -d 'give up waiting after this time and exit with 124'

complete -c sinchctl -n '__fish_seen_subcommand_from mute' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'

complete -c sinchctl -n '__fish_seen_subcommand_from unmute' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'

complete -c sinchctl -n '__fish_seen_subcommand_from dtmf' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from dtmf' -l timeout -x -d 'give up waiting after this time and exit with 124'

complete -c sinchctl -n '__fish_seen_subcommand_from transfer' -l to -x -d 'whom the other side is to call'
complete -c sinchctl -n '__fish_seen_subcommand_from transfer' -l to-call -x -d 'the call in which the other side takes this client\'s place'
complete -c sinchctl -n '__fish_seen_subcommand_from transfer' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from transfer' -l timeout -x -d 'give up waiting after this time and exit with 124'

complete -c sinchctl -n '__fish_seen_subcommand_from status' -s u -l user -l as -x -d 'show only this user\'s client'

complete -c sinchctl -n '__fish_seen_subcommand_from calls' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from calls' -l active -d 'only calls that have not ended'
complete -c sinchctl -n '__fish_seen_subcommand_from calls' -l limit -x -d 'at most so many'

complete -c sinchctl -n '__fish_seen_subcommand_from events' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from events' -s f -l follow -d 'go on with the events to come'
complete -c sinchctl -n '__fish_seen_subcommand_from events' -l jsonl -d 'one JSON document a line'
complete -c sinchctl -n '__fish_seen_subcommand_from events' -l since -x -d 'only events of this long ago and newer'

complete -c sinchctl -n '__fish_seen_subcommand_from wait' -l as -l user -x -d 'the user whose client is meant; not needed when only one is running'
complete -c sinchctl -n '__fish_seen_subcommand_from wait' -l for -x -a 'registered incoming established ended' -d 'what to wait for'
complete -c sinchctl -n '__fish_seen_subcommand_from wait' -l timeout -x -d 'give up after this time and exit with 124'


complete -c sinchctl -n '__fish_seen_subcommand_from verify' -l channel -x -a 'left right' -d 'the channel of a stereo recording to take'
complete -c sinchctl -n '__fish_seen_subcommand_from verify' -l minimum-match -x -d 'exit with 18 when the match is worse'
complete -c sinchctl -n '__fish_seen_subcommand_from verify' -l minimum-length -x -d 'exit with 18 when less of the reference\'s sound could be compared'
complete -c sinchctl -n '__fish_seen_subcommand_from verify' -F
complete -c sinchctl -n '__fish_seen_subcommand_from verify' -F

complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and not __fish_seen_subcommand_from sign inspect verify' -a sign -d 'sign a token with the secret of the configuration file'
complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and not __fish_seen_subcommand_from sign inspect verify' -a inspect -d 'show what a token says, without checking its signature'
complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and not __fish_seen_subcommand_from sign inspect verify' -a verify -d 'check a token\'s signature and times with the secret of the configuration file'

complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and __fish_seen_subcommand_from sign' -s u -l user -x -d 'the user whom the token lets register'
complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and __fish_seen_subcommand_from sign' -l ttl -x -d 'how long the token is valid'
complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and __fish_seen_subcommand_from sign' -l instance-ttl -x -d 'how long a registration made with it may last, at least 48h; else for ever'
complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and __fish_seen_subcommand_from sign' -l nonce -x -d 'a text that no other token has; else a random one'

complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and __fish_seen_subcommand_from inspect' -l token-file -r -F -d 'read the token from this file; - is standard input'
complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and __fish_seen_subcommand_from inspect' -l token-fd -x -d 'read the token from this file descriptor'

complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and __fish_seen_subcommand_from verify' -l token-file -r -F -d 'read the token from this file; - is standard input'
complete -c sinchctl -n '__fish_seen_subcommand_from jwt; and __fish_seen_subcommand_from verify' -l token-fd -x -d 'read the token from this file descriptor'

complete -c sinchctl -n '__fish_seen_subcommand_from config; and not __fish_seen_subcommand_from init show check' -a init -d 'write a configuration file to start from'
complete -c sinchctl -n '__fish_seen_subcommand_from config; and not __fish_seen_subcommand_from init show check' -a show -d 'show the settings in force and where each comes from'
complete -c sinchctl -n '__fish_seen_subcommand_from config; and not __fish_seen_subcommand_from init show check' -a check -d 'check the configuration file'




complete -c sinchctl -n '__fish_seen_subcommand_from environment; and not __fish_seen_subcommand_from run start status stop' -a run -d 'run it in the foreground until interrupted'
complete -c sinchctl -n '__fish_seen_subcommand_from environment; and not __fish_seen_subcommand_from run start status stop' -a start -d 'start it in the background'
complete -c sinchctl -n '__fish_seen_subcommand_from environment; and not __fish_seen_subcommand_from run start status stop' -a status -d 'show whether it runs, and where'
complete -c sinchctl -n '__fish_seen_subcommand_from environment; and not __fish_seen_subcommand_from run start status stop' -a stop -d 'end it'

complete -c sinchctl -n '__fish_seen_subcommand_from environment; and __fish_seen_subcommand_from run' -l bind -x -d 'the numeric address to listen on; other than loopback, it can be reached from the network'
complete -c sinchctl -n '__fish_seen_subcommand_from environment; and __fish_seen_subcommand_from run' -l port -x -d 'the port to listen on; 0 takes a free one'

complete -c sinchctl -n '__fish_seen_subcommand_from environment; and __fish_seen_subcommand_from start' -l bind -x -d 'the numeric address to listen on; other than loopback, it can be reached from the network'
complete -c sinchctl -n '__fish_seen_subcommand_from environment; and __fish_seen_subcommand_from start' -l port -x -d 'the port to listen on; 0 takes a free one'



complete -c sinchctl -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'

complete -c sinchctl -n '__fish_seen_subcommand_from help' -a 'start register terminate call answer hangup hold resume mute unmute dtmf transfer status calls events wait devices verify jwt config environment completion help version exit-codes settings'

