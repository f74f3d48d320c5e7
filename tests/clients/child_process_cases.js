// node's child_process starts confined commands. A case is a function; each runs outside.
'use strict';
const assert = require('node:assert');
const { exec, execFile, execFileSync, fork, spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { once } = require('node:events');
const { promisify } = require('node:util');

const CONFINE = JSON.parse(process.env.CONFINE_WORDS);
// Without namespaces a parent stays, and for --strict.
const PARENT = process.env.MODE !== 'ordinary';
const MARK = process.env.MARK;

const words = (...command) => [...CONFINE.slice(1), '--', ...command];
const start = (command, options) => spawn(CONFINE[0], words(...command), options);
const line = (...command) => [...CONFINE, '--', ...command].join(' ');

// How the end by a signal looks: the command is the process itself, unless a parent had to stay.
const death = name => (PARENT ? [128 + os.constants.signals[name], null] : [null, name]);

const pause = time => new Promise(done => setTimeout(done, time));

function marked() {
  return fs.readdirSync('/proc').filter(name => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const [program, argument] = fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      return program === 'sleep' && argument === MARK;
    } catch { return false; }
  }).map(Number);
}

async function until(what, holds, seconds = 20) {
  const end = Date.now() + seconds * 1000;
  while (!holds()) {
    assert(Date.now() < end, `never came: ${what}`);
    await pause(10);
  }
}
const gone = () => until('the end of all that was started', () => marked().length === 0);

async function firstLine(child) {
  let seen = '';
  child.stdout.setEncoding('utf8');
  while (!seen.includes('\n')) seen += (await once(child.stdout, 'data'))[0];
  return seen;
}

