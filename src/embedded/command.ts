// Runs one of PostgreSQL's programs and waits for its end. The program gets its own session, so that a Ctrl-C in the
// terminal doesn't reach it. For root it runs as the unprivileged account that owns the cluster.
import { spawn } from 'node:child_process'

/** The account that a program runs as. */
export interface Account {
  uid: number
  gid: number
}

interface Ended {
  code: number
  /** The last 4,000 characters of standard output and standard error. */
  output: string
}

/** Runs the program and resolves when it has ended. `code` is 127 if the program could not be started. */
export function run(program: string, args: string[], account: Account | undefined): Promise<Ended> {
  return new Promise(resolve => {
    const child = spawn(program, args, {
      cwd: '/',
      detached: true,
      // The program gets none of this process's environment: PGDATA, PGOPTIONS or LD_LIBRARY_PATH would change the
      // server.
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
