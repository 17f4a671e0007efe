// HTTP roles as children of `start`: each runs in its own process, so that nothing else in `start` delays it, and is
// started again if it dies after it has served.
import { type ChildProcess, fork } from 'node:child_process'
import { EXIT, Stop } from '../exit.ts'
import type { Session } from '../open/open.ts'

const NAMES = { gateway: 'the gateway', 'three-ds': 'the 3-D Secure service', console: 'the console' } as const
type HttpRole = keyof typeof NAMES

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
export async function forkHttp({ log, lifetime, terminal }: Session, script: string, role: HttpRole): Promise<number> {
  let child: ChildProcess | undefined
  let closing = false
  const begin = () =>
    new Promise<number>((resolve, reject) => {
      // Detached, so that the parent passes a Ctrl-C on in its own order.
      const forked = fork(script, [role], { env: terminal.env, detached: true })
      child = forked
      let served = false
      forked.once('message', (told: { port: number }) => {
        served = true
        resolve(told.port)
      })
      // Only a process that couldn't be started (the host has no more processes or files) has no number; it emits no 'exit'.
      forked.on('error', error => {
        if (forked.pid === undefined) reject(new Stop(`${NAMES[role]} could not start: ${error.message}`, EXIT.failure))
      })
      forked.once('exit', (code, signal) => {
        if (!served) reject(new Stop(`${NAMES[role]} could not start; its line above says why`, code ?? EXIT.failure))
        else if (!closing) again(code, signal)
      })
    })
  const again = (code: number | null, signal: string | null) => {
    log.error({ code, signal }, `${NAMES[role]} ended; starting another`)
    setTimeout(() => {
      if (!closing) begin().catch(() => again(null, null))
    }, RESTART_MS)
  }
  lifetime.onClose(NAMES[role], async () => {
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
