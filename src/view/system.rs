//! The system's own trees: which exist inside, which parts of them do not, and why. Tables only.

/// Shown read-only (and executable) where they exist. A row that is a symbolic link on this host is the same
/// link inside, and what it leads to is shown too.
pub const READABLE: &[(&str, &str)] = &[
    ("/usr", "programs, libraries and their data"),
    ("/bin", "programs; a link into /usr on merged systems"),
    ("/sbin", "programs; a link into /usr on merged systems"),
    ("/lib", "libraries and the dynamic loader"),
    ("/lib32", "libraries of the 32-bit architecture"),
    ("/lib64", "the dynamic loader of 64-bit architectures"),
    ("/libx32", "libraries of the x32 architecture"),
    ("/opt", "add-on software"),
    ("/etc", "configuration that programs read at start"),
    ("/nix/store", "programs on NixOS and under Nix"),
    ("/gnu/store", "programs under Guix"),
    ("/run/current-system", "the system profile on NixOS and Guix"),
    ("/var/lib/dpkg", "dpkg -S and the like read it"),
    ("/var/lib/rpm", "rpm -q reads it"),
    ("/var/cache/fontconfig", "or every program with text rebuilds it"),
];

/// Links that programs have come to rely on; made only where the host has the same one.
pub const LINKS: &[(&str, &str)] = &[
    ("/var/run", "older programs look for run-time files here"),
    ("/var/lock", "older programs look for lock files here"),
];

/// Files whose target often lies outside the trees above; what they resolve to is shown read-only.
pub const RESOLVED: &[(&str, &str)] = &[
    ("/etc/resolv.conf", "name servers; a link into /run under systemd-resolved"),
    ("/etc/localtime", "the time zone"),
    ("/etc/ssl/certs/ca-certificates.crt", "CA bundle of Debian, Alpine and Arch"),
    ("/etc/ssl/cert.pem", "CA bundle of Alpine and OpenSSL's default"),
    ("/etc/pki/tls/certs/ca-bundle.crt", "CA bundle of Fedora and openSUSE"),
];

