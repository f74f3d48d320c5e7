# By hand: what options take, the user's own profiles, and after `--` the line of another command, which has its own completion.
var confine-values = [
@VALUES@
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
