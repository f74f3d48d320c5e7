//! Servers and their clients on the private loopback, and databases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use std::fs;
use std::path::PathBuf;

use common::{Run, Scratch, USER, Who};
use programs::{for_everyone, named, need, works};

fn postgres() -> PathBuf {
    need(&["psql"]);
    let versions =
        fs::read_dir("/usr/lib/postgresql").expect("initdb is missing: apt-get install postgresql");
    let found =
        versions.map(|entry| entry.unwrap().path().join("bin")).find(|bin| bin.join("initdb").exists());
    found.expect("initdb is missing: apt-get install postgresql")
}

/// Tables, a query over TCP and one over a socket in the workspace, parallel workers (their shared memory and semaphores).
const DATABASE: &str = r#"set -eu
initdb -D data -A trust -N >initdb.log 2>&1 || { cat initdb.log; exit 1; }
pg_ctl -s -w -D data -l log -o "-p 5432 -k $PWD -c fsync=off" start || { cat log; exit 1; }
psql -h localhost -d postgres -qAtc 'create table t as select generate_series(1, 1000) n; create index on t(n)'
psql -h 127.0.0.1 -d postgres -Atc 'select sum(n) from t'
psql -h "$PWD" -d postgres -Atc "set force_parallel_mode = on; select count(*) from t where n > 500" 
psql -h "$PWD" -d postgres -qc "copy t to '$PWD/copy'"; wc -l < copy
pg_ctl -s -w -D data stop
"#;

fn database(run: Run) -> Run {
    let path = std::env::var("PATH").unwrap();
    run.env("PATH", format!("{}:{path}", postgres().display()))
}

#[test]
fn postgres_starts_answers_and_stops_for_a_user() {
    let scratch = Scratch::new(Who::User);
    let outcome = database(named(&scratch, Run::confined(&scratch))).shell(DATABASE);
    assert!(outcome.ok() && outcome.out == "500500\nSET\n500\n1000\n", "{}", outcome.tell());
}

#[test]
fn root_hands_a_database_to_another_user() {
    let scratch = Scratch::new(Who::User);
    let root = Scratch::new(Who::Root);
    // The command of root; workspace and HOME of the user.
    let run = Run::bare(&root)
        .options(["--user", &format!("{USER}")])
        .option("--workspace")
        .option(scratch.workspace());
    let passwd =
        scratch.file("passwd", &format!("tester:x:{USER}:{USER}::{}:/bin/bash\n", scratch.home().display()));
    let run = programs::bound(Who::Root, run.cwd(scratch.workspace()), &[(&passwd, "/etc/passwd".as_ref())]);
    let outcome =
        database(run).shell(format!("test \"$HOME\" = '{}'\nid -un; {DATABASE}", scratch.home().display()));
    assert!(outcome.ok() && outcome.out == "tester\n500500\nSET\n500\n1000\n", "{}", outcome.tell());
}

#[test]
fn redis_answers_and_saves() {
    need(&["redis-server"]);
    for_everyone(|scratch| {
        let script = r#"redis-server --port 6379 --unixsocket "$PWD/socket" --dir "$PWD" > log 2>&1 &
            for i in $(seq 100); do redis-cli ping >/dev/null 2>&1 && break; sleep 0.05; done
            redis-cli set key value; redis-cli -s socket get key; redis-cli save; redis-cli bgsave >/dev/null
            sleep 0.2; redis-cli shutdown nosave; wait; test -s dump.rdb"#;
        assert_eq!(works(scratch, script), "OK\nvalue\nOK\n");
    });
}

#[test]
fn a_server_and_its_clients_meet_on_the_loopback() {
    need(&["/usr/bin/python3", "curl"]);
    for_everyone(|scratch| {
        scratch.file("w/page", "the page\n");
        let script = r#"/usr/bin/python3 -m http.server -b 127.0.0.1 8000 2>/dev/null &
            /usr/bin/python3 -m http.server -b ::1 8001 2>/dev/null &
            for url in http://127.0.0.1:8000 http://localhost:8000 'http://[::1]:8001'; do
                curl -sg --max-time 10 --retry 20 --retry-delay 0 --retry-connrefused --retry-max-time 10 "$url/page"
            done
            curl -s --max-time 5 http://127.0.0.1:9/ || echo "refused $?"
            curl -s --max-time 5 http://name.example/ || echo "no name $?"
            curl -s --max-time 5 http://192.0.2.1/ || echo "no way $?"
            kill %1 %2"#;
        let out = works(scratch, script);
        assert_eq!(out, format!("{}refused 7\nno name 6\nno way 7\n", "the page\n".repeat(3)));
    });
}

#[test]
fn servers_outside_are_not_met() {
    need(&["curl"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for_everyone(|scratch| {
        let url = format!("http://127.0.0.1:{port}/");
        let inside = Run::confined(scratch).command(["curl", "-s", "--max-time", "5", &url]).run();
        assert_eq!(inside.code(), Some(7), "{}", inside.tell());
        let outside = Run::plain(scratch).command(["curl", "-s", "--max-time", "1", &url]).run();
        assert_eq!(outside.code(), Some(28), "it listens and does not answer: {}", outside.tell());
    });
}