/// Variables that name a CA file or directory: passed on, and what they name is shown read-only.
pub const CA_VARIABLES: &[&str] = &[
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "NIX_SSL_CERT_FILE",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

/// Never readable, whoever asks. Covered where the caller's identity could read them: elsewhere the file's own
/// mode keeps refusing, since nothing inside gains a right.
pub const HIDDEN: &[(&str, &str)] = &[
    ("/etc/shadow", "password hashes"),
    ("/etc/shadow-", "password hashes, backup"),
    ("/etc/gshadow", "group password hashes"),
    ("/etc/gshadow-", "group password hashes, backup"),
    ("/etc/security/opasswd", "old password hashes"),
    ("/etc/sudoers", "who may become whom"),
    ("/etc/sudoers.d", "who may become whom"),
    ("/etc/doas.conf", "who may become whom"),
    ("/etc/krb5.keytab", "Kerberos keys"),
    ("/etc/ssl/private", "private keys"),
    ("/etc/pki/tls/private", "private keys"),
    ("/etc/letsencrypt/archive", "private keys"),
    ("/etc/letsencrypt/live", "private keys"),
    ("/etc/wireguard", "private keys of tunnels"),
    ("/etc/openvpn", "private keys of tunnels"),
    ("/etc/ipsec.secrets", "keys of tunnels"),
    ("/etc/ipsec.d/private", "keys of tunnels"),
    ("/etc/ppp/chap-secrets", "dial-up passwords"),
    ("/etc/ppp/pap-secrets", "dial-up passwords"),
    ("/etc/NetworkManager/system-connections", "wireless and VPN passwords"),
    ("/etc/wpa_supplicant", "wireless passwords"),
    ("/etc/iwd", "wireless passwords"),
    ("/etc/cryptsetup-keys.d", "disk keys"),
    ("/etc/msmtprc", "mail passwords"),
    ("/etc/mysql/debian.cnf", "a database administrator's password"),
    ("/etc/rancher", "cluster credentials"),
    ("/etc/kubernetes/admin.conf", "cluster credentials"),
    ("/etc/kubernetes/pki", "cluster credentials"),
    ("/etc/docker/key.json", "a daemon's identity"),
];

/// ssh refuses configuration whose owner it does not know, and inside a user namespace root is unknown: it is
/// shown as a private copy that belongs to the caller. Host keys are not copied.
pub const SSH: &str = "/etc/ssh";

/// Parts of /proc that uid 0 could read without a capability.
pub const PROC_HIDDEN: &[(&str, &str)] = &[
    ("/proc/kcore", "the kernel's memory"),
    ("/proc/kpagecount", "physical memory"),
    ("/proc/kpageflags", "physical memory"),
    ("/proc/kpagecgroup", "physical memory"),
    ("/proc/slabinfo", "the kernel's heap"),
    ("/proc/keys", "names of keys of others"),
    ("/proc/key-users", "names of keys of others"),
    ("/proc/kallsyms", "kernel addresses"),
    ("/proc/kmsg", "the kernel's log"),
    ("/proc/vmallocinfo", "kernel addresses"),
    ("/proc/timer_list", "kernel addresses"),
    ("/proc/iomem", "physical addresses"),
    ("/proc/ioports", "physical addresses"),
    ("/proc/pagetypeinfo", "physical memory"),
    ("/proc/sys/kernel/cad_pid", "a setting that only root reads"),
    ("/proc/sys/kernel/usermodehelper/bset", "a setting that only root reads"),
    ("/proc/sys/kernel/usermodehelper/inheritable", "a setting that only root reads"),
    ("/proc/sys/vm/mmap_rnd_bits", "how far addresses are spread"),
    ("/proc/sys/vm/mmap_rnd_compat_bits", "how far addresses are spread"),
    ("/proc/sys/vm/stat_refresh", "reading it acts"),
    ("/proc/sys/fs/protected_fifos", "a setting that only root reads"),
    ("/proc/sys/fs/protected_hardlinks", "a setting that only root reads"),
    ("/proc/sys/fs/protected_regular", "a setting that only root reads"),
    ("/proc/sys/fs/protected_symlinks", "a setting that only root reads"),
];

/// The same of the host's network, where that is used. Each interface has a secret besides.
pub const NET_HIDDEN: &[(&str, &str)] = &[
    ("/proc/sys/net/ipv4/tcp_fastopen_key", "a key"),
    ("/proc/sys/net/core/bpf_jit_harden", "a setting that only root reads"),
    ("/proc/sys/net/core/bpf_jit_kallsyms", "a setting that only root reads"),
    ("/proc/sys/net/core/bpf_jit_limit", "a setting that only root reads"),
];
pub const NET_INTERFACES: &str = "/proc/sys/net/ipv6/conf";
pub const NET_SECRET: &str = "stable_secret";

/// What uid 0 reads of /sys, besides names: there root's own files are too many to be covered (7000 on a small
/// machine), and to read one of them can act. Of processors what a program asks to fit itself to the machine.
pub const SYS_READABLE: &[(&str, &str)] = &[
    ("/sys/devices/system/cpu", "processors: lscpu, nproc, allocators, runtimes"),
    ("/sys/devices/system/node", "memory by node: numactl, hwloc, allocators"),
    ("/sys/devices/system/clocksource", "the clock: runtimes"),
    ("/sys/devices/virtual/net", "loopback and the like; /sys/class/net leads there"),
    ("/sys/kernel/mm/hugepages", "large pages: databases, allocators, the JVM"),
    ("/sys/kernel/mm/transparent_hugepage", "large pages: allocators, the JVM, Go"),
];

/// Root's own files in there: in each directory of this name and a number.
pub const SYS_ROOTS_OWN: &[(&str, &str, &str)] = &[
    ("/sys/devices/system/cpu", "cpu", "topology/ppin"),
    ("/sys/devices/system/cpu", "cpu", "crash_notes"),
    ("/sys/devices/system/cpu", "cpu", "crash_notes_size"),
    ("/sys/devices/system/cpu/cpufreq", "policy", "cpuinfo_cur_freq"),
];

/// Parts of /sys that are file systems of their own; covered where a new sysfs cannot be had.
pub const SYS_HIDDEN: &[(&str, &str)] = &[
    ("/sys/kernel/debug", "kernel debugging"),
    ("/sys/kernel/tracing", "kernel tracing"),
    ("/sys/fs/bpf", "pinned BPF objects"),
    ("/sys/fs/pstore", "crash logs"),
    ("/sys/fs/cgroup", "control groups of the host"),
    ("/sys/firmware/efi/efivars", "firmware variables"),
];

/// Device nodes of the private /dev.
pub const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// Links of the private /dev.
pub const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// A workspace at one of these, or above one, would hand over more than a project.
pub const BROAD: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
    "/var/lib",
    "/var/tmp",
];

/// Kernel interfaces: nothing at or beneath them is ever a workspace.
pub const KERNEL: &[&str] = &["/dev", "/proc", "/sys"];

/// In a home directory; hidden when the home directory itself was made visible on purpose.
pub const CREDENTIALS: &[(&str, &str)] = &[
    (".ssh", "keys"),
    (".gnupg", "keys"),
    (".aws", "cloud credentials"),
    (".azure", "cloud credentials"),
    (".config/gcloud", "cloud credentials"),
    (".config/doctl", "cloud credentials"),
    (".kube", "cluster credentials"),
    (".docker", "registry credentials"),
    (".config/containers", "registry credentials"),
    (".netrc", "passwords"),
    (".authinfo", "passwords"),
    (".git-credentials", "passwords"),
    (".config/git/credentials", "passwords"),
    (".npmrc", "registry tokens"),
    (".yarnrc.yml", "registry tokens"),
    (".pypirc", "registry tokens"),
    (".cargo/credentials", "registry tokens"),
    (".cargo/credentials.toml", "registry tokens"),
    (".config/gh", "forge tokens"),
    (".config/glab-cli", "forge tokens"),
    (".config/hub", "forge tokens"),
    (".password-store", "passwords"),
    (".local/share/keyrings", "passwords"),
    (".pki", "keys"),
    (".pgpass", "passwords"),
    (".my.cnf", "passwords"),
    (".mozilla", "browser sessions"),
    (".config/google-chrome", "browser sessions"),
    (".config/chromium", "browser sessions"),
    (".bash_history", "what was typed"),
    (".zsh_history", "what was typed"),
    (".terraform.d/credentials.tfrc.json", "cloud credentials"),
    (".vault-token", "tokens"),
    (".claude/.credentials.json", "an agent's credentials"),
    (".codex/auth.json", "an agent's credentials"),
];
