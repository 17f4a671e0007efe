// Runs one of PostgreSQL's programs to its end, in a session of its own (a Ctrl-C in our terminal isn't theirs) and,
// where we are root, as the unprivileged account that owns the cluster. It isn't a way to keep a process.
import { spawn } from 'node:child_process'

/** Whom a program runs as. */
export interface Account {
  uid: number
  gid: number
}

interface Ended {
  code: number
  /** The last 4,000 characters of both streams. */
  output: string
}

/** `code` is 127 where the program could not be started at all. */
export function run(program: string, args: string[], account: Account | undefined): Promise<Ended> {
  return new Promise(resolve => {
    const child = spawn(program, args, {
      cwd: '/',
      detached: true,
      // Nothing of our environment: PGDATA, PGOPTIONS or LD_LIBRARY_PATH would steer the server elsewhere.
      env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(account ? { uid: account.uid, gid: account.gid } : {}),
    })
    let output = ''
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString('utf8')).slice(-4000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.on('error', error => resolve({ code: 127, output: error.message }))
    child.on('close', code => resolve({ code: code ?? 1, output: output.trim() }))
  })
}
