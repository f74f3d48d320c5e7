# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_confine_global_optspecs
    string join \n w/workspace= no-workspace C/chdir= read-only hardlinks= git= state= ro= rw= hide= seal= no-toolchains net= loopback= listen= connect= env= env-file= clear-env fd= user= max-procs= max-memory= max-tmp= max-disk= max-output= on-output-limit= max-cpu= max-file-size= max-open-files= timeout= grace= require= waive= strict allow= namespaces= profile= policy= status-fd= result= audit= kernel-log v/verbose h/help V/version
end

function __fish_confine_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_confine_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_confine_using_subcommand
    set -l cmd (__fish_confine_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c confine -n "__fish_confine_needs_command" -s w -l workspace -d 'A directory that COMMAND may change; never guessed' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_needs_command" -s C -l chdir -d 'Start COMMAND in this directory' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_needs_command" -l hardlinks -d 'What to do about files that have a name outside the workspace too' -r -f -a "reject\t''
protect\t''"
complete -c confine -n "__fish_confine_needs_command" -l git -d 'How to treat .git and other files that run later by themselves' -r -f -a "guard\t''
read-only\t''
free\t''"
complete -c confine -n "__fish_confine_needs_command" -l state -d 'Keep HOME, /tmp and changes of caches here from one run to the next' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_needs_command" -l ro -d 'Let COMMAND read (and execute) this file or directory' -r -F
complete -c confine -n "__fish_confine_needs_command" -l rw -d 'Let COMMAND change this file or directory' -r -F
complete -c confine -n "__fish_confine_needs_command" -l hide -d 'Hide this file or directory from COMMAND' -r -F
complete -c confine -n "__fish_confine_needs_command" -l seal -d 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks' -r -F
complete -c confine -n "__fish_confine_needs_command" -l net -d 'Which network COMMAND has' -r -f -a "none\t''
host\t''"
complete -c confine -n "__fish_confine_needs_command" -l loopback -d 'Which loopback COMMAND has while --net is none' -r -f -a "private\t''
off\t''
host\t''"
complete -c confine -n "__fish_confine_needs_command" -l listen -d 'Let COMMAND accept TCP connections from outside at this port' -r -f
complete -c confine -n "__fish_confine_needs_command" -l connect -d 'Let COMMAND connect to this TCP port of any host' -r -f
complete -c confine -n "__fish_confine_needs_command" -l env -d 'Pass one variable on, or set it' -r -f
complete -c confine -n "__fish_confine_needs_command" -l env-file -d 'Set variables from a file that only you can read, or a pipe' -r -F
complete -c confine -n "__fish_confine_needs_command" -l fd -d 'Pass this descriptor on besides 0, 1 and 2' -r -f
complete -c confine -n "__fish_confine_needs_command" -l user -d 'Run COMMAND as this user, without further groups (for root)' -r -f
complete -c confine -n "__fish_confine_needs_command" -l max-procs -d 'Most processes and threads at one time, of the whole tree' -r -f
complete -c confine -n "__fish_confine_needs_command" -l max-memory -d 'Most memory of the whole tree, page cache and private /tmp included' -r -f
complete -c confine -n "__fish_confine_needs_command" -l max-tmp -d 'Most that private /tmp and HOME hold together, for the whole tree' -r -f
complete -c confine -n "__fish_confine_needs_command" -l max-disk -d 'Most that the file systems of writable roots may lose meanwhile' -r -f
complete -c confine -n "__fish_confine_needs_command" -l max-output -d 'Most that the whole tree may write to each of stdout and stderr' -r -f
complete -c confine -n "__fish_confine_needs_command" -l on-output-limit -d 'What happens at --max-output' -r -f -a "truncate\t''
kill\t''"
complete -c confine -n "__fish_confine_needs_command" -l max-cpu -d 'Most processor time of the whole tree' -r -f
complete -c confine -n "__fish_confine_needs_command" -l max-file-size -d 'Largest file that each process may write' -r -f
complete -c confine -n "__fish_confine_needs_command" -l max-open-files -d 'Most descriptors that each process may hold' -r -f
complete -c confine -n "__fish_confine_needs_command" -l timeout -d 'End the whole tree after this time; the exit status is then 124' -r -f
complete -c confine -n "__fish_confine_needs_command" -l grace -d 'How long the tree may take to end after TERM' -r -f
complete -c confine -n "__fish_confine_needs_command" -l require -d 'Refuse to start unless this promise can be kept' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_needs_command" -l waive -d 'Start even where this host cannot keep this promise' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_needs_command" -l allow -d 'Allow something that is refused by default' -r -f -a "broad-workspace\t''
userns\t''
unix-datagram\t''"
complete -c confine -n "__fish_confine_needs_command" -l namespaces -d 'Whether to build the boundary with namespaces' -r -f -a "auto\t''
off\t''"
complete -c confine -n "__fish_confine_needs_command" -l profile -d 'Take what is not said here from this profile' -r -f -a "workspace-write\t''
read-only\t''
build\t''
dev-server\t''
kernel\t''
mcp\t''
strict\t''"
complete -c confine -n "__fish_confine_needs_command" -l policy -d 'Take what is not said here from this file' -r -F
complete -c confine -n "__fish_confine_needs_command" -l status-fd -d 'Write JSON lines about start and end to this descriptor' -r -f
complete -c confine -n "__fish_confine_needs_command" -l result -d 'Write one JSON object with outcome, output and resource use at the end' -r -f -a "json\t''"
complete -c confine -n "__fish_confine_needs_command" -l audit -d 'Append one JSON line for every decision to this file' -r -F
complete -c confine -n "__fish_confine_needs_command" -l no-workspace -d 'Give COMMAND no workspace: it starts in its private HOME'
complete -c confine -n "__fish_confine_needs_command" -l read-only -d 'Show the workspaces read-only'
complete -c confine -n "__fish_confine_needs_command" -l no-toolchains -d 'Do not show the toolchains and caches that PATH leads to'
complete -c confine -n "__fish_confine_needs_command" -l clear-env -d 'Pass no variable on but the least that programs need'
complete -c confine -n "__fish_confine_needs_command" -l strict -d 'Require every promise'
complete -c confine -n "__fish_confine_needs_command" -l kernel-log -d 'Let Landlock write what it denies to the kernel\'s audit log'
complete -c confine -n "__fish_confine_needs_command" -s v -l verbose -d 'Say on standard error how the promises are kept'
complete -c confine -n "__fish_confine_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c confine -n "__fish_confine_needs_command" -s V -l version -d 'Print version'
complete -c confine -n "__fish_confine_needs_command" -f -a "check" -d 'Tell which promises this host can keep, and the fix for the rest'
complete -c confine -n "__fish_confine_needs_command" -f -a "explain" -d 'Show how a run would be confined, and run nothing'
complete -c confine -n "__fish_confine_needs_command" -f -a "scan" -d 'List files in DIR that have a name elsewhere too, and device nodes'
complete -c confine -n "__fish_confine_needs_command" -f -a "trace" -d 'Run COMMAND and list what the boundary denied it'
complete -c confine -n "__fish_confine_needs_command" -f -a "verify" -d 'Check the chain of an audit record'
complete -c confine -n "__fish_confine_needs_command" -f -a "why" -d 'Tell what is visible, writable, reachable or passed, and why'
complete -c confine -n "__fish_confine_using_subcommand check" -s w -l workspace -d 'A directory that COMMAND may change; never guessed' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand check" -s C -l chdir -d 'Start COMMAND in this directory' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand check" -l hardlinks -d 'What to do about files that have a name outside the workspace too' -r -f -a "reject\t''
protect\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l git -d 'How to treat .git and other files that run later by themselves' -r -f -a "guard\t''
read-only\t''
free\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l state -d 'Keep HOME, /tmp and changes of caches here from one run to the next' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand check" -l ro -d 'Let COMMAND read (and execute) this file or directory' -r -F
complete -c confine -n "__fish_confine_using_subcommand check" -l rw -d 'Let COMMAND change this file or directory' -r -F
complete -c confine -n "__fish_confine_using_subcommand check" -l hide -d 'Hide this file or directory from COMMAND' -r -F
complete -c confine -n "__fish_confine_using_subcommand check" -l seal -d 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks' -r -F
complete -c confine -n "__fish_confine_using_subcommand check" -l net -d 'Which network COMMAND has' -r -f -a "none\t''
host\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l loopback -d 'Which loopback COMMAND has while --net is none' -r -f -a "private\t''
off\t''
host\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l listen -d 'Let COMMAND accept TCP connections from outside at this port' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l connect -d 'Let COMMAND connect to this TCP port of any host' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l env -d 'Pass one variable on, or set it' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l env-file -d 'Set variables from a file that only you can read, or a pipe' -r -F
complete -c confine -n "__fish_confine_using_subcommand check" -l fd -d 'Pass this descriptor on besides 0, 1 and 2' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l user -d 'Run COMMAND as this user, without further groups (for root)' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l max-procs -d 'Most processes and threads at one time, of the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l max-memory -d 'Most memory of the whole tree, page cache and private /tmp included' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l max-tmp -d 'Most that private /tmp and HOME hold together, for the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l max-disk -d 'Most that the file systems of writable roots may lose meanwhile' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l max-output -d 'Most that the whole tree may write to each of stdout and stderr' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l on-output-limit -d 'What happens at --max-output' -r -f -a "truncate\t''
kill\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l max-cpu -d 'Most processor time of the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l max-file-size -d 'Largest file that each process may write' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l max-open-files -d 'Most descriptors that each process may hold' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l timeout -d 'End the whole tree after this time; the exit status is then 124' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l grace -d 'How long the tree may take to end after TERM' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l require -d 'Refuse to start unless this promise can be kept' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l waive -d 'Start even where this host cannot keep this promise' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l allow -d 'Allow something that is refused by default' -r -f -a "broad-workspace\t''
userns\t''
unix-datagram\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l namespaces -d 'Whether to build the boundary with namespaces' -r -f -a "auto\t''
off\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l profile -d 'Take what is not said here from this profile' -r -f -a "workspace-write\t''
read-only\t''
build\t''
dev-server\t''
kernel\t''
mcp\t''
strict\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l policy -d 'Take what is not said here from this file' -r -F
complete -c confine -n "__fish_confine_using_subcommand check" -l status-fd -d 'Write JSON lines about start and end to this descriptor' -r -f
complete -c confine -n "__fish_confine_using_subcommand check" -l result -d 'Write one JSON object with outcome, output and resource use at the end' -r -f -a "json\t''"
complete -c confine -n "__fish_confine_using_subcommand check" -l audit -d 'Append one JSON line for every decision to this file' -r -F
complete -c confine -n "__fish_confine_using_subcommand check" -l no-workspace -d 'Give COMMAND no workspace: it starts in its private HOME'
complete -c confine -n "__fish_confine_using_subcommand check" -l read-only -d 'Show the workspaces read-only'
complete -c confine -n "__fish_confine_using_subcommand check" -l no-toolchains -d 'Do not show the toolchains and caches that PATH leads to'
complete -c confine -n "__fish_confine_using_subcommand check" -l clear-env -d 'Pass no variable on but the least that programs need'
complete -c confine -n "__fish_confine_using_subcommand check" -l strict -d 'Require every promise'
complete -c confine -n "__fish_confine_using_subcommand check" -l kernel-log -d 'Let Landlock write what it denies to the kernel\'s audit log'
complete -c confine -n "__fish_confine_using_subcommand check" -s v -l verbose -d 'Say on standard error how the promises are kept'
complete -c confine -n "__fish_confine_using_subcommand check" -l prove -d 'Try to get out of the boundary that the given options make here'
complete -c confine -n "__fish_confine_using_subcommand check" -l posture -d 'Look for weak spots of the set-up instead'
complete -c confine -n "__fish_confine_using_subcommand check" -l json -d 'Print one JSON object instead of text'
complete -c confine -n "__fish_confine_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c confine -n "__fish_confine_using_subcommand explain" -s w -l workspace -d 'A directory that COMMAND may change; never guessed' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand explain" -s C -l chdir -d 'Start COMMAND in this directory' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand explain" -l hardlinks -d 'What to do about files that have a name outside the workspace too' -r -f -a "reject\t''
protect\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l git -d 'How to treat .git and other files that run later by themselves' -r -f -a "guard\t''
read-only\t''
free\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l state -d 'Keep HOME, /tmp and changes of caches here from one run to the next' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand explain" -l ro -d 'Let COMMAND read (and execute) this file or directory' -r -F
complete -c confine -n "__fish_confine_using_subcommand explain" -l rw -d 'Let COMMAND change this file or directory' -r -F
complete -c confine -n "__fish_confine_using_subcommand explain" -l hide -d 'Hide this file or directory from COMMAND' -r -F
complete -c confine -n "__fish_confine_using_subcommand explain" -l seal -d 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks' -r -F
complete -c confine -n "__fish_confine_using_subcommand explain" -l net -d 'Which network COMMAND has' -r -f -a "none\t''
host\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l loopback -d 'Which loopback COMMAND has while --net is none' -r -f -a "private\t''
off\t''
host\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l listen -d 'Let COMMAND accept TCP connections from outside at this port' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l connect -d 'Let COMMAND connect to this TCP port of any host' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l env -d 'Pass one variable on, or set it' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l env-file -d 'Set variables from a file that only you can read, or a pipe' -r -F
complete -c confine -n "__fish_confine_using_subcommand explain" -l fd -d 'Pass this descriptor on besides 0, 1 and 2' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l user -d 'Run COMMAND as this user, without further groups (for root)' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l max-procs -d 'Most processes and threads at one time, of the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l max-memory -d 'Most memory of the whole tree, page cache and private /tmp included' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l max-tmp -d 'Most that private /tmp and HOME hold together, for the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l max-disk -d 'Most that the file systems of writable roots may lose meanwhile' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l max-output -d 'Most that the whole tree may write to each of stdout and stderr' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l on-output-limit -d 'What happens at --max-output' -r -f -a "truncate\t''
kill\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l max-cpu -d 'Most processor time of the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l max-file-size -d 'Largest file that each process may write' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l max-open-files -d 'Most descriptors that each process may hold' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l timeout -d 'End the whole tree after this time; the exit status is then 124' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l grace -d 'How long the tree may take to end after TERM' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l require -d 'Refuse to start unless this promise can be kept' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l waive -d 'Start even where this host cannot keep this promise' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l allow -d 'Allow something that is refused by default' -r -f -a "broad-workspace\t''
userns\t''
unix-datagram\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l namespaces -d 'Whether to build the boundary with namespaces' -r -f -a "auto\t''
off\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l profile -d 'Take what is not said here from this profile' -r -f -a "workspace-write\t''
read-only\t''
build\t''
dev-server\t''
kernel\t''
mcp\t''
strict\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l policy -d 'Take what is not said here from this file' -r -F
complete -c confine -n "__fish_confine_using_subcommand explain" -l status-fd -d 'Write JSON lines about start and end to this descriptor' -r -f
complete -c confine -n "__fish_confine_using_subcommand explain" -l result -d 'Write one JSON object with outcome, output and resource use at the end' -r -f -a "json\t''"
complete -c confine -n "__fish_confine_using_subcommand explain" -l audit -d 'Append one JSON line for every decision to this file' -r -F
complete -c confine -n "__fish_confine_using_subcommand explain" -l no-workspace -d 'Give COMMAND no workspace: it starts in its private HOME'
complete -c confine -n "__fish_confine_using_subcommand explain" -l read-only -d 'Show the workspaces read-only'
complete -c confine -n "__fish_confine_using_subcommand explain" -l no-toolchains -d 'Do not show the toolchains and caches that PATH leads to'
complete -c confine -n "__fish_confine_using_subcommand explain" -l clear-env -d 'Pass no variable on but the least that programs need'
complete -c confine -n "__fish_confine_using_subcommand explain" -l strict -d 'Require every promise'
complete -c confine -n "__fish_confine_using_subcommand explain" -l kernel-log -d 'Let Landlock write what it denies to the kernel\'s audit log'
complete -c confine -n "__fish_confine_using_subcommand explain" -s v -l verbose -d 'Say on standard error how the promises are kept'
complete -c confine -n "__fish_confine_using_subcommand explain" -l json -d 'Print one JSON object instead of text'
complete -c confine -n "__fish_confine_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c confine -n "__fish_confine_using_subcommand scan" -l separate -d 'Give every file that has a name elsewhere too an inode of its own'
complete -c confine -n "__fish_confine_using_subcommand scan" -l json -d 'Print one JSON object instead of text'
complete -c confine -n "__fish_confine_using_subcommand scan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c confine -n "__fish_confine_using_subcommand trace" -s w -l workspace -d 'A directory that COMMAND may change; never guessed' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand trace" -s C -l chdir -d 'Start COMMAND in this directory' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand trace" -l hardlinks -d 'What to do about files that have a name outside the workspace too' -r -f -a "reject\t''
protect\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l git -d 'How to treat .git and other files that run later by themselves' -r -f -a "guard\t''
read-only\t''
free\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l state -d 'Keep HOME, /tmp and changes of caches here from one run to the next' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand trace" -l ro -d 'Let COMMAND read (and execute) this file or directory' -r -F
complete -c confine -n "__fish_confine_using_subcommand trace" -l rw -d 'Let COMMAND change this file or directory' -r -F
complete -c confine -n "__fish_confine_using_subcommand trace" -l hide -d 'Hide this file or directory from COMMAND' -r -F
complete -c confine -n "__fish_confine_using_subcommand trace" -l seal -d 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks' -r -F
complete -c confine -n "__fish_confine_using_subcommand trace" -l net -d 'Which network COMMAND has' -r -f -a "none\t''
host\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l loopback -d 'Which loopback COMMAND has while --net is none' -r -f -a "private\t''
off\t''
host\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l listen -d 'Let COMMAND accept TCP connections from outside at this port' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l connect -d 'Let COMMAND connect to this TCP port of any host' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l env -d 'Pass one variable on, or set it' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l env-file -d 'Set variables from a file that only you can read, or a pipe' -r -F
complete -c confine -n "__fish_confine_using_subcommand trace" -l fd -d 'Pass this descriptor on besides 0, 1 and 2' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l user -d 'Run COMMAND as this user, without further groups (for root)' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l max-procs -d 'Most processes and threads at one time, of the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l max-memory -d 'Most memory of the whole tree, page cache and private /tmp included' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l max-tmp -d 'Most that private /tmp and HOME hold together, for the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l max-disk -d 'Most that the file systems of writable roots may lose meanwhile' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l max-output -d 'Most that the whole tree may write to each of stdout and stderr' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l on-output-limit -d 'What happens at --max-output' -r -f -a "truncate\t''
kill\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l max-cpu -d 'Most processor time of the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l max-file-size -d 'Largest file that each process may write' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l max-open-files -d 'Most descriptors that each process may hold' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l timeout -d 'End the whole tree after this time; the exit status is then 124' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l grace -d 'How long the tree may take to end after TERM' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l require -d 'Refuse to start unless this promise can be kept' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l waive -d 'Start even where this host cannot keep this promise' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l allow -d 'Allow something that is refused by default' -r -f -a "broad-workspace\t''
userns\t''
unix-datagram\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l namespaces -d 'Whether to build the boundary with namespaces' -r -f -a "auto\t''
off\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l profile -d 'Take what is not said here from this profile' -r -f -a "workspace-write\t''
read-only\t''
build\t''
dev-server\t''
kernel\t''
mcp\t''
strict\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l policy -d 'Take what is not said here from this file' -r -F
complete -c confine -n "__fish_confine_using_subcommand trace" -l status-fd -d 'Write JSON lines about start and end to this descriptor' -r -f
complete -c confine -n "__fish_confine_using_subcommand trace" -l result -d 'Write one JSON object with outcome, output and resource use at the end' -r -f -a "json\t''"
complete -c confine -n "__fish_confine_using_subcommand trace" -l audit -d 'Append one JSON line for every decision to this file' -r -F
complete -c confine -n "__fish_confine_using_subcommand trace" -l no-workspace -d 'Give COMMAND no workspace: it starts in its private HOME'
complete -c confine -n "__fish_confine_using_subcommand trace" -l read-only -d 'Show the workspaces read-only'
complete -c confine -n "__fish_confine_using_subcommand trace" -l no-toolchains -d 'Do not show the toolchains and caches that PATH leads to'
complete -c confine -n "__fish_confine_using_subcommand trace" -l clear-env -d 'Pass no variable on but the least that programs need'
complete -c confine -n "__fish_confine_using_subcommand trace" -l strict -d 'Require every promise'
complete -c confine -n "__fish_confine_using_subcommand trace" -l kernel-log -d 'Let Landlock write what it denies to the kernel\'s audit log'
complete -c confine -n "__fish_confine_using_subcommand trace" -s v -l verbose -d 'Say on standard error how the promises are kept'
complete -c confine -n "__fish_confine_using_subcommand trace" -l suggest -d 'Print a profile that would allow what was denied'
complete -c confine -n "__fish_confine_using_subcommand trace" -l json -d 'Print one JSON object instead of text'
complete -c confine -n "__fish_confine_using_subcommand trace" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c confine -n "__fish_confine_using_subcommand verify" -l expect -d 'A line with this hash must be in the record' -r -f
complete -c confine -n "__fish_confine_using_subcommand verify" -l json -d 'Print one JSON object instead of text'
complete -c confine -n "__fish_confine_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c confine -n "__fish_confine_using_subcommand why" -s w -l workspace -d 'A directory that COMMAND may change; never guessed' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand why" -s C -l chdir -d 'Start COMMAND in this directory' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand why" -l hardlinks -d 'What to do about files that have a name outside the workspace too' -r -f -a "reject\t''
protect\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l git -d 'How to treat .git and other files that run later by themselves' -r -f -a "guard\t''
read-only\t''
free\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l state -d 'Keep HOME, /tmp and changes of caches here from one run to the next' -r -f -a "(__fish_complete_directories)"
complete -c confine -n "__fish_confine_using_subcommand why" -l ro -d 'Let COMMAND read (and execute) this file or directory' -r -F
complete -c confine -n "__fish_confine_using_subcommand why" -l rw -d 'Let COMMAND change this file or directory' -r -F
complete -c confine -n "__fish_confine_using_subcommand why" -l hide -d 'Hide this file or directory from COMMAND' -r -F
complete -c confine -n "__fish_confine_using_subcommand why" -l seal -d 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks' -r -F
complete -c confine -n "__fish_confine_using_subcommand why" -l net -d 'Which network COMMAND has' -r -f -a "none\t''
host\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l loopback -d 'Which loopback COMMAND has while --net is none' -r -f -a "private\t''
off\t''
host\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l listen -d 'Let COMMAND accept TCP connections from outside at this port' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l connect -d 'Let COMMAND connect to this TCP port of any host' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l env -d 'Pass one variable on, or set it' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l env-file -d 'Set variables from a file that only you can read, or a pipe' -r -F
complete -c confine -n "__fish_confine_using_subcommand why" -l fd -d 'Pass this descriptor on besides 0, 1 and 2' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l user -d 'Run COMMAND as this user, without further groups (for root)' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l max-procs -d 'Most processes and threads at one time, of the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l max-memory -d 'Most memory of the whole tree, page cache and private /tmp included' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l max-tmp -d 'Most that private /tmp and HOME hold together, for the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l max-disk -d 'Most that the file systems of writable roots may lose meanwhile' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l max-output -d 'Most that the whole tree may write to each of stdout and stderr' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l on-output-limit -d 'What happens at --max-output' -r -f -a "truncate\t''
kill\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l max-cpu -d 'Most processor time of the whole tree' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l max-file-size -d 'Largest file that each process may write' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l max-open-files -d 'Most descriptors that each process may hold' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l timeout -d 'End the whole tree after this time; the exit status is then 124' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l grace -d 'How long the tree may take to end after TERM' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l require -d 'Refuse to start unless this promise can be kept' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l waive -d 'Start even where this host cannot keep this promise' -r -f -a "write-scope\t''
metadata-scope\t''
read-scope\t''
path-hiding\t''
alias-free\t''
network-scope\t''
socket-scope\t''
process-scope\t''
process-hiding\t''
no-gain\t''
clean-start\t''
ceilings\t''
teardown\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l allow -d 'Allow something that is refused by default' -r -f -a "broad-workspace\t''
userns\t''
unix-datagram\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l namespaces -d 'Whether to build the boundary with namespaces' -r -f -a "auto\t''
off\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l profile -d 'Take what is not said here from this profile' -r -f -a "workspace-write\t''
read-only\t''
build\t''
dev-server\t''
kernel\t''
mcp\t''
strict\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l policy -d 'Take what is not said here from this file' -r -F
complete -c confine -n "__fish_confine_using_subcommand why" -l status-fd -d 'Write JSON lines about start and end to this descriptor' -r -f
complete -c confine -n "__fish_confine_using_subcommand why" -l result -d 'Write one JSON object with outcome, output and resource use at the end' -r -f -a "json\t''"
complete -c confine -n "__fish_confine_using_subcommand why" -l audit -d 'Append one JSON line for every decision to this file' -r -F
complete -c confine -n "__fish_confine_using_subcommand why" -l no-workspace -d 'Give COMMAND no workspace: it starts in its private HOME'
complete -c confine -n "__fish_confine_using_subcommand why" -l read-only -d 'Show the workspaces read-only'
complete -c confine -n "__fish_confine_using_subcommand why" -l no-toolchains -d 'Do not show the toolchains and caches that PATH leads to'
complete -c confine -n "__fish_confine_using_subcommand why" -l clear-env -d 'Pass no variable on but the least that programs need'
complete -c confine -n "__fish_confine_using_subcommand why" -l strict -d 'Require every promise'
complete -c confine -n "__fish_confine_using_subcommand why" -l kernel-log -d 'Let Landlock write what it denies to the kernel\'s audit log'
complete -c confine -n "__fish_confine_using_subcommand why" -s v -l verbose -d 'Say on standard error how the promises are kept'
complete -c confine -n "__fish_confine_using_subcommand why" -l json -d 'Print one JSON object instead of text'
complete -c confine -n "__fish_confine_using_subcommand why" -s h -l help -d 'Print help (see more with \'--help\')'

# By hand: a subcommand is the first word or none, after `--` the line is that of another command, which has its own
# completion, and a profile may be the user's own.
function __fish_confine_after_separator
    contains -- -- (commandline -opc)
end

function __fish_confine_needs_command
    __fish_confine_after_separator
    and return 1
    set -l words (commandline -opc)
    contains -- "$words[2]" check explain scan trace verify why
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
