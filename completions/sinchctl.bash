# bash completion for sinchctl; made by "make docs" from the command table.

# Both use the variable "current" of their caller.
_sinchctl_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}
_sinchctl_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

_sinchctl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local path='' word index
    COMPREPLY=()
    # In --name=value bash makes three words of it.
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    # The words so far that are commands, not options or their values.
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        case "$path/$word" in
            "/start") path=/start ;;
            "/register") path=/register ;;
            "/terminate" | "/stop") path=/terminate ;;
            "/call") path=/call ;;
            "/answer") path=/answer ;;
            "/hangup") path=/hangup ;;
            "/hold") path=/hold ;;
            "/resume") path=/resume ;;
            "/mute") path=/mute ;;
            "/unmute") path=/unmute ;;
            "/dtmf") path=/dtmf ;;
            "/transfer") path=/transfer ;;
            "/status") path=/status ;;
            "/calls") path=/calls ;;
            "/events") path=/events ;;
            "/wait") path=/wait ;;
            "/devices") path=/devices ;;
            "/verify") path=/verify ;;
            "/jwt") path=/jwt ;;
            "/jwt/sign") path=/jwt/sign ;;
            "/jwt/inspect") path=/jwt/inspect ;;
            "/jwt/verify") path=/jwt/verify ;;
            "/config") path=/config ;;
            "/config/init") path=/config/init ;;
            "/config/show") path=/config/show ;;
            "/config/check") path=/config/check ;;
            "/environment") path=/environment ;;
            "/environment/run") path=/environment/run ;;
            "/environment/start") path=/environment/start ;;
            "/environment/status") path=/environment/status ;;
            "/environment/stop") path=/environment/stop ;;
            "/completion") path=/completion ;;
            "/help") path=/help ;;
            "/version") path=/version ;;
        esac
    done
    case "$path $previous" in
        "/start --user" | "/start -u") _sinchctl_words "" && return ;;
        "/start --display-name") _sinchctl_words "" && return ;;
        "/start --capture") _sinchctl_words "alsa:default echo file: null silence tone:440" && return ;;
        "/start --playback") _sinchctl_words "alsa:default echo file: null silence tone:440" && return ;;
        "/start --play" | "/start -p") _sinchctl_files && return ;;
        "/start --record" | "/start -r") _sinchctl_files && return ;;
        "/start --max-calls") _sinchctl_words "" && return ;;
        "/start --timeout") _sinchctl_words "" && return ;;
        "/start --token-file") _sinchctl_files && return ;;
        "/start --token-fd") _sinchctl_words "" && return ;;
        "/register --user" | "/register -u") _sinchctl_words "" && return ;;
        "/register --timeout") _sinchctl_words "" && return ;;
        "/register --token-file") _sinchctl_files && return ;;
        "/register --token-fd") _sinchctl_words "" && return ;;
        "/terminate --user" | "/terminate --as" | "/terminate -u") _sinchctl_words "" && return ;;
        "/terminate --timeout") _sinchctl_words "" && return ;;
        "/call --as") _sinchctl_words "" && return ;;
        "/call --user" | "/call -u") _sinchctl_words "" && return ;;
        "/call --capture") _sinchctl_words "alsa:default echo file: null silence tone:440" && return ;;
        "/call --playback") _sinchctl_words "alsa:default echo file: null silence tone:440" && return ;;
        "/call --play" | "/call -p") _sinchctl_files && return ;;
        "/call --record" | "/call -r") _sinchctl_files && return ;;
        "/call --duration" | "/call -d") _sinchctl_words "" && return ;;
        "/call --ring-timeout") _sinchctl_words "" && return ;;
        "/call --timeout") _sinchctl_words "" && return ;;
        "/call --header") _sinchctl_words "" && return ;;
        "/call --token-file") _sinchctl_files && return ;;
        "/call --token-fd") _sinchctl_words "" && return ;;
        "/answer --as" | "/answer --user") _sinchctl_words "" && return ;;
        "/answer --capture") _sinchctl_words "alsa:default echo file: null silence tone:440" && return ;;
        "/answer --playback") _sinchctl_words "alsa:default echo file: null silence tone:440" && return ;;
        "/answer --play" | "/answer -p") _sinchctl_files && return ;;
        "/answer --record" | "/answer -r") _sinchctl_files && return ;;
        "/answer --header") _sinchctl_words "" && return ;;
        "/hangup --as" | "/hangup --user") _sinchctl_words "" && return ;;
        "/hold --as" | "/hold --user") _sinchctl_words "" && return ;;
        "/hold --timeout") _sinchctl_words "" && return ;;
        "/resume --as" | "/resume --user") _sinchctl_words "" && return ;;
        "/resume --timeout") _sinchctl_words "" && return ;;
        "/mute --as" | "/mute --user") _sinchctl_words "" && return ;;
        "/unmute --as" | "/unmute --user") _sinchctl_words "" && return ;;
        "/dtmf --as" | "/dtmf --user") _sinchctl_words "" && return ;;
        "/dtmf --timeout") _sinchctl_words "" && return ;;
        "/transfer --to") _sinchctl_words "" && return ;;
        "/transfer --to-call") _sinchctl_words "" && return ;;
        "/transfer --as" | "/transfer --user") _sinchctl_words "" && return ;;
        "/transfer --timeout") _sinchctl_words "" && return ;;
        "/status --user" | "/status --as" | "/status -u") _sinchctl_words "" && return ;;
        "/calls --as" | "/calls --user") _sinchctl_words "" && return ;;
        "/calls --limit") _sinchctl_words "" && return ;;
        "/events --as" | "/events --user") _sinchctl_words "" && return ;;
        "/events --since") _sinchctl_words "" && return ;;
        "/wait --as" | "/wait --user") _sinchctl_words "" && return ;;
        "/wait --for") _sinchctl_words "registered incoming established ended" && return ;;
        "/wait --timeout") _sinchctl_words "" && return ;;
        "/verify --channel") _sinchctl_words "left right" && return ;;
        "/verify --minimum-match") _sinchctl_words "" && return ;;
        "/verify --minimum-length") _sinchctl_words "" && return ;;
        "/jwt/sign --user" | "/jwt/sign -u") _sinchctl_words "" && return ;;
        "/jwt/sign --ttl") _sinchctl_words "" && return ;;
        "/jwt/sign --instance-ttl") _sinchctl_words "" && return ;;
        "/jwt/sign --nonce") _sinchctl_words "" && return ;;
        "/jwt/inspect --token-file") _sinchctl_files && return ;;
        "/jwt/inspect --token-fd") _sinchctl_words "" && return ;;
        "/jwt/verify --token-file") _sinchctl_files && return ;;
        "/jwt/verify --token-fd") _sinchctl_words "" && return ;;
        "/environment/run --bind") _sinchctl_words "" && return ;;
        "/environment/run --port") _sinchctl_words "" && return ;;
        "/environment/start --bind") _sinchctl_words "" && return ;;
        "/environment/start --port") _sinchctl_words "" && return ;;
    esac
    case $previous in
        "--profile") _sinchctl_words "" && return ;;
        "--config") _sinchctl_files && return ;;
        "--environment-host") _sinchctl_words "" && return ;;
        "--timeout") _sinchctl_words "" && return ;;
    esac
    local words='' options=''
    case $path in
        "") words="start register terminate stop call answer hangup hold resume mute unmute dtmf transfer status calls events wait devices verify jwt config environment completion help version" options="" ;;
        /start) words="" options="--user --display-name --auto-answer --accept-transfers --foreground --capture --playback --play --record --max-calls --timeout --token-file --token-fd" ;;
        /register) words="" options="--user --timeout --token-file --token-fd" ;;
        /terminate) words="" options="--user --as --all --timeout" ;;
        /call) words="" options="--as --user --capture --playback --play --record --duration --hangup-after-play --ring-timeout --timeout --detach --header --token-file --token-fd" ;;
        /answer) words="" options="--as --user --capture --playback --play --record --header" ;;
        /hangup) words="" options="--as --user --all --busy" ;;
        /hold) words="" options="--as --user --timeout" ;;
        /resume) words="" options="--as --user --timeout" ;;
        /mute) words="" options="--as --user" ;;
        /unmute) words="" options="--as --user" ;;
        /dtmf) words="" options="--as --user --timeout" ;;
        /transfer) words="" options="--to --to-call --as --user --timeout" ;;
        /status) words="" options="--user --as" ;;
        /calls) words="" options="--as --user --active --limit" ;;
        /events) words="" options="--as --user --follow --jsonl --since" ;;
        /wait) words="" options="--as --user --for --timeout" ;;
        /verify) words="" options="--channel --minimum-match --minimum-length" ;;
        /jwt) words="sign inspect verify" options="" ;;
        /jwt/sign) words="" options="--user --ttl --instance-ttl --nonce" ;;
        /jwt/inspect) words="" options="--token-file --token-fd" ;;
        /jwt/verify) words="" options="--token-file --token-fd" ;;
        /config) words="init show check" options="" ;;
        /environment) words="run start status stop" options="" ;;
        /environment/run) words="" options="--bind --port" ;;
        /environment/start) words="" options="--bind --port" ;;
        /completion) words="bash zsh fish" options="" ;;
        /help) words="start register terminate call answer hangup hold resume mute unmute dtmf transfer status calls events wait devices verify jwt config environment completion help version exit-codes settings" options="" ;;
    esac
    if [[ $current == -* ]]; then
        _sinchctl_words "$options --json --profile --config --environment-host --timeout --quiet --verbose --no-color --help --version"
    elif [[ -n $words ]]; then
        _sinchctl_words "$words"
    else
        case $path in
            /verify) _sinchctl_files ;;
        esac
    fi
    return 0
}

complete -F _sinchctl sinchctl
