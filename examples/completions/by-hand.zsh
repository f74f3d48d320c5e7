# By hand: after `--` the line is that of another command, which has its own completion; a profile may be the user's own.
functions[_confine_options]=$functions[_confine]
_confine() {
    local separator=${words[(i)--]}
    if (( separator < CURRENT )); then
        shift $separator words
        (( CURRENT -= separator ))
        _normal
    else
        [[ $words[CURRENT-1] == --profile ]] &&
            compadd -- ${XDG_CONFIG_HOME:-$HOME/.config}/confine/profiles/*.toml(N:t:r) /etc/confine/profiles/*.toml(N:t:r)
        _confine_options "$@"
    fi
}
