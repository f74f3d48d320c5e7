module completions {

  def "nu-complete confine hardlinks" [] {
    [ "reject" "protect" ]
  }

  def "nu-complete confine git" [] {
    [ "guard" "read-only" "free" ]
  }

  def "nu-complete confine net" [] {
    [ "none" "host" ]
  }

  def "nu-complete confine loopback" [] {
    [ "private" "off" "host" ]
  }

  def "nu-complete confine on-output-limit" [] {
    [ "truncate" "kill" ]
  }

  def "nu-complete confine require" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine waive" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine allow" [] {
    [ "broad-workspace" "userns" "unix-datagram" ]
  }

  def "nu-complete confine namespaces" [] {
    [ "auto" "off" ]
  }

  def "nu-complete confine profile" [] {
    [ "workspace-write" "read-only" "build" "dev-server" "kernel" "mcp" "strict" ]
  }

  def "nu-complete confine result" [] {
    [ "json" ]
  }

  # Run COMMAND inside a boundary that neither it nor anything it starts can widen
  export extern confine [
    --workspace(-w): directory # A directory that COMMAND may change; never guessed
    --no-workspace            # Give COMMAND no workspace: it starts in its private HOME
    --chdir(-C): directory    # Start COMMAND in this directory
    --read-only               # Show the workspaces read-only
    --hardlinks: string@"nu-complete confine hardlinks" # What to do about files that have a name outside the workspace too
    --git: string@"nu-complete confine git" # How to treat .git and other files that run later by themselves
    --state: directory        # Keep HOME, /tmp and changes of caches here from one run to the next
    --ro: path                # Let COMMAND read (and execute) this file or directory
    --rw: path                # Let COMMAND change this file or directory
    --hide: path              # Hide this file or directory from COMMAND
    --seal: path              # Let COMMAND read this directory, apart from its sockets, FIFOs and locks
    --no-toolchains           # Do not show the toolchains and caches that PATH leads to
    --net: string@"nu-complete confine net" # Which network COMMAND has
    --loopback: string@"nu-complete confine loopback" # Which loopback COMMAND has while --net is none
    --listen: string          # Let COMMAND accept TCP connections from outside at this port
    --connect: string         # Let COMMAND connect to this TCP port of any host
    --env: string             # Pass one variable on, or set it
    --env-file: path          # Set variables from a file that only you can read, or a pipe
    --clear-env               # Pass no variable on but the least that programs need
    --fd: string              # Pass this descriptor on besides 0, 1 and 2
    --user: string            # Run COMMAND as this user, without further groups (for root)
    --max-procs: string       # Most processes and threads at one time, of the whole tree
    --max-memory: string      # Most memory of the whole tree, page cache and private /tmp included
    --max-tmp: string         # Most that private /tmp and HOME hold together, for the whole tree
    --max-disk: string        # Most that the file systems of writable roots may lose meanwhile
    --max-output: string      # Most that the whole tree may write to each of stdout and stderr
    --on-output-limit: string@"nu-complete confine on-output-limit" # What happens at --max-output
    --max-cpu: string         # Most processor time of the whole tree
    --max-file-size: string   # Largest file that each process may write
    --max-open-files: string  # Most descriptors that each process may hold
    --timeout: string         # End the whole tree after this time; the exit status is then 124
    --grace: string           # How long the tree may take to end after TERM
    --require: string@"nu-complete confine require" # Refuse to start unless this promise can be kept
    --waive: string@"nu-complete confine waive" # Start even where this host cannot keep this promise
    --strict                  # Require every promise
    --allow: string@"nu-complete confine allow" # Allow something that is refused by default
    --namespaces: string@"nu-complete confine namespaces" # Whether to build the boundary with namespaces
    --profile: string@"nu-complete confine profile" # Take what is not said here from this profile
    --policy: path            # Take what is not said here from this file
    --status-fd: string       # Write JSON lines about start and end to this descriptor
    --result: string@"nu-complete confine result" # Write one JSON object with outcome, output and resource use at the end
    --audit: path             # Append one JSON line for every decision to this file
    --kernel-log              # Let Landlock write what it denies to the kernel's audit log
    --verbose(-v)             # Say on standard error how the promises are kept
    --help(-h)                # Print help (see more with '--help')
    --version(-V)             # Print version
  ]

  def "nu-complete confine check hardlinks" [] {
    [ "reject" "protect" ]
  }

  def "nu-complete confine check git" [] {
    [ "guard" "read-only" "free" ]
  }

  def "nu-complete confine check net" [] {
    [ "none" "host" ]
  }

  def "nu-complete confine check loopback" [] {
    [ "private" "off" "host" ]
  }

  def "nu-complete confine check on-output-limit" [] {
    [ "truncate" "kill" ]
  }

  def "nu-complete confine check require" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine check waive" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine check allow" [] {
    [ "broad-workspace" "userns" "unix-datagram" ]
  }

  def "nu-complete confine check namespaces" [] {
    [ "auto" "off" ]
  }

  def "nu-complete confine check profile" [] {
    [ "workspace-write" "read-only" "build" "dev-server" "kernel" "mcp" "strict" ]
  }

  def "nu-complete confine check result" [] {
    [ "json" ]
  }

  # Tell which promises this host can keep, and the fix for the rest
  export extern "confine check" [
    --workspace(-w): directory # A directory that COMMAND may change; never guessed
    --no-workspace            # Give COMMAND no workspace: it starts in its private HOME
    --chdir(-C): directory    # Start COMMAND in this directory
    --read-only               # Show the workspaces read-only
    --hardlinks: string@"nu-complete confine check hardlinks" # What to do about files that have a name outside the workspace too
    --git: string@"nu-complete confine check git" # How to treat .git and other files that run later by themselves
    --state: directory        # Keep HOME, /tmp and changes of caches here from one run to the next
    --ro: path                # Let COMMAND read (and execute) this file or directory
    --rw: path                # Let COMMAND change this file or directory
    --hide: path              # Hide this file or directory from COMMAND
    --seal: path              # Let COMMAND read this directory, apart from its sockets, FIFOs and locks
    --no-toolchains           # Do not show the toolchains and caches that PATH leads to
    --net: string@"nu-complete confine check net" # Which network COMMAND has
    --loopback: string@"nu-complete confine check loopback" # Which loopback COMMAND has while --net is none
    --listen: string          # Let COMMAND accept TCP connections from outside at this port
    --connect: string         # Let COMMAND connect to this TCP port of any host
    --env: string             # Pass one variable on, or set it
    --env-file: path          # Set variables from a file that only you can read, or a pipe
    --clear-env               # Pass no variable on but the least that programs need
    --fd: string              # Pass this descriptor on besides 0, 1 and 2
    --user: string            # Run COMMAND as this user, without further groups (for root)
    --max-procs: string       # Most processes and threads at one time, of the whole tree
    --max-memory: string      # Most memory of the whole tree, page cache and private /tmp included
    --max-tmp: string         # Most that private /tmp and HOME hold together, for the whole tree
    --max-disk: string        # Most that the file systems of writable roots may lose meanwhile
    --max-output: string      # Most that the whole tree may write to each of stdout and stderr
    --on-output-limit: string@"nu-complete confine check on-output-limit" # What happens at --max-output
    --max-cpu: string         # Most processor time of the whole tree
    --max-file-size: string   # Largest file that each process may write
    --max-open-files: string  # Most descriptors that each process may hold
    --timeout: string         # End the whole tree after this time; the exit status is then 124
    --grace: string           # How long the tree may take to end after TERM
    --require: string@"nu-complete confine check require" # Refuse to start unless this promise can be kept
    --waive: string@"nu-complete confine check waive" # Start even where this host cannot keep this promise
    --strict                  # Require every promise
    --allow: string@"nu-complete confine check allow" # Allow something that is refused by default
    --namespaces: string@"nu-complete confine check namespaces" # Whether to build the boundary with namespaces
    --profile: string@"nu-complete confine check profile" # Take what is not said here from this profile
    --policy: path            # Take what is not said here from this file
    --status-fd: string       # Write JSON lines about start and end to this descriptor
    --result: string@"nu-complete confine check result" # Write one JSON object with outcome, output and resource use at the end
    --audit: path             # Append one JSON line for every decision to this file
    --kernel-log              # Let Landlock write what it denies to the kernel's audit log
    --verbose(-v)             # Say on standard error how the promises are kept
    --prove                   # Try to get out of the boundary that the given options make here
    --posture                 # Look for weak spots of the set-up instead
    --json                    # Print one JSON object instead of text
    --help(-h)                # Print help (see more with '--help')
  ]

  def "nu-complete confine explain hardlinks" [] {
    [ "reject" "protect" ]
  }

  def "nu-complete confine explain git" [] {
    [ "guard" "read-only" "free" ]
  }

  def "nu-complete confine explain net" [] {
    [ "none" "host" ]
  }

  def "nu-complete confine explain loopback" [] {
    [ "private" "off" "host" ]
  }

  def "nu-complete confine explain on-output-limit" [] {
    [ "truncate" "kill" ]
  }

  def "nu-complete confine explain require" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine explain waive" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine explain allow" [] {
    [ "broad-workspace" "userns" "unix-datagram" ]
  }

  def "nu-complete confine explain namespaces" [] {
    [ "auto" "off" ]
  }

  def "nu-complete confine explain profile" [] {
    [ "workspace-write" "read-only" "build" "dev-server" "kernel" "mcp" "strict" ]
  }

  def "nu-complete confine explain result" [] {
    [ "json" ]
  }

  # Show how a run would be confined, and run nothing
  export extern "confine explain" [
    --workspace(-w): directory # A directory that COMMAND may change; never guessed
    --no-workspace            # Give COMMAND no workspace: it starts in its private HOME
    --chdir(-C): directory    # Start COMMAND in this directory
    --read-only               # Show the workspaces read-only
    --hardlinks: string@"nu-complete confine explain hardlinks" # What to do about files that have a name outside the workspace too
    --git: string@"nu-complete confine explain git" # How to treat .git and other files that run later by themselves
    --state: directory        # Keep HOME, /tmp and changes of caches here from one run to the next
    --ro: path                # Let COMMAND read (and execute) this file or directory
    --rw: path                # Let COMMAND change this file or directory
    --hide: path              # Hide this file or directory from COMMAND
    --seal: path              # Let COMMAND read this directory, apart from its sockets, FIFOs and locks
    --no-toolchains           # Do not show the toolchains and caches that PATH leads to
    --net: string@"nu-complete confine explain net" # Which network COMMAND has
    --loopback: string@"nu-complete confine explain loopback" # Which loopback COMMAND has while --net is none
    --listen: string          # Let COMMAND accept TCP connections from outside at this port
    --connect: string         # Let COMMAND connect to this TCP port of any host
    --env: string             # Pass one variable on, or set it
    --env-file: path          # Set variables from a file that only you can read, or a pipe
    --clear-env               # Pass no variable on but the least that programs need
    --fd: string              # Pass this descriptor on besides 0, 1 and 2
    --user: string            # Run COMMAND as this user, without further groups (for root)
    --max-procs: string       # Most processes and threads at one time, of the whole tree
    --max-memory: string      # Most memory of the whole tree, page cache and private /tmp included
    --max-tmp: string         # Most that private /tmp and HOME hold together, for the whole tree
    --max-disk: string        # Most that the file systems of writable roots may lose meanwhile
    --max-output: string      # Most that the whole tree may write to each of stdout and stderr
    --on-output-limit: string@"nu-complete confine explain on-output-limit" # What happens at --max-output
    --max-cpu: string         # Most processor time of the whole tree
    --max-file-size: string   # Largest file that each process may write
    --max-open-files: string  # Most descriptors that each process may hold
    --timeout: string         # End the whole tree after this time; the exit status is then 124
    --grace: string           # How long the tree may take to end after TERM
    --require: string@"nu-complete confine explain require" # Refuse to start unless this promise can be kept
    --waive: string@"nu-complete confine explain waive" # Start even where this host cannot keep this promise
    --strict                  # Require every promise
    --allow: string@"nu-complete confine explain allow" # Allow something that is refused by default
    --namespaces: string@"nu-complete confine explain namespaces" # Whether to build the boundary with namespaces
    --profile: string@"nu-complete confine explain profile" # Take what is not said here from this profile
    --policy: path            # Take what is not said here from this file
    --status-fd: string       # Write JSON lines about start and end to this descriptor
    --result: string@"nu-complete confine explain result" # Write one JSON object with outcome, output and resource use at the end
    --audit: path             # Append one JSON line for every decision to this file
    --kernel-log              # Let Landlock write what it denies to the kernel's audit log
    --verbose(-v)             # Say on standard error how the promises are kept
    --json                    # Print one JSON object instead of text
    --help(-h)                # Print help (see more with '--help')
  ]

  # List files in DIR that have a name elsewhere too, and device nodes
  export extern "confine scan" [
    --separate                # Give every file that has a name elsewhere too an inode of its own
    --json                    # Print one JSON object instead of text
    --help(-h)                # Print help (see more with '--help')
    ...dir: directory         # Directories to look through
  ]

  def "nu-complete confine trace hardlinks" [] {
    [ "reject" "protect" ]
  }

  def "nu-complete confine trace git" [] {
    [ "guard" "read-only" "free" ]
  }

  def "nu-complete confine trace net" [] {
    [ "none" "host" ]
  }

  def "nu-complete confine trace loopback" [] {
    [ "private" "off" "host" ]
  }

  def "nu-complete confine trace on-output-limit" [] {
    [ "truncate" "kill" ]
  }

  def "nu-complete confine trace require" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine trace waive" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine trace allow" [] {
    [ "broad-workspace" "userns" "unix-datagram" ]
  }

  def "nu-complete confine trace namespaces" [] {
    [ "auto" "off" ]
  }

  def "nu-complete confine trace profile" [] {
    [ "workspace-write" "read-only" "build" "dev-server" "kernel" "mcp" "strict" ]
  }

  def "nu-complete confine trace result" [] {
    [ "json" ]
  }

  # Run COMMAND and list what the boundary denied it
  export extern "confine trace" [
    --workspace(-w): directory # A directory that COMMAND may change; never guessed
    --no-workspace            # Give COMMAND no workspace: it starts in its private HOME
    --chdir(-C): directory    # Start COMMAND in this directory
    --read-only               # Show the workspaces read-only
    --hardlinks: string@"nu-complete confine trace hardlinks" # What to do about files that have a name outside the workspace too
    --git: string@"nu-complete confine trace git" # How to treat .git and other files that run later by themselves
    --state: directory        # Keep HOME, /tmp and changes of caches here from one run to the next
    --ro: path                # Let COMMAND read (and execute) this file or directory
    --rw: path                # Let COMMAND change this file or directory
    --hide: path              # Hide this file or directory from COMMAND
    --seal: path              # Let COMMAND read this directory, apart from its sockets, FIFOs and locks
    --no-toolchains           # Do not show the toolchains and caches that PATH leads to
    --net: string@"nu-complete confine trace net" # Which network COMMAND has
    --loopback: string@"nu-complete confine trace loopback" # Which loopback COMMAND has while --net is none
    --listen: string          # Let COMMAND accept TCP connections from outside at this port
    --connect: string         # Let COMMAND connect to this TCP port of any host
    --env: string             # Pass one variable on, or set it
    --env-file: path          # Set variables from a file that only you can read, or a pipe
    --clear-env               # Pass no variable on but the least that programs need
    --fd: string              # Pass this descriptor on besides 0, 1 and 2
    --user: string            # Run COMMAND as this user, without further groups (for root)
    --max-procs: string       # Most processes and threads at one time, of the whole tree
    --max-memory: string      # Most memory of the whole tree, page cache and private /tmp included
    --max-tmp: string         # Most that private /tmp and HOME hold together, for the whole tree
    --max-disk: string        # Most that the file systems of writable roots may lose meanwhile
    --max-output: string      # Most that the whole tree may write to each of stdout and stderr
    --on-output-limit: string@"nu-complete confine trace on-output-limit" # What happens at --max-output
    --max-cpu: string         # Most processor time of the whole tree
    --max-file-size: string   # Largest file that each process may write
    --max-open-files: string  # Most descriptors that each process may hold
    --timeout: string         # End the whole tree after this time; the exit status is then 124
    --grace: string           # How long the tree may take to end after TERM
    --require: string@"nu-complete confine trace require" # Refuse to start unless this promise can be kept
    --waive: string@"nu-complete confine trace waive" # Start even where this host cannot keep this promise
    --strict                  # Require every promise
    --allow: string@"nu-complete confine trace allow" # Allow something that is refused by default
    --namespaces: string@"nu-complete confine trace namespaces" # Whether to build the boundary with namespaces
    --profile: string@"nu-complete confine trace profile" # Take what is not said here from this profile
    --policy: path            # Take what is not said here from this file
    --status-fd: string       # Write JSON lines about start and end to this descriptor
    --result: string@"nu-complete confine trace result" # Write one JSON object with outcome, output and resource use at the end
    --audit: path             # Append one JSON line for every decision to this file
    --kernel-log              # Let Landlock write what it denies to the kernel's audit log
    --verbose(-v)             # Say on standard error how the promises are kept
    --suggest                 # Print a profile that would allow what was denied
    --json                    # Print one JSON object instead of text
    --help(-h)                # Print help (see more with '--help')
  ]

  # Check the chain of an audit record
  export extern "confine verify" [
    --expect: string          # A line with this hash must be in the record
    --json                    # Print one JSON object instead of text
    --help(-h)                # Print help (see more with '--help')
    file?: path               # The record that --audit wrote
  ]

  def "nu-complete confine why hardlinks" [] {
    [ "reject" "protect" ]
  }

  def "nu-complete confine why git" [] {
    [ "guard" "read-only" "free" ]
  }

  def "nu-complete confine why net" [] {
    [ "none" "host" ]
  }

  def "nu-complete confine why loopback" [] {
    [ "private" "off" "host" ]
  }

  def "nu-complete confine why on-output-limit" [] {
    [ "truncate" "kill" ]
  }

  def "nu-complete confine why require" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine why waive" [] {
    [ "write-scope" "metadata-scope" "read-scope" "path-hiding" "alias-free" "network-scope" "socket-scope" "process-scope" "process-hiding" "no-gain" "clean-start" "ceilings" "teardown" ]
  }

  def "nu-complete confine why allow" [] {
    [ "broad-workspace" "userns" "unix-datagram" ]
  }

  def "nu-complete confine why namespaces" [] {
    [ "auto" "off" ]
  }

  def "nu-complete confine why profile" [] {
    [ "workspace-write" "read-only" "build" "dev-server" "kernel" "mcp" "strict" ]
  }

  def "nu-complete confine why result" [] {
    [ "json" ]
  }

  # Tell what is visible, writable, reachable or passed, and why
  export extern "confine why" [
    --workspace(-w): directory # A directory that COMMAND may change; never guessed
    --no-workspace            # Give COMMAND no workspace: it starts in its private HOME
    --chdir(-C): directory    # Start COMMAND in this directory
    --read-only               # Show the workspaces read-only
    --hardlinks: string@"nu-complete confine why hardlinks" # What to do about files that have a name outside the workspace too
    --git: string@"nu-complete confine why git" # How to treat .git and other files that run later by themselves
    --state: directory        # Keep HOME, /tmp and changes of caches here from one run to the next
    --ro: path                # Let COMMAND read (and execute) this file or directory
    --rw: path                # Let COMMAND change this file or directory
    --hide: path              # Hide this file or directory from COMMAND
    --seal: path              # Let COMMAND read this directory, apart from its sockets, FIFOs and locks
    --no-toolchains           # Do not show the toolchains and caches that PATH leads to
    --net: string@"nu-complete confine why net" # Which network COMMAND has
    --loopback: string@"nu-complete confine why loopback" # Which loopback COMMAND has while --net is none
    --listen: string          # Let COMMAND accept TCP connections from outside at this port
    --connect: string         # Let COMMAND connect to this TCP port of any host
    --env: string             # Pass one variable on, or set it
    --env-file: path          # Set variables from a file that only you can read, or a pipe
    --clear-env               # Pass no variable on but the least that programs need
    --fd: string              # Pass this descriptor on besides 0, 1 and 2
    --user: string            # Run COMMAND as this user, without further groups (for root)
    --max-procs: string       # Most processes and threads at one time, of the whole tree
    --max-memory: string      # Most memory of the whole tree, page cache and private /tmp included
    --max-tmp: string         # Most that private /tmp and HOME hold together, for the whole tree
    --max-disk: string        # Most that the file systems of writable roots may lose meanwhile
    --max-output: string      # Most that the whole tree may write to each of stdout and stderr
    --on-output-limit: string@"nu-complete confine why on-output-limit" # What happens at --max-output
    --max-cpu: string         # Most processor time of the whole tree
    --max-file-size: string   # Largest file that each process may write
    --max-open-files: string  # Most descriptors that each process may hold
    --timeout: string         # End the whole tree after this time; the exit status is then 124
    --grace: string           # How long the tree may take to end after TERM
    --require: string@"nu-complete confine why require" # Refuse to start unless this promise can be kept
    --waive: string@"nu-complete confine why waive" # Start even where this host cannot keep this promise
    --strict                  # Require every promise
    --allow: string@"nu-complete confine why allow" # Allow something that is refused by default
    --namespaces: string@"nu-complete confine why namespaces" # Whether to build the boundary with namespaces
    --profile: string@"nu-complete confine why profile" # Take what is not said here from this profile
    --policy: path            # Take what is not said here from this file
    --status-fd: string       # Write JSON lines about start and end to this descriptor
    --result: string@"nu-complete confine why result" # Write one JSON object with outcome, output and resource use at the end
    --audit: path             # Append one JSON line for every decision to this file
    --kernel-log              # Let Landlock write what it denies to the kernel's audit log
    --verbose(-v)             # Say on standard error how the promises are kept
    --json                    # Print one JSON object instead of text
    --help(-h)                # Print help (see more with '--help')
    ...subject: path          # A path, HOST:PORT, @ABSTRACT, or NAME= for a variable; a name with a slash is a path
  ]

}

export use completions *