const cases = {
  async streams() {
    const child = start(['bash', '-c', 'cat; echo aside >&2; exit 7']);
    const data = Buffer.alloc(1 << 20, 'x');
    const out = [], err = [];
    child.stdout.on('data', chunk => out.push(chunk));
    child.stderr.on('data', chunk => err.push(chunk));
    child.stdin.end(data);
    const [code] = await once(child, 'close');
    assert(Buffer.concat(out).equals(data));
    assert.deepStrictEqual([Buffer.concat(err).toString(), code], ['aside\n', 7]);
  },

  async lines_to_and_fro() {
    const child = start(['node', '-e', `
      require('readline').createInterface({ input: process.stdin }).on('line', text => console.log(JSON.parse(text).n * 2))`]);
    for (let n = 1; n < 100; n++) {
      child.stdin.write(JSON.stringify({ n }) + '\n');
      assert.strictEqual(await firstLine(child), `${n * 2}\n`);
    }
    child.stdin.end();
    assert.deepStrictEqual(await once(child, 'close'), [0, null]);
  },

  async synchronous_and_shell() {
    const done = spawnSync(CONFINE[0], words('sh', '-c', 'cat; exit 3'), { input: 'words' });
    assert.deepStrictEqual([done.stdout.toString(), done.status, done.signal], ['words', 3, null]);
    assert.strictEqual(execFileSync(CONFINE[0], words('echo', 'a b'), { encoding: 'utf8' }), 'a b\n');
    const { stdout } = await promisify(exec)(line('sh', '-c', `'echo $CONFINE'`));
    assert.strictEqual(stdout, '1\n');
    // As agents do it: one string, by a shell of their choice, inside.
    const child = spawn(line('bash', '-c', `'echo $0 | tr a-z A-Z'`), { shell: '/bin/bash' });
    assert.strictEqual(await firstLine(child), 'BASH\n');
    await assert.rejects(promisify(execFile)(CONFINE[0], words('false')), { code: 1 });
  },

  async detached_and_its_group_killed() {
    const child = start(['bash', '-c', `sleep ${MARK} & sleep ${MARK} & echo up; wait`], { detached: true });
    assert.strictEqual(await firstLine(child), 'up\n');
    await until('two sleepers', () => marked().length === 2);
    const closed = once(child, 'close');
    process.kill(-child.pid, 'SIGTERM');
    assert.deepStrictEqual(await closed, death('SIGTERM'));
    await gone();
  },

  async detached_in_the_background() {
    const log = path.join(process.env.SCRATCH, 'outside', 'log');
    const out = fs.openSync(log, 'w');
    const child = start(['bash', '-c', `echo started; exec sleep ${MARK}`], { detached: true, stdio: ['ignore', out, out] });
    child.unref();
    await until('a line in the log', () => fs.readFileSync(log, 'utf8') === 'started\n');
    await until('a sleeper', () => marked().length === 1);
    process.kill(-child.pid, 'SIGKILL');
    await gone();
  },

  async kill_timeout_and_abort() {
    let child = start(['sleep', MARK]);
    await until('a sleeper', () => marked().length === 1);
    child.kill();
    assert.deepStrictEqual(await once(child, 'close'), death('SIGTERM'));
    await gone();
    const begin = Date.now();
    child = start(['sleep', MARK], { timeout: 1500 });
    assert.deepStrictEqual(await once(child, 'close'), death('SIGTERM'));
    assert(Date.now() - begin < 20000);
    await gone();
    const abort = new AbortController();
    child = start(['sleep', MARK], { signal: abort.signal, killSignal: 'SIGKILL' });
    await until('a sleeper', () => marked().length === 1);
    const failed = once(child, 'error').catch(error => error);
    const closed = new Promise(done => child.on('close', (code, signal) => done([code, signal])));
    abort.abort();
    await failed;
    assert.deepStrictEqual(await closed, [null, 'SIGKILL']);
    await gone();
  },

  async interrupt_is_handled_inside() {
    const child = start(['node', '-e', `
      process.on('SIGINT', () => { console.log('interrupted'); process.exitCode = 3; clearInterval(timer); });
      const timer = setInterval(() => {}, 1000); console.log('up')`]);
    assert.strictEqual(await firstLine(child), 'up\n');
    child.kill('SIGINT');
    assert.strictEqual(await firstLine(child), 'interrupted\n');
    assert.deepStrictEqual(await once(child, 'close'), [3, null]);
  },

  // fork(): a channel over a UNIX stream, which is handed on by number. What comes over it can carry descriptors.
  async a_channel_that_is_named() {
    const script = path.join(process.cwd(), 'answer.js');
    fs.writeFileSync(script, `process.on('message', n => { process.send(n * 2); process.disconnect(); })`);
    const child = fork(script, [], {
      execPath: CONFINE[0],
      execArgv: [...CONFINE.slice(1), '--fd', '3', '--env', 'NODE_CHANNEL_FD', '--env', 'NODE_CHANNEL_SERIALIZATION_MODE', '--', 'node'],
    });
    child.send(21);
    assert.deepStrictEqual((await once(child, 'message'))[0], 42);
    assert.deepStrictEqual(await once(child, 'close'), [0, null]);
  },

  async many_at_once() {
    const said = await Promise.all([...Array(20).keys()].map(async n => {
      const { stdout } = await promisify(execFile)(CONFINE[0], words('echo', String(n)));
      return Number(stdout);
    }));
    assert.deepStrictEqual(said, [...Array(20).keys()]);
  },

  // node-pty: what editors and agents give a terminal with.
  async pty_interact() {
    const terminal = shell({ cols: 90, rows: 30 });
    await terminal.see('ready> ');
    terminal.write('stty size; test -t 0 && echo sum-$((20+22))\r');
    assert.match(await terminal.see('sum-42'), /30 90/);
    terminal.write('exit 9\r');
    assert.deepStrictEqual(await terminal.end, { exitCode: 9, signal: 0 });
    assert(!terminal.all().includes('no job control'));
  },

  async pty_interrupt() {
    const terminal = shell({});
    await terminal.see('ready> ');
    for (const [key, status] of [['\x03', 130], ['\x1c', 131]]) {
      terminal.write(`sleep ${MARK}\r`);
      await until('a sleeper', () => marked().length === 1);
      await pause(300);
      terminal.write(key);
      await terminal.see('ready> ');
      await gone();
      terminal.write('echo status-$?\r');
      await terminal.see(`status-${status}`);
    }
    terminal.write('exit 0\r');
    assert.strictEqual((await terminal.end).exitCode, 0);
  },

  async pty_resize() {
    const terminal = shell({ cols: 80, rows: 24 });
    await terminal.see('ready> ');
    terminal.write(`trap 'echo resized-$((10+1))' WINCH; echo set-$((1+1))\r`);
    await terminal.see('set-2');
    terminal.resize(133, 41);
    terminal.write('\r');
    await terminal.see('resized-11');
    terminal.write('stty size\r');
    await terminal.see('41 133');
    terminal.write('exit 0\r');
    assert.strictEqual((await terminal.end).exitCode, 0);
  },

  async pty_terminate() {
    // SIGHUP to the process, as when a window is closed.
    let terminal = shell({});
    await terminal.see('ready> ');
    terminal.write(`sleep ${MARK}\r`);
    await until('a sleeper', () => marked().length === 1);
    terminal.kill();
    await terminal.end;
    await gone();
    terminal = shell({});
    await terminal.see('ready> ');
    terminal.write(`sleep ${MARK}\r`);
    await until('a sleeper', () => marked().length === 1);
    terminal.kill('SIGKILL');
    assert.strictEqual((await terminal.end).signal, 9);
    // Closing the other side hangs up what was left at the terminal.
    terminal.destroy();
    await gone();
  },
};

function shell(size) {
  const pty = require('node-pty');
  const bash = ['bash', '--norc', '--noprofile', '--noediting', '-i'];
  const child = pty.spawn(CONFINE[0], [...CONFINE.slice(1), '--env', 'PS1=ready> ', '--', ...bash], { name: 'xterm', ...size });
  let seen = '', from = 0;
  child.onData(data => { seen += data; });
  return {
    write: data => child.write(data),
    resize: (cols, rows) => child.resize(cols, rows),
    kill: signal => child.kill(signal),
    destroy: () => child.destroy(),
    all: () => seen,
    end: new Promise(done => child.onExit(done)),
    async see(text) {
      const begin = from;
      await until(`${text} in ${seen.slice(begin)}`, () => seen.indexOf(text, from) >= 0);
      from = seen.indexOf(text, from) + text.length;
      return seen.slice(begin, from);
    },
  };
}

module.exports = { cases };

if (require.main === module) {
  const name = process.argv[2];
  cases[name]().then(() => { console.log(`${name} ok`); process.exit(0); },
    error => { console.error(error); process.exit(1); });
}
