# By hand: after `--` the line is that of another command, which has its own completion.
functions[_confine_options]=$functions[_confine]
_confine() {
    local separator=${words[(i)--]}
    if (( separator < CURRENT )); then
        shift $separator words
        (( CURRENT -= separator ))
        _normal
    else
        _confine_options "$@"
    fi
}
