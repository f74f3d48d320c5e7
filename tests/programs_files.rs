//! Programs that make, copy and describe files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use std::os::unix::fs::MetadataExt as _;

use common::Run;
use programs::{for_everyone, named, need, works};

#[test]
fn archives_and_copies_keep_modes_times_and_links() {
    need(&["tar", "rsync"]);
    for_everyone(|scratch| {
        let script = r#"mkdir -p from/deep; echo x > from/file; ln -s file from/link; ln from/file from/hard; mkfifo from/pipe
            truncate -s 1M from/sparse; touch -d 2001-02-03T04:05:06.789 from/file; chmod 751 from/file; chmod 2770 from/deep
            chmod 1777 from; touch -h -d 2002-02-02 from/link; setfattr -n user.kept -v kept from/file 2>/dev/null || true
            tar --xattrs -C from -cpf archive . ; mkdir tar rsync cp; tar --xattrs -C tar -xpf archive; rsync -aHX from/ rsync/; cp -a from/. cp/
            list() { (cd "$1"; find . -mindepth 1 -printf '%P %m %n %l %y %s %TY-%Tm-%Td %TH:%TM\n' | sort); }
            list from > want; for copy in tar rsync cp; do list $copy > got; diff want got; done
            stat -c '%a %y' rsync/file; rsync -aHX --delete --itemize-changes from/ rsync/; rm from/pipe; rsync -a --delete from/ rsync/; ls rsync | wc -l"#;
        let out = works(scratch, script);
        assert_eq!(out, "751 2001-02-03 04:05:06.789000000 +0000\n5\n", "{out}");
        let made = scratch.path("w/rsync/file").metadata().unwrap();
        assert_eq!(
            (made.uid(), made.gid()),
            (scratch.who.id(), scratch.who.id()),
            "files belong to the caller"
        );
    });
}

#[test]
fn keys_and_certificates_are_made() {
    need(&["ssh", "openssl"]);
    for_everyone(|scratch| {
        let script = r#"set -eu; mkdir -p -m 700 ~/.ssh; ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id; ssh-keygen -lf ~/.ssh/id.pub | cut -d' ' -f1,4
            ssh-keygen -q -t ed25519 -N '' -C here -f key; echo text > text; ssh-keygen -q -Y sign -f key -n file text 2>/dev/null
            echo "me $(cat key.pub)" > allowed; ssh-keygen -q -Y verify -f allowed -I me -n file -s text.sig < text > /dev/null
            openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.crt -subj /CN=localhost -days 2 2>/dev/null
            openssl verify -CAfile tls.crt tls.crt; openssl rand -hex 8 | wc -c; stat -c %a key"#;
        let outcome = named(scratch, Run::confined(scratch)).shell(script);
        assert!(outcome.ok() && outcome.out == "256 (ED25519)\ntls.crt: OK\n17\n600\n", "{}", outcome.tell());
        assert!(!scratch.path("home/.ssh/id.pub").exists(), "HOME was not private");
    });
}

#[test]
fn an_openssl_server_and_client_shake_hands() {
    need(&["openssl"]);
    for_everyone(|scratch| {
        let script = r#"openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -subj /CN=localhost -days 2 2>/dev/null
            openssl s_server -accept 4433 -key k -cert c -www -quiet & sleep 0.3
            for i in $(seq 50); do printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -connect localhost:4433 -CAfile c -verify_return_error -quiet 2>/dev/null | grep -q 'HTTP/1.0 200' && echo shaken && break; sleep 0.1; done
            kill %1"#;
        assert_eq!(works(scratch, script), "shaken\n");
    });
}

#[test]
fn shells_keep_here_documents_somewhere() {
    need(&["zsh"]);
    for_everyone(|scratch| {
        for shell in ["zsh -f", "zsh", "bash", "sh"] {
            let script = format!("cat > script <<'END'\ncat <<X\nhere $((1+1))\nX\nEND\n{shell} script");
            let out = works(scratch, &script);
            assert_eq!(out, "here 2\n", "{shell}");
        }
        let zsh = "zsh -fc 'cat =(print -n kept); [[ -w $TMPPREFIX:h ]] && print \" writable\"'";
        assert_eq!(works(scratch, zsh), "kept writable\n");
    });
}
