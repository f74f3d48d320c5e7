
use builtin;
use str;

set edit:completion:arg-completer[confine] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'confine'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'confine'= {
            cand -w 'A directory that COMMAND may change; never guessed'
            cand --workspace 'A directory that COMMAND may change; never guessed'
            cand -C 'Start COMMAND in this directory'
            cand --chdir 'Start COMMAND in this directory'
            cand --hardlinks 'What to do about files that have a name outside the workspace too'
            cand --git 'How to treat .git and other files that run later by themselves'
            cand --state 'Keep HOME, /tmp and changes of caches here from one run to the next'
            cand --ro 'Let COMMAND read (and execute) this file or directory'
            cand --rw 'Let COMMAND change this file or directory'
            cand --hide 'Hide this file or directory from COMMAND'
            cand --seal 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks'
            cand --net 'Which network COMMAND has'
            cand --loopback 'Which loopback COMMAND has while --net is none'
            cand --listen 'Let COMMAND accept TCP connections from outside at this port'
            cand --connect 'Let COMMAND connect to this TCP port of any host'
            cand --env 'Pass one variable on, or set it'
            cand --env-file 'Set variables from a file that only you can read, or a pipe'
            cand --fd 'Pass this descriptor on besides 0, 1 and 2'
            cand --user 'Run COMMAND as this user, without further groups (for root)'
            cand --max-procs 'Most processes and threads at one time, of the whole tree'
            cand --max-memory 'Most memory of the whole tree, page cache and private /tmp included'
            cand --max-tmp 'Most that private /tmp and HOME hold together, for the whole tree'
            cand --max-disk 'Most that the file systems of writable roots may lose meanwhile'
            cand --max-output 'Most that the whole tree may write to each of stdout and stderr'
            cand --on-output-limit 'What happens at --max-output'
            cand --max-cpu 'Most processor time of the whole tree'
            cand --max-file-size 'Largest file that each process may write'
            cand --max-open-files 'Most descriptors that each process may hold'
            cand --timeout 'End the whole tree after this time; the exit status is then 124'
            cand --grace 'How long the tree may take to end after TERM'
            cand --require 'Refuse to start unless this promise can be kept'
            cand --waive 'Start even where this host cannot keep this promise'
            cand --allow 'Allow something that is refused by default'
            cand --namespaces 'Whether to build the boundary with namespaces'
            cand --profile 'Take what is not said here from this profile'
            cand --policy 'Take what is not said here from this file'
            cand --status-fd 'Write JSON lines about start and end to this descriptor'
            cand --result 'Write one JSON object with outcome, output and resource use at the end'
            cand --audit 'Append one JSON line for every decision to this file'
            cand --no-workspace 'Give COMMAND no workspace: it starts in its private HOME'
            cand --read-only 'Show the workspaces read-only'
            cand --no-toolchains 'Do not show the toolchains and caches that PATH leads to'
            cand --clear-env 'Pass no variable on but the least that programs need'
            cand --strict 'Require every promise'
            cand --kernel-log 'Let Landlock write what it denies to the kernel''s audit log'
            cand -v 'Say on standard error how the promises are kept'
            cand --verbose 'Say on standard error how the promises are kept'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
            cand check 'Tell which promises this host can keep, and the fix for the rest'
            cand explain 'Show how a run would be confined, and run nothing'
            cand scan 'List files in DIR that have a name elsewhere too, and device nodes'
            cand trace 'Run COMMAND and list what the boundary denied it'
            cand verify 'Check the chain of an audit record'
            cand why 'Tell what is visible, writable, reachable or passed, and why'
        }
        &'confine;check'= {
            cand -w 'A directory that COMMAND may change; never guessed'
            cand --workspace 'A directory that COMMAND may change; never guessed'
            cand -C 'Start COMMAND in this directory'
            cand --chdir 'Start COMMAND in this directory'
            cand --hardlinks 'What to do about files that have a name outside the workspace too'
            cand --git 'How to treat .git and other files that run later by themselves'
            cand --state 'Keep HOME, /tmp and changes of caches here from one run to the next'
            cand --ro 'Let COMMAND read (and execute) this file or directory'
            cand --rw 'Let COMMAND change this file or directory'
            cand --hide 'Hide this file or directory from COMMAND'
            cand --seal 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks'
            cand --net 'Which network COMMAND has'
            cand --loopback 'Which loopback COMMAND has while --net is none'
            cand --listen 'Let COMMAND accept TCP connections from outside at this port'
            cand --connect 'Let COMMAND connect to this TCP port of any host'
            cand --env 'Pass one variable on, or set it'
            cand --env-file 'Set variables from a file that only you can read, or a pipe'
            cand --fd 'Pass this descriptor on besides 0, 1 and 2'
            cand --user 'Run COMMAND as this user, without further groups (for root)'
            cand --max-procs 'Most processes and threads at one time, of the whole tree'
            cand --max-memory 'Most memory of the whole tree, page cache and private /tmp included'
            cand --max-tmp 'Most that private /tmp and HOME hold together, for the whole tree'
            cand --max-disk 'Most that the file systems of writable roots may lose meanwhile'
            cand --max-output 'Most that the whole tree may write to each of stdout and stderr'
            cand --on-output-limit 'What happens at --max-output'
            cand --max-cpu 'Most processor time of the whole tree'
            cand --max-file-size 'Largest file that each process may write'
            cand --max-open-files 'Most descriptors that each process may hold'
            cand --timeout 'End the whole tree after this time; the exit status is then 124'
            cand --grace 'How long the tree may take to end after TERM'
            cand --require 'Refuse to start unless this promise can be kept'
            cand --waive 'Start even where this host cannot keep this promise'
            cand --allow 'Allow something that is refused by default'
            cand --namespaces 'Whether to build the boundary with namespaces'
            cand --profile 'Take what is not said here from this profile'
            cand --policy 'Take what is not said here from this file'
            cand --status-fd 'Write JSON lines about start and end to this descriptor'
            cand --result 'Write one JSON object with outcome, output and resource use at the end'
            cand --audit 'Append one JSON line for every decision to this file'
            cand --no-workspace 'Give COMMAND no workspace: it starts in its private HOME'
            cand --read-only 'Show the workspaces read-only'
            cand --no-toolchains 'Do not show the toolchains and caches that PATH leads to'
            cand --clear-env 'Pass no variable on but the least that programs need'
            cand --strict 'Require every promise'
            cand --kernel-log 'Let Landlock write what it denies to the kernel''s audit log'
            cand -v 'Say on standard error how the promises are kept'
            cand --verbose 'Say on standard error how the promises are kept'
            cand --prove 'Try to get out of the boundary that the given options make here'
            cand --posture 'Look for weak spots of the set-up instead'
            cand --json 'Print one JSON object instead of text'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'confine;explain'= {
            cand -w 'A directory that COMMAND may change; never guessed'
            cand --workspace 'A directory that COMMAND may change; never guessed'
            cand -C 'Start COMMAND in this directory'
            cand --chdir 'Start COMMAND in this directory'
            cand --hardlinks 'What to do about files that have a name outside the workspace too'
            cand --git 'How to treat .git and other files that run later by themselves'
            cand --state 'Keep HOME, /tmp and changes of caches here from one run to the next'
            cand --ro 'Let COMMAND read (and execute) this file or directory'
            cand --rw 'Let COMMAND change this file or directory'
            cand --hide 'Hide this file or directory from COMMAND'
            cand --seal 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks'
            cand --net 'Which network COMMAND has'
            cand --loopback 'Which loopback COMMAND has while --net is none'
            cand --listen 'Let COMMAND accept TCP connections from outside at this port'
            cand --connect 'Let COMMAND connect to this TCP port of any host'
            cand --env 'Pass one variable on, or set it'
            cand --env-file 'Set variables from a file that only you can read, or a pipe'
            cand --fd 'Pass this descriptor on besides 0, 1 and 2'
            cand --user 'Run COMMAND as this user, without further groups (for root)'
            cand --max-procs 'Most processes and threads at one time, of the whole tree'
            cand --max-memory 'Most memory of the whole tree, page cache and private /tmp included'
            cand --max-tmp 'Most that private /tmp and HOME hold together, for the whole tree'
            cand --max-disk 'Most that the file systems of writable roots may lose meanwhile'
            cand --max-output 'Most that the whole tree may write to each of stdout and stderr'
            cand --on-output-limit 'What happens at --max-output'
            cand --max-cpu 'Most processor time of the whole tree'
            cand --max-file-size 'Largest file that each process may write'
            cand --max-open-files 'Most descriptors that each process may hold'
            cand --timeout 'End the whole tree after this time; the exit status is then 124'
            cand --grace 'How long the tree may take to end after TERM'
            cand --require 'Refuse to start unless this promise can be kept'
            cand --waive 'Start even where this host cannot keep this promise'
            cand --allow 'Allow something that is refused by default'
            cand --namespaces 'Whether to build the boundary with namespaces'
            cand --profile 'Take what is not said here from this profile'
            cand --policy 'Take what is not said here from this file'
            cand --status-fd 'Write JSON lines about start and end to this descriptor'
            cand --result 'Write one JSON object with outcome, output and resource use at the end'
            cand --audit 'Append one JSON line for every decision to this file'
            cand --no-workspace 'Give COMMAND no workspace: it starts in its private HOME'
            cand --read-only 'Show the workspaces read-only'
            cand --no-toolchains 'Do not show the toolchains and caches that PATH leads to'
            cand --clear-env 'Pass no variable on but the least that programs need'
            cand --strict 'Require every promise'
            cand --kernel-log 'Let Landlock write what it denies to the kernel''s audit log'
            cand -v 'Say on standard error how the promises are kept'
            cand --verbose 'Say on standard error how the promises are kept'
            cand --json 'Print one JSON object instead of text'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'confine;scan'= {
            cand --separate 'Give every file that has a name elsewhere too an inode of its own'
            cand --json 'Print one JSON object instead of text'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'confine;trace'= {
            cand -w 'A directory that COMMAND may change; never guessed'
            cand --workspace 'A directory that COMMAND may change; never guessed'
            cand -C 'Start COMMAND in this directory'
            cand --chdir 'Start COMMAND in this directory'
            cand --hardlinks 'What to do about files that have a name outside the workspace too'
            cand --git 'How to treat .git and other files that run later by themselves'
            cand --state 'Keep HOME, /tmp and changes of caches here from one run to the next'
            cand --ro 'Let COMMAND read (and execute) this file or directory'
            cand --rw 'Let COMMAND change this file or directory'
            cand --hide 'Hide this file or directory from COMMAND'
            cand --seal 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks'
            cand --net 'Which network COMMAND has'
            cand --loopback 'Which loopback COMMAND has while --net is none'
            cand --listen 'Let COMMAND accept TCP connections from outside at this port'
            cand --connect 'Let COMMAND connect to this TCP port of any host'
            cand --env 'Pass one variable on, or set it'
            cand --env-file 'Set variables from a file that only you can read, or a pipe'
            cand --fd 'Pass this descriptor on besides 0, 1 and 2'
            cand --user 'Run COMMAND as this user, without further groups (for root)'
            cand --max-procs 'Most processes and threads at one time, of the whole tree'
            cand --max-memory 'Most memory of the whole tree, page cache and private /tmp included'
            cand --max-tmp 'Most that private /tmp and HOME hold together, for the whole tree'
            cand --max-disk 'Most that the file systems of writable roots may lose meanwhile'
            cand --max-output 'Most that the whole tree may write to each of stdout and stderr'
            cand --on-output-limit 'What happens at --max-output'
            cand --max-cpu 'Most processor time of the whole tree'
            cand --max-file-size 'Largest file that each process may write'
            cand --max-open-files 'Most descriptors that each process may hold'
            cand --timeout 'End the whole tree after this time; the exit status is then 124'
            cand --grace 'How long the tree may take to end after TERM'
            cand --require 'Refuse to start unless this promise can be kept'
            cand --waive 'Start even where this host cannot keep this promise'
            cand --allow 'Allow something that is refused by default'
            cand --namespaces 'Whether to build the boundary with namespaces'
            cand --profile 'Take what is not said here from this profile'
            cand --policy 'Take what is not said here from this file'
            cand --status-fd 'Write JSON lines about start and end to this descriptor'
            cand --result 'Write one JSON object with outcome, output and resource use at the end'
            cand --audit 'Append one JSON line for every decision to this file'
            cand --no-workspace 'Give COMMAND no workspace: it starts in its private HOME'
            cand --read-only 'Show the workspaces read-only'
            cand --no-toolchains 'Do not show the toolchains and caches that PATH leads to'
            cand --clear-env 'Pass no variable on but the least that programs need'
            cand --strict 'Require every promise'
            cand --kernel-log 'Let Landlock write what it denies to the kernel''s audit log'
            cand -v 'Say on standard error how the promises are kept'
            cand --verbose 'Say on standard error how the promises are kept'
            cand --suggest 'Print a profile that would allow what was denied'
            cand --json 'Print one JSON object instead of text'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'confine;verify'= {
            cand --expect 'A line with this hash must be in the record'
            cand --json 'Print one JSON object instead of text'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'confine;why'= {
            cand -w 'A directory that COMMAND may change; never guessed'
            cand --workspace 'A directory that COMMAND may change; never guessed'
            cand -C 'Start COMMAND in this directory'
            cand --chdir 'Start COMMAND in this directory'
            cand --hardlinks 'What to do about files that have a name outside the workspace too'
            cand --git 'How to treat .git and other files that run later by themselves'
            cand --state 'Keep HOME, /tmp and changes of caches here from one run to the next'
            cand --ro 'Let COMMAND read (and execute) this file or directory'
            cand --rw 'Let COMMAND change this file or directory'
            cand --hide 'Hide this file or directory from COMMAND'
            cand --seal 'Let COMMAND read this directory, apart from its sockets, FIFOs and locks'
            cand --net 'Which network COMMAND has'
            cand --loopback 'Which loopback COMMAND has while --net is none'
            cand --listen 'Let COMMAND accept TCP connections from outside at this port'
            cand --connect 'Let COMMAND connect to this TCP port of any host'
            cand --env 'Pass one variable on, or set it'
            cand --env-file 'Set variables from a file that only you can read, or a pipe'
            cand --fd 'Pass this descriptor on besides 0, 1 and 2'
            cand --user 'Run COMMAND as this user, without further groups (for root)'
            cand --max-procs 'Most processes and threads at one time, of the whole tree'
            cand --max-memory 'Most memory of the whole tree, page cache and private /tmp included'
            cand --max-tmp 'Most that private /tmp and HOME hold together, for the whole tree'
            cand --max-disk 'Most that the file systems of writable roots may lose meanwhile'
            cand --max-output 'Most that the whole tree may write to each of stdout and stderr'
            cand --on-output-limit 'What happens at --max-output'
            cand --max-cpu 'Most processor time of the whole tree'
            cand --max-file-size 'Largest file that each process may write'
            cand --max-open-files 'Most descriptors that each process may hold'
            cand --timeout 'End the whole tree after this time; the exit status is then 124'
            cand --grace 'How long the tree may take to end after TERM'
            cand --require 'Refuse to start unless this promise can be kept'
            cand --waive 'Start even where this host cannot keep this promise'
            cand --allow 'Allow something that is refused by default'
            cand --namespaces 'Whether to build the boundary with namespaces'
            cand --profile 'Take what is not said here from this profile'
            cand --policy 'Take what is not said here from this file'
            cand --status-fd 'Write JSON lines about start and end to this descriptor'
            cand --result 'Write one JSON object with outcome, output and resource use at the end'
            cand --audit 'Append one JSON line for every decision to this file'
            cand --no-workspace 'Give COMMAND no workspace: it starts in its private HOME'
            cand --read-only 'Show the workspaces read-only'
            cand --no-toolchains 'Do not show the toolchains and caches that PATH leads to'
            cand --clear-env 'Pass no variable on but the least that programs need'
            cand --strict 'Require every promise'
            cand --kernel-log 'Let Landlock write what it denies to the kernel''s audit log'
            cand -v 'Say on standard error how the promises are kept'
            cand --verbose 'Say on standard error how the promises are kept'
            cand --json 'Print one JSON object instead of text'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
    ]
    $completions[$command]
}

# By hand: what options take, the user's own profiles, and after `--` the line of another command, which has its own completion.
var confine-values = [
  &-w=path
  &--workspace=path
  &-C=path
  &--chdir=path
  &--hardlinks=[reject protect]
  &--git=[guard read-only free]
  &--state=path
  &--ro=path
  &--rw=path
  &--hide=path
  &--seal=path
  &--net=[none host]
  &--loopback=[private off host]
  &--listen=[]
  &--connect=[]
  &--env=[]
  &--env-file=path
  &--fd=[]
  &--user=[]
  &--max-procs=[]
  &--max-memory=[]
  &--max-tmp=[]
  &--max-disk=[]
  &--max-output=[]
  &--on-output-limit=[truncate kill]
  &--max-cpu=[]
  &--max-file-size=[]
  &--max-open-files=[]
  &--timeout=[]
  &--grace=[]
  &--require=[write-scope metadata-scope read-scope path-hiding alias-free network-scope socket-scope process-scope process-hiding no-gain clean-start ceilings teardown]
  &--waive=[write-scope metadata-scope read-scope path-hiding alias-free network-scope socket-scope process-scope process-hiding no-gain clean-start ceilings teardown]
  &--allow=[broad-workspace userns unix-datagram]
  &--namespaces=[auto off]
  &--profile=[workspace-write read-only build dev-server kernel mcp strict]
  &--policy=path
  &--status-fd=[]
  &--result=[json]
  &--audit=path
]
var confine-options~ = $edit:completion:arg-completer[confine]
fn confine-own-profiles {
  use path
  use str
  for file [~/.config/confine/profiles/*[nomatch-ok].toml /etc/confine/profiles/*[nomatch-ok].toml] {
    str:trim-suffix (path:base $file) .toml
  }
}
fn confine-line {|@words|
  var last = (- (count $words) 1)
  for i [(range 1 $last)] {
    if (eq $words[$i] --) {
      edit:complete-sudo (all $words[$i..])
      return
    }
  }
  var before = $words[(- $last 1)]
  if (not (has-key $confine-values $before)) {
    confine-options $@words
  } elif (eq $confine-values[$before] path) {
    edit:complete-filename $words[$last]
  } else {
    all $confine-values[$before]
    if (eq $before --profile) {
      confine-own-profiles
    }
  }
}
set edit:completion:arg-completer[confine] = $confine-line~
