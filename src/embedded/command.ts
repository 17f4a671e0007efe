// Runs one of PostgreSQL's programs to its end, in its own session (so that a Ctrl-C in the terminal doesn't reach it)
// and, for root, as the unprivileged account that owns the cluster. It doesn't keep processes running.
import { spawn } from 'node:child_process'

/** The account that a program runs as. */
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
      // Nothing of this process's environment: PGDATA, PGOPTIONS or LD_LIBRARY_PATH would change the server.
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
