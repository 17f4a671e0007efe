// One child process with one session with the token: starts it, asks it, ends it. The child ends with this process, and doesn't
// keep this process running.
import { type ChildProcess, fork } from 'node:child_process'
import { scriptBeside } from '../../script.ts'
import { TokenError } from './token-error.ts'
import type { TokenReply, TokenRequest } from './token-message.ts'

export interface TokenChild {
  /** Throws `TokenError` of kind `away` if the child dies, or doesn't answer in time; then it is ended. */
  ask(request: TokenRequest, msMax: number): Promise<TokenReply>
  /** Asks the child to end, and kills it if it hasn't ended after some seconds. */
  end(): void
}

const SCRIPT = scriptBeside(import.meta.url, 'token-process')
/** A module may wait for a token that is away. */
const END_MS = 5_000
/** Variables that the child doesn't get: they hold passwords and keys. The names of a module's own settings aren't known here. */
const OURS = /^(TOKENMILL_|DATABASE_URL$|REDIS_URL$|PG|AWS_|OTEL_)/

const living = new Set<ChildProcess>()
process.on('exit', () => {
  // A child whose module hangs wouldn't notice that we are gone.
  for (const child of living) child.kill('SIGKILL')
})

export function forkTokenChild(): TokenChild {
  const child = fork(SCRIPT, {
    // A Ctrl-C in the terminal is for our process, which may still have something to unwrap.
    detached: true,
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.test(name))),
    execArgv: [],
    serialization: 'advanced',
    // A module that is told to log everything logs the PIN.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  child.unref()
  child.channel?.unref()
  living.add(child)
  child.once('exit', () => living.delete(child))
  // Without a listener an `error` event would end this process. A request that waits sees the child's end instead.
  child.on('error', () => {})
  return {
    end: () => {
      if (child.connected) child.disconnect()
      setTimeout(() => child.kill('SIGKILL'), END_MS).unref()
    },
    ask: async (request, msMax) => {
      child.channel?.ref()
      try {
        return await replyOf(child, request, msMax)
      } catch (error) {
        child.kill('SIGKILL')
        throw error
      } finally {
        child.channel?.unref()
      }
    },
  }
}

function replyOf(child: ChildProcess, request: TokenRequest, msMax: number): Promise<TokenReply> {
  return new Promise<TokenReply>((resolve, reject) => {
    const done = () => {
      clearTimeout(timer)
      child.off('message', take)
      child.off('exit', gone)
    }
    const take = (reply: TokenReply) => {
      done()
      resolve(reply)
    }
    const fail = (text: string) => {
      done()
      reject(new TokenError('away', text))
    }
    const gone = () => fail('the process of the token died')
    const timer = setTimeout(() => fail(`the token did not answer within ${msMax / 1000} s`), msMax)
    child.on('message', take)
    child.on('exit', gone)
    if (child.connected) child.send(request, error => error && gone())
    else gone()
  })
}
