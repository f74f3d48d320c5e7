use super::super::advice::Advice;
use super::*;

fn denial(operation: &'static str, path: &str, advice: Advice) -> Denial {
    Denial { operation, object: Object::Path(path.into()), layer: "view: not visible", advice }
}

fn told(list: Vec<Denial>) -> Told {
    let mut told = Told::default();
    list.into_iter().for_each(|denial| told.add(denial));
    told
}

#[test]
fn a_denial_is_listed_once() {
    let read = || denial("read", "/a", Advice::grant(Grant::Ro("/a".into())));
    let told = told(vec![read(), read(), denial("write", "/a", Advice::nothing("no option"))]);
    assert_eq!(
        told.text(&Trace::default()),
        "confine: 2 things were denied\n  read '/a'  (view: not visible)\n      --ro /a\n  write '/a'  (view: not \
         visible)\n      no option\n"
    );
}

#[test]
fn a_profile_has_no_path_below_another_and_nothing_doubtful_in_force() {
    let grant = |grant| denial("read", "/x", Advice::grant(grant));
    let mut number = 0;
    let mut each = |mut one: Denial| {
        number += 1;
        one.object = Object::Words(number.to_string());
        one
    };
    let list = vec![
        each(grant(Grant::Ro("/a/b".into()))),
        each(grant(Grant::Ro("/a".into()))),
        each(grant(Grant::Rw("/w".into()))),
        each(grant(Grant::Ro("/w/below".into()))),
        each(grant(Grant::Rw("/w/below".into()))),
        each(grant(Grant::Ro("/\"\n\u{202e}é".into()))),
        each(grant(Grant::Connect(443))),
        each(grant(Grant::Connect(53))),
        each(grant(Grant::Net)),
        each(denial("read", "/x", Advice::grant(Grant::Ro("/k".into())).but("credentials"))),
        each(denial("read", "/x", Advice::nothing("no option"))),
    ];
    let text = told(list).text(&Trace { suggest: true, json: false });
    assert_eq!(
        text,
        "# What the traced command was denied. Read every line before you keep it.\nro = [\n    \
         \"/\\\"\\U0000000A\\U0000202Eé\",\n    \"/a\",\n]\nrw = [\n    \"/w\",\n]\nconnect = [53, 443]\n# net = \
         \"host\"  # all of the host's network, its local services included\n# read 11: no option\n# ro = [\"/k\"]  # \
         credentials\n"
    );
}

#[test]
fn the_list_has_an_end() {
    let list = (0..MOST + 3).map(|n| denial("read", &format!("/{n}"), Advice::nothing("no"))).collect();
    let told = told(list);
    assert_eq!((told.list.len(), told.more), (MOST, 3));
}
