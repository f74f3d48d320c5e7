# By hand: a subcommand is the first word or none, after `--` the line is that of another command, which has its own
# completion, and a profile may be the user's own.
function __fish_confine_after_separator
    contains -- -- (commandline -opc)
end

function __fish_confine_needs_command
    __fish_confine_after_separator
    and return 1
    set -l words (commandline -opc)
    contains -- "$words[2]" @SUBCOMMANDS@
    or return 0
    echo $words[2]
    return 1
end

function __fish_confine_command_line
    set -l words (commandline -opc)
    set -l first (math (contains -i -- -- $words) + 1)
    complete -C (string join ' ' -- (string escape -- $words[$first..]) (commandline -ct))
end

complete -c confine -n __fish_confine_after_separator -x -a "(__fish_confine_command_line)"

function __fish_confine_own_profiles
    set -q XDG_CONFIG_HOME; or set -l XDG_CONFIG_HOME ~/.config
    for file in $XDG_CONFIG_HOME/confine/profiles/*.toml /etc/confine/profiles/*.toml
        path basename $file | path change-extension ''
    end
end

complete -c confine -n "not __fish_confine_after_separator" -l profile -x -a "(__fish_confine_own_profiles)"
