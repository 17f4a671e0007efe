// HTTP roles as children of `start`: each runs in its own process, so that nothing else in `start` delays it, and is
// started again if it dies after it has served.
import { type ChildProcess, fork } from 'node:child_process'
import type { OpsRole } from '../../src/ops.ts'
import { EXIT, Stop } from '../exit.ts'
import type { OpenedVault, Session } from '../open/open.ts'

/** A role that serves HTTP: a command, and a child of `start`. */
export interface HttpRole {
  /** The command's name. */
  name: OpsRole
  /** Its name among the roles that run: "gateway". */
  label: string
  /** Its name in a sentence: "the gateway". */
  title: string
  serve: (session: Session) => Promise<{ port: number }>
  /** The lines that `start` says of it, when it serves at `port`. */
  greet: (session: Session, port: number, vault: OpenedVault) => string[] | Promise<string[]>
  /** Present if `start` goes on without it: what reads its settings (throws `ConfigError`), and which these are. */
  optional?: { read: (env: Session['terminal']['env']) => void; settings: readonly string[] }
}

const RESTART_MS = 1_000
const CLOSE_MS = 30_000

/** Called in the child: sends its port to the parent. */
export function tellParent({ port }: { port: number }): void {
  // Sent after the child has begun to listen for its parent's end, because the parent may end at once.
  setImmediate(() => process.send?.({ port }))
}

/**
 * Forks an HTTP role. `script`: the command's script. Returns the port of the first child. Throws `Stop` if it can't
 * start.
 */
export async function forkHttp(
  { log, lifetime, terminal }: Session,
  script: string,
  { name, title }: Pick<HttpRole, 'name' | 'title'>,
): Promise<number> {
  let child: ChildProcess | undefined
  let closing = false
  const begin = () =>
    new Promise<number>((resolve, reject) => {
      // Detached, so that the parent passes a Ctrl-C on in its own order.
      const forked = fork(script, [name], { env: terminal.env, detached: true })
      child = forked
      let served = false
      forked.once('message', (told: { port: number }) => {
        served = true
        resolve(told.port)
      })
      // Only a process that couldn't be started (the host has no more processes or files) has no number; it emits no 'exit'.
      forked.on('error', error => {
        if (forked.pid === undefined) reject(new Stop(`${title} could not start: ${error.message}`, EXIT.failure))
      })
      forked.once('exit', (code, signal) => {
        if (!served) reject(new Stop(`${title} could not start; its line above says why`, code ?? EXIT.failure))
        else if (!closing) again(code, signal)
      })
    })
  const again = (code: number | null, signal: string | null) => {
    log.error({ code, signal }, `${title} ended; starting another`)
    setTimeout(() => {
      if (!closing) begin().catch(() => again(null, null))
    }, RESTART_MS)
  }
  lifetime.onClose(title, async () => {
    closing = true
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise(resolve => child?.once('exit', resolve))
    child.kill('SIGTERM')
    const late = setTimeout(() => child?.kill('SIGKILL'), CLOSE_MS)
    await ended
    clearTimeout(late)
  })
  return begin()
}
