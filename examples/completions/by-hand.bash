# By hand: after `--` the line is that of another command, which has its own completion; a profile may be the user's own.
_confine_line() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset $((i + 1))
        elif declare -F _command_offset >/dev/null; then
            _command_offset $((i + 1))
        elif ((COMP_CWORD == i + 1)); then
            mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
        fi
        return
    done
    _confine "$@"
    [[ $3 == --profile ]] && _confine_own_profiles "$2"
}

_confine_own_profiles() {
    local file name
    for file in "${XDG_CONFIG_HOME:-$HOME/.config}"/confine/profiles/*.toml /etc/confine/profiles/*.toml; do
        name=${file##*/} name=${name%.toml}
        [[ -e $file && $name == "$1"* ]] && COMPREPLY+=("$name")
    done
}

complete -F _confine_line -o bashdefault -o default confine
